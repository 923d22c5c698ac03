"""Analyses as the sites that capture is asked to look at."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING

from theseus_track.capture import Site, Target

if TYPE_CHECKING:
    from theseus_track.analysis.base import AnalysisBase

__all__ = ["sites_of", "target_of"]


def sites_of(analyses: Mapping[str, "AnalysisBase"]) -> dict[str, Site]:
    """Return a capture site for each analysis, by NAME."""
    return {name: _site(analysis) for name, analysis in analyses.items()}


def _site(analysis: "AnalysisBase") -> Site:
    return Site(
        target=target_of(analysis),
        methods=tuple(analysis.METHODS),
        select=analysis.select,
        analyze=analysis.analyze,
        whole=analysis.TOGETHER,
        edits=analysis.EDITS or None,
    )


def target_of(analysis: "AnalysisBase") -> Target:
    """Return the TARGET of an analysis."""
    # Read from the class without the descriptor protocol: a predicate written as
    # `TARGET = lambda module: ...` must not be bound to the analysis.
    found = inspect.getattr_static(analysis, "TARGET")
    target: Target = found.__func__ if isinstance(found, staticmethod) else found
    return target
