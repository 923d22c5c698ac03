"""What capture returned, turned into Values inside the same trace."""

import dataclasses
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp

from theseus_track.analysis.fingerprint import measure_hash, text_hash
from theseus_track.analysis.values import Entry, Values
from theseus_track.capture import Captures, Fault, SiteCapture
from theseus_track.capture.sites import Phase
from theseus_track.errors import BadInput
from theseus_track.records import dumps, split_tree

if TYPE_CHECKING:
    from theseus_track.analysis.base import AnalysisBase

__all__ = ["collect"]

# One array or tracer.
Array = Any


def collect(captures: Captures, analyses: Mapping[str, "AnalysisBase"]) -> Values:
    """Combine, check and pack the captured values; runs under the user's trace.

    Args:
        captures: What the watched function took out, by NAME.
        analyses: NAME -> instance, in the order of `instrument`.

    Returns:
        Values with one entry for each analysis, also for those with a fault.
    """
    packed = [_pack(captures[name], analysis) for name, analysis in analyses.items()]
    program = _program(packed)
    entries = tuple(dataclasses.replace(e, program=program) for e, _, _ in packed)
    return Values(
        entries, tuple(a for _, a, _ in packed), tuple(f for _, _, f in packed)
    )


Packed: TypeAlias = tuple[Entry, tuple[Array, ...], tuple[Array, ...]]


def _pack(capture: SiteCapture, analysis: "AnalysisBase") -> Packed:
    if capture.fault is not None:
        # Capture gives the name alone; whoever reads this wrote an analysis.
        words = f"Analysis {capture.fault.message}"
        fault = dataclasses.replace(capture.fault, message=words)
        return Entry(analysis=analysis, fault=fault), (), ()
    phase: Phase = "analyze"
    try:
        value: object = dict(capture.values)
        combine = getattr(analysis, "combine", None)
        if combine is not None:
            phase = "combine"
            value = combine(value)
        elif capture.single:
            value = next(iter(capture.values.values()))
        structure, leaves = split_tree(value, _array)
        _check_size(analysis, leaves)
    except Exception as error:  # noqa: BLE001 (one analysis must not stop training)
        return Entry(analysis=analysis, fault=_fault(analysis, phase, error)), (), ()
    entry = Entry(
        analysis=analysis,
        paths=tuple(capture.values),
        axes=tuple((path, tuple(axes)) for path, axes in capture.axes.items() if axes),
        structure=dumps(structure),
        leaves=tuple(path for path, _ in leaves),
        conditional=tuple(capture.valid),
    )
    return entry, tuple(leaf for _, leaf in leaves), tuple(capture.valid.values())


def _array(node: object, path: str) -> Array:
    where = path or "the top"
    if isinstance(node, str | bytes) or not hasattr(node, "dtype"):
        if not isinstance(node, bool | int | float):
            raise BadInput(
                f"it returned a {type(node).__name__} at {where}, not an array. "
                "Return arrays, or dicts and lists of arrays."
            )
        return jnp.asarray(node)
    dtype = node.dtype
    number = jnp.issubdtype(dtype, jnp.bool_) or jnp.issubdtype(dtype, jnp.number)
    if not number or jnp.issubdtype(dtype, jnp.complexfloating):
        raise BadInput(
            f"it returned dtype {dtype} at {where}; allowed are booleans, integers "
            "and real floats. Use jax.random.key_data for keys, or abs, real and imag."
        )
    return node


def _check_size(analysis: "AnalysisBase", leaves: list[tuple[str, Array]]) -> None:
    size = sum(leaf.size * leaf.dtype.itemsize for _, leaf in leaves)
    if size > analysis.MAX_BYTES:
        raise BadInput(
            f"its value weighs {size:,} bytes, MAX_BYTES allows "
            f"{analysis.MAX_BYTES:,}. Crop or reduce in analyze, or raise MAX_BYTES."
        )


def _fault(analysis: "AnalysisBase", phase: Phase, error: Exception) -> Fault:
    first = str(error).strip().split("\n", 1)[0] or type(error).__name__
    known = isinstance(error, BadInput)
    text = first if known else f"{type(error).__name__}: {first}"
    return Fault(
        phase=phase,
        message=f"{analysis.NAME} ({analysis.KEY}), {phase}: {text}",
        traceback="".join(traceback.format_exception(error)),
    )


def _program(packed: list[Packed]) -> str:
    """Fingerprint which analyses ran together, on what, giving which shapes."""
    parts = [jax.__version__, jax.default_backend()]
    for entry, leaves, _ in packed:
        shapes = ",".join(f"{leaf.dtype}{leaf.shape}" for leaf in leaves)
        parts += [entry.key, measure_hash(entry.analysis), *entry.paths, shapes]
    return text_hash(*parts)
