"""Preview: one analysis, run now and shown here; nothing is kept in a ledger."""

import base64
import dataclasses
import html
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from theseus_track.analysis import AnalysisBase, instrument
from theseus_track.analysis.host import to_host
from theseus_track.errors import AnalysisFault, BadInput
from theseus_track.quick.analysis_job import AnalysisJob
from theseus_track.quick.session import quick
from theseus_track.records import dumps
from theseus_track.render import normalise, private_pyplot
from theseus_track.render.files import figure_files
from theseus_track.store import Run

__all__ = ["Preview", "preview"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preview:
    """What an analysis shows; a notebook draws it.

    Attributes:
        name: The NAME of the analysis.
        step: The training step of the state, if it is of a run.
        value: What `analyze` returned, on the host.
        files: By part ("" where there is one) and suffix, the bytes of a file: "png"
            and "pdf" of a figure, "json" of anything else.
    """

    name: str
    step: int | None
    value: Any
    files: Mapping[str, Mapping[str, bytes]]

    def save(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write the files to a directory; return their paths."""
        target = Path(directory)
        target.mkdir(parents=True, exist_ok=True)
        paths = []
        for part, files in self.files.items():
            at = () if self.step is None else (str(self.step),)
            own = re.sub(r"[^A-Za-z0-9_.-]+", "_", part)
            stem = "-".join(filter(None, (self.name, *at, own)))
            for suffix, data in files.items():
                path = target / f"{stem}.{suffix}"
                path.write_bytes(data)
                paths.append(path)
        return paths

    def _repr_html_(self) -> str:
        at = "" if self.step is None else f" at step {self.step}"
        head = f"<p><code>{html.escape(self.name)}</code>{at}</p>"
        return head + "".join(map(_shown, self.files, self.files.values()))


def preview(
    analysis: type[AnalysisBase] | AnalysisBase,
    target: Callable[..., Any] | Run,
    *args: Any,
    step: int | None = None,
    **kwargs: Any,
) -> Preview:
    """Run one analysis and show what it draws; write nothing.

    Args:
        analysis: The analysis, a class or an instance.
        target: An eval step, or a run of ours, whose job is made anew from a
            checkpoint.
        *args: Of the eval step.
        step: Of the run: which checkpoint; None for the latest.
        **kwargs: Of the eval step.

    Returns:
        The figure, which a notebook shows.

    Raises:
        AnalysisFault: When select, analyze or plot fails.
        NotFound: When the run has no such checkpoint.
        BadInput: When arguments do not fit the target.

    Example:
        ```python
        import flax.linen as nn, jax, jax.numpy as jnp
        from theseus_track.analysis import AnalysisBase
        from theseus_track.quick import preview

        class Mean(AnalysisBase):
            TARGET = nn.Dense

            def analyze(self, layer, inputs):
                return inputs.output.mean()

            def plot(self, values):
                return {"mean": float(values)}

        x = jnp.ones((1, 3))
        variables = nn.Dense(2).init(jax.random.key(0), x)
        preview(Mean, nn.Dense(2).apply, variables, x)
        ```
    """
    if isinstance(target, Run):
        if args or kwargs:
            raise BadInput("A run has its own batch; give only the step.")
        return _of_run(analysis, target, step)
    if step is not None:
        raise BadInput(
            f"step={step} chooses a checkpoint of a run; there is none here."
        )
    return _shown_of(analysis, target, args, kwargs, None)


def _of_run(
    analysis: type[AnalysisBase] | AnalysisBase, run: Run, step: int | None
) -> Preview:
    cls = analysis if isinstance(analysis, type) else type(analysis)
    # The run's directory stands in `runs` of its root.
    with quick(run.dir.parent.parent) as session:
        session.build(cls, "preview")
        found = session.find().nonce(run.id).checkpoint()
        (found.latest() if step is None else found.step(step)).resume()
        job = session.create()
        assert isinstance(job, AnalysisJob)  # What is built for an analysis.
        args = (job.trainer.state.variables, job.batch())
        return _shown_of(job.analysis, job.trainer.eval_step, args, {}, job.step)


def _shown_of(
    analysis: type[AnalysisBase] | AnalysisBase,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    step: int | None,
) -> Preview:
    _, values = instrument(fn, [analysis], strict=True)(*args, **kwargs)
    (host,) = to_host(values)
    try:
        with private_pyplot():
            parts = normalise(host.analysis.plot(host.value))
            files = {part: _files(drawn) for part, drawn in parts.items()}
    except Exception as error:
        raise AnalysisFault(
            f"plot of {host.entry.name!r} failed: {type(error).__name__}: {error}"
        ) from error
    return Preview(name=host.entry.name, step=step, value=host.value, files=files)


def _files(drawn: Any) -> dict[str, bytes]:
    if hasattr(drawn, "savefig"):
        return figure_files(drawn)
    return {"json": dumps(drawn, indent=2).encode()}


def _shown(part: str, files: Mapping[str, bytes]) -> str:
    title = f"<p>{html.escape(part)}</p>" if part else ""
    if "png" in files:
        data = base64.b64encode(files["png"]).decode()
        return f'{title}<img src="data:image/png;base64,{data}">'
    return f"{title}<pre>{html.escape(files['json'].decode())}</pre>"
