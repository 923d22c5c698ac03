"""What becomes of a value whose call sits in a branch that was not taken."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from theseus_track.analysis.base import AnalysisBase

__all__ = ["draw", "why_not_drawn"]

# By path of a call: whether its branch was taken; nested lists of bools where loops
# are around it, one for each iteration. Calls outside of branches are left out.
Valid = Mapping[str, Any]


def why_not_drawn(analysis: "AnalysisBase", valid: Valid) -> str | None:
    """Say why a value is not given to `plot`; None when it is.

    The live run, replay, replot and preview all ask here.

    Args:
        analysis: Whose value it is.
        valid: By path of each call in a branch, whether that was taken.
    """
    if analysis.PLOT_NOT_TAKEN:
        return None
    for path, flags in valid.items():
        taken = np.asarray(flags)
        if not taken.all():
            some = f" in {taken.size - taken.sum()} of {taken.size} iterations"
            return (
                f"{analysis.NAME}: not drawn, because the branch that calls {path!r} "
                f"was not taken at this step{some if taken.ndim else ''}. To draw it "
                "all the same, set PLOT_NOT_TAKEN = True in the analysis."
            )
    return None


def draw(
    analysis: "AnalysisBase", value: Any, paths: Sequence[str], valid: Valid
) -> object:
    """Call `plot`, and tell it which branches were taken if it asks for that.

    Args:
        analysis: Whose value it is.
        value: What was computed, on the host.
        paths: The calls that were looked at.
        valid: By path of each call in a branch, whether that was taken.

    Returns:
        What `plot` returned.
    """
    plot: Callable[..., object] = analysis.plot
    if not analysis.PLOT_NOT_TAKEN:
        return plot(value)
    return plot(value, taken={p: np.asarray(valid.get(p, True)) for p in paths})
