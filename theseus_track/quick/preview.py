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
from theseus_track.analysis.taken import draw, why_not_drawn
from theseus_track.errors import AnalysisFault, BadInput
from theseus_track.jobs import Recipe
from theseus_track.quick.saved import saved_variables
from theseus_track.records import dumps
from theseus_track.render import normalise, private_pyplot
from theseus_track.render.files import figure_files
from theseus_track.replay import find_target
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
        undrawn: Why `plot` was not called, because a branch was not taken; else None.
    """

    name: str
    step: int | None
    value: Any
    files: Mapping[str, Mapping[str, bytes]]
    undrawn: str | None = None

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
        why = f"<p>{html.escape(self.undrawn)}</p>" if self.undrawn else ""
        return head + why + "".join(map(_shown, self.files, self.files.values()))


def preview(
    analysis: type[AnalysisBase] | AnalysisBase,
    target: Callable[..., Any] | Run | Recipe,
    *args: Any,
    step: int | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> Preview:
    """Run one analysis and show what it draws; write nothing.

    Args:
        analysis: The analysis, a class or an instance.
        target: An eval step; a run, whose own recipe is loaded or whose job is made
            anew; or a recipe.
        *args: Of the eval step.
        step: Which checkpoint, of the run or of `checkpoints`; None for the latest.
        checkpoints: The directory of the checkpoints of a recipe; without it, its
            variables must be arrays.
        **kwargs: Of the eval step.

    Returns:
        The figure, which a notebook shows.

    Raises:
        AnalysisFault: When select, analyze or plot fails.
        NotFound: When there is no such checkpoint.
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
    if isinstance(target, Run | Recipe) and (args or kwargs):
        raise BadInput("A run or recipe has its own batch; give only the step.")
    if checkpoints is not None and not isinstance(target, Recipe):
        raise BadInput(
            f"checkpoints={os.fspath(checkpoints)!r} goes with a recipe, not with a "
            f"{type(target).__name__}."
        )
    if isinstance(target, Run):
        return _of_run(analysis, target, step)
    if isinstance(target, Recipe) and checkpoints is not None:
        return _of_recipe(analysis, target, checkpoints, step)
    if step is not None:
        raise BadInput(
            f"step={step} chooses a checkpoint of a run; there is none here."
        )
    if isinstance(target, Recipe):
        args = (target.variables, target.make_batch())
        return _shown_of(analysis, target.eval_step, args, {}, None)
    return _shown_of(analysis, target, args, kwargs, None)


def _of_run(
    analysis: type[AnalysisBase] | AnalysisBase, run: Run, step: int | None
) -> Preview:
    cls = analysis if isinstance(analysis, type) else type(analysis)
    # The run's directory stands in `runs` of its root.
    target = find_target(run.id, [cls], root=run.dir.parent.parent)
    (bound,) = target.analyses
    return _of_recipe(bound, target.recipe, target.directory, step)


def _of_recipe(
    analysis: type[AnalysisBase] | AnalysisBase,
    recipe: Recipe,
    directory: str | os.PathLike[str],
    step: int | None,
) -> Preview:
    chosen, variables = saved_variables(recipe, directory, step)
    args = (variables, recipe.make_batch())
    return _shown_of(analysis, recipe.eval_step, args, {}, chosen)


def _shown_of(
    analysis: type[AnalysisBase] | AnalysisBase,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    step: int | None,
) -> Preview:
    _, values = instrument(fn, [analysis], strict=True)(*args, **kwargs)
    (host,) = to_host(values)
    shown = Preview(name=host.entry.name, step=step, value=host.value, files={})
    if why := why_not_drawn(host.analysis, host.valid):
        return dataclasses.replace(shown, undrawn=why)
    try:
        with private_pyplot():
            drawn = draw(host.analysis, host.value, host.entry.paths, host.valid)
            parts = normalise(drawn)
            files = {part: _files(one) for part, one in parts.items()}
    except Exception as error:
        raise AnalysisFault(
            f"plot of {host.entry.name!r} failed: {type(error).__name__}: {error}"
        ) from error
    return dataclasses.replace(shown, files=files)


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
