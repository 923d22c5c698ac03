"""Runs the analyses at the selected calls, while the function is traced."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from theseus_track.capture.discover import has_arrays
from theseus_track.capture.inputs import frozen
from theseus_track.capture.observer import LiveCall
from theseus_track.capture.paths import Path
from theseus_track.capture.select import one_line, trace_text
from theseus_track.capture.sites import Fault, Site, matches
from theseus_track.capture.tap import Tag, attach
from theseus_track.capture.together import take_whole

__all__ = ["Analyst", "Mark"]


@dataclass(frozen=True, eq=False)
class Mark:
    """What a tap of ours stands for: a site's value, or why there is none."""

    site: str
    path: Path
    cls: str
    fault: Fault | None


class Analyst:
    """Runs the analyses at the selected calls, and taps what they return.

    Every call at a selected place is analyzed: which number it has is known only
    when the program is complete. What is not selected is dropped from it.
    """

    needs_view = True
    sees_marks = True

    def __init__(
        self,
        sites: Mapping[str, Site],
        wanted: Mapping[str, frozenset[str]],
        owner: object,
    ) -> None:
        self._sites = sites
        self._wanted = wanted
        self._owner = owner

    def wants(self, module: Any, path: Path) -> bool:
        """Tell whether some site selected a call at this place."""
        return any(self._interested(module, path))

    def returned(self, call: LiveCall, output: Any) -> Any:
        """Analyze the call for each site that wants it."""
        if not has_arrays(output):
            return output
        for name in self._interested(call.module, call.path):
            fault: Fault | None = None
            leaves: list[Any] = []
            tree: Any = None
            try:
                value = self._value(self._sites[name], call, output)
                leaves, tree = _arrays(value)
            except Exception as error:  # noqa: BLE001 - one site must not stop the rest
                message = (
                    f"{name!r} failed at {str(call.path)!r} ({call.cls}): "
                    f"{one_line(error)}"
                )
                fault = Fault("analyze", message, trace_text(error))
            mark = Mark(name, call.path, call.cls, fault)
            output = attach(output, leaves, Tag(self._owner, mark, tree))
        return output

    def _interested(self, module: Any, path: Path) -> list[str]:
        return [
            name
            for name, places in self._wanted.items()
            if path.method in self._sites[name].methods
            and str(path) in places
            and matches(self._sites[name].target, module)
        ]

    @staticmethod
    def _value(site: Site, call: LiveCall, output: Any) -> Any:
        assert call.view is not None  # needs_view
        if site.whole:
            return take_whole(call, output)
        inputs = call.inputs(frozen(output))
        return call.view.run(lambda layer: site.analyze(layer, inputs))


def _arrays(value: Any) -> tuple[list[Any], Any]:
    """Make arrays of the leaves of what `analyze` returned."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(value)
    allowed = jax.Array | np.ndarray | np.generic | bool | int | float | complex
    for where, leaf in leaves:
        if not isinstance(leaf, allowed):
            place = jax.tree_util.keystr(where)
            raise TypeError(
                f"analyze returned a {type(leaf).__name__}{place and f' at {place}'}; "
                "return arrays or numbers, in dicts, lists or tuples if several."
            )
    return [jnp.asarray(leaf) for _, leaf in leaves], tree
