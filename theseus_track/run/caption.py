"""The one line under a figure: what it shows, where, and at which step."""

__all__ = ["caption_of"]

_SHOWN = 3


def caption_of(name: str, key: str | None, paths: tuple[str, ...], step: int) -> str:
    """Say in one line what is shown: name, key, calls and the true step."""
    shown = ", ".join(path or "the model" for path in paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    origin = f" [{key}]" if key and key != name else ""
    where = f" at {shown}{more}" if shown else ""
    return f"{name}{origin}{where}, step {step}"
