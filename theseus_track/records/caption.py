"""The one line under a figure: what it shows, where, and at which step."""

__all__ = ["caption_of"]

_SHOWN = 3


def caption_of(
    name: str,
    key: str | None,
    paths: tuple[str, ...],
    step: int,
    *,
    run: str = "",
    shown: str = "",
) -> str:
    """Say in one line what is shown, where, and at which step.

    Args:
        name: The name of the result.
        key: The key of its analysis, or None.
        paths: The calls that were looked at.
        step: The true training step.
        run: The run, or "" to leave it out.
        shown: What a View says of its data: shape, dtype and range; or "".
    """
    calls = ", ".join(path or "the model" for path in paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    origin = f" [{key}]" if key and key != name else ""
    where = f" at {calls}{more}" if calls else ""
    whose = f", run {run}" if run else ""
    what = f": {shown}" if shown else ""
    return f"{name}{origin}{where}, step {step}{whose}{what}"
