"""Summarise the points that share a place: an estimate and its error interval."""

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from theseus_track.errors import BadInput, describe_unknown

__all__ = ["Summary", "describe", "summarise"]

Summary: TypeAlias = tuple[float, float, float]
"""Estimate, lower and upper end; NaN where there is none."""

_ESTIMATORS: dict[str, Callable[[np.ndarray], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "sum": np.sum,
    "min": np.min,
    "max": np.max,
    "std": lambda values: np.std(values, ddof=1),
    "var": lambda values: np.var(values, ddof=1),
    "count": np.size,
}
_LEVELS = {"ci": 95.0, "pi": 95.0, "se": 1.0, "sd": 1.0}


def summarise(
    values: np.ndarray, *, estimator: Any, errorbar: Any, n_boot: int, seed: Any
) -> Summary:
    """Estimate one number of several and its uncertainty, as seaborn does.

    Args:
        values: [point]; non-finite ones do not count.
        estimator: A name ("mean", "median", ...) or a function of an array.
        errorbar: None, "ci", "pi", "se", "sd", such a name with its level or
            multiple ("ci", 95), or a function of an array that returns two ends.
        n_boot: Resamples of the "ci" bootstrap.
        seed: Seed of the bootstrap; None is 0, so that equal values give equal figures.

    Raises:
        BadInput: For an estimator or error bar of another kind.
    """
    function = _estimator(estimator)
    method, level = _errorbar(errorbar)
    sample = values[np.isfinite(values)]
    if not sample.size:
        return (np.nan, np.nan, np.nan)
    estimate = float(function(sample))
    if callable(method):
        low, high = method(sample)
        return estimate, float(low), float(high)
    if method is None or sample.size < 2:
        return estimate, np.nan, np.nan
    if method in ("sd", "se"):
        # Squares of the largest floats overflow; then there is no bar.
        with np.errstate(over="ignore"):
            half = level * float(np.std(sample, ddof=1))
        half /= np.sqrt(sample.size) if method == "se" else 1.0
        return estimate, estimate - half, estimate + half
    if method == "ci":
        sample = _bootstrap(sample, function, n_boot, seed)
    low, high = np.percentile(sample, [50.0 - level / 2.0, 50.0 + level / 2.0])
    return estimate, float(low), float(high)


def describe(estimator: Any, errorbar: Any) -> str:
    """Say in a few words what `summarise` does, for a caption."""
    name = (
        estimator if isinstance(estimator, str) else getattr(estimator, "__name__", "")
    )
    method, level = _errorbar(errorbar)
    if method is None:
        return str(name)
    if callable(method):
        return f"{name} with error bars"
    shown = {
        "ci": f"{level:g}% interval of the {name}",
        "pi": f"{level:g}% of the points",
    }
    return f"{name} ± {shown.get(method, f'{level:g} {method}')}"


def _estimator(estimator: Any) -> Callable[[np.ndarray], Any]:
    if callable(estimator):
        function: Callable[[np.ndarray], Any] = estimator
        return function
    if estimator in _ESTIMATORS:
        return _ESTIMATORS[estimator]
    raise BadInput(describe_unknown("estimator", estimator, _ESTIMATORS))


def _errorbar(errorbar: Any) -> tuple[Any, float]:
    if errorbar is None or callable(errorbar):
        return errorbar, 0.0
    method, level = errorbar if isinstance(errorbar, tuple) else (errorbar, None)
    if method not in _LEVELS:
        raise BadInput(
            f"errorbar={errorbar!r:.60} is none of None, 'ci', 'pi', 'se', 'sd', such "
            "a name with a number as in ('ci', 95), or a function."
        )
    return method, float(_LEVELS[method] if level is None else level)


def _bootstrap(
    sample: np.ndarray, function: Callable[[np.ndarray], Any], n_boot: int, seed: Any
) -> np.ndarray:
    random = np.random.default_rng(0 if seed is None else seed)
    draws = sample[random.integers(0, sample.size, (int(n_boot), sample.size))]
    if "axis" in _parameters(function):
        return np.asarray(function(draws, axis=1))  # type: ignore[call-arg]
    return np.array([function(draw) for draw in draws], np.float64)


def _parameters(function: Callable[..., Any]) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()
