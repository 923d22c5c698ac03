"""Which calls of a model are the blocks of its residual stream."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from theseus_analyses.layers import by_layer
from theseus_analyses.targets import any_module
from theseus_track.analysis import AnalysisBase
from theseus_track.capture import Target

__all__ = ["ResidualAnalysis"]

_NUMBERED = re.compile(r"(?P<name>.*?)_?\d+(?:#\d+)?")


class ResidualAnalysis(AnalysisBase):
    """A template for questions about what blocks add to a residual stream.

    The blocks are the largest group of calls whose names differ in their number only
    and that have calls of their own inside: `blocks_0`, `blocks_1` or `layers/0`,
    `layers/1`. Of a scanned stack, or where a model has other conventions, declare
    them: `TARGET = MyBlock` and `select = every(1)`.
    """

    TARGET: ClassVar[Target] = any_module

    def select(self, paths: list[str]) -> list[str]:
        """Choose the blocks, in program order."""
        if type(self).TARGET is not any_module:
            return paths
        groups: dict[str, list[str]] = {}
        for path in paths:
            parent, _, name = path.rpartition("/")
            numbered = _NUMBERED.fullmatch(name)
            inside = any(other.startswith(f"{path}/") for other in paths)
            if numbered and inside:
                groups.setdefault(f"{parent}/{numbered['name']}", []).append(path)
        if not groups:
            raise ValueError(
                "No blocks were found: no calls such as blocks_0, blocks_1 with calls "
                f"inside among {', '.join(paths[:10])}. Declare TARGET = YourBlock in "
                f"a subclass of {type(self).__name__}."
            )
        return max(groups.values(), key=len)

    def before(self, inputs: Any) -> jax.Array:
        """Return the stream that the block reads, [batch, token, feature].

        By default its first input that is an array of floats.
        """
        for value in inputs.values():
            if jnp.issubdtype(getattr(value, "dtype", jnp.int32), jnp.floating):
                return value  # type: ignore[no-any-return]
        raise ValueError(
            "No input of the block is an array of floats; its inputs are: "
            f"{', '.join(inputs)}. Override before(inputs)."
        )

    def after(self, inputs: Any) -> jax.Array:
        """Return the stream that the block leaves, [batch, token, feature].

        By default its output, or the first array of it.
        """
        return jax.tree.leaves(inputs.output)[0]  # type: ignore[no-any-return]

    def over_depth(
        self,
        values: Mapping[str, Mapping[str, np.ndarray]],
        names: Mapping[str, str],
        *,
        ylabel: str,
    ) -> tuple[object, list[dict[str, Any]]]:
        """Draw some numbers of each block over depth, and list all of them.

        Args:
            values: What `plot` gets: path -> name -> a number; of a stack, [layer].
            names: Which numbers to draw -> what the figure calls them.
            ylabel: What they are.

        Returns:
            A figure with one line a name, and a table with one row a block.
        """
        rows = by_layer(values, axes=0)
        figure = self.line(
            x=list(range(len(rows))) * len(names),
            y=[float(row[name]) for name in names for row in rows.values()],
            hue=[label for label in names.values() for _ in rows],
            xlabel="Block",
            ylabel=ylabel,
        )
        table = [
            {"block": path} | {name: float(number) for name, number in row.items()}
            for path, row in rows.items()
        ]
        return figure, table
