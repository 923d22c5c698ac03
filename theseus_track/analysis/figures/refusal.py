"""Refuse parameters of seaborn's that a helper does not honour, by name."""

from collections.abc import Iterable, Mapping
from typing import Any

from theseus_track.errors import BadInput

__all__ = ["DEPRECATED", "refuse", "refuse_deprecated", "refuse_unknown"]


class _Deprecated:
    """Stands for "not given", printed as seaborn prints its own such mark."""

    def __repr__(self) -> str:
        return "<deprecated>"


DEPRECATED = _Deprecated()

_INSTEAD = {
    "ci": "errorbar=('ci', 95) or errorbar='sd'",
    "errcolor": "err_kws={'color': ...}",
    "errwidth": "err_kws={'linewidth': ...}",
}


def refuse(helper: str, instead: str, **parameters: Any) -> None:
    """Raise BadInput for a parameter that is not None.

    Args:
        helper: The function that was called.
        instead: What to pass or do instead.
        **parameters: Name -> value that was given.
    """
    for name, value in parameters.items():
        if value is not None:
            raise BadInput(f"{helper} does not support {name}=; pass {instead}.")


def refuse_deprecated(helper: str, **parameters: Any) -> None:
    """Raise BadInput for a parameter that seaborn itself has deprecated."""
    for name, value in parameters.items():
        if value is not DEPRECATED and value != "deprecated":
            raise BadInput(
                f"{helper} does not support {name}={value!r:.40}, which seaborn has "
                f"deprecated. Use {_INSTEAD[name]}."
            )


def refuse_unknown(helper: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise BadInput for a keyword that is neither seaborn's nor a known option."""
    names = tuple(known)
    for name, value in given.items():
        if name not in names:
            raise BadInput(
                f"{helper} does not support {name}={value!r:.40}; of matplotlib's "
                f"options it takes {', '.join(names)}. Set others on the figure."
            )
