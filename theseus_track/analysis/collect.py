"""What capture returned, turned into Values inside the same trace."""

import dataclasses
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp

from theseus_track.analysis.fingerprint import measure_hash, text_hash
from theseus_track.analysis.sites import target_of
from theseus_track.analysis.values import Entry, Values
from theseus_track.capture import Captures, Fault, SiteCapture
from theseus_track.capture.sites import Phase, describe_target
from theseus_track.capture.together import held_bytes, together
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
        held = _held(analysis, capture) if analysis.TOGETHER else 0
        value = _value(capture, analysis)
        if capture.edited is not None:
            value = {"clean": value, "edited": _edited(capture.edited, analysis)}
        combine = getattr(analysis, "combine", None)
        if combine is not None:
            phase = "combine"
            value = combine(value)
        structure, leaves = split_tree(value, _array)
        _check_size(analysis, leaves, held)
    except Exception as error:  # noqa: BLE001 (one analysis must not stop training)
        fault = _fault(analysis, phase, error, tuple(capture.values))
        return Entry(analysis=analysis, fault=fault), (), ()
    entry = Entry(
        analysis=analysis,
        paths=tuple(capture.values),
        axes=tuple((path, tuple(axes)) for path, axes in capture.axes.items() if axes),
        structure=dumps(structure),
        leaves=tuple(path for path, _ in leaves),
        held=held,
        conditional=tuple(capture.valid),
    )
    return entry, tuple(leaf for _, leaf in leaves), _taken(capture)


def _value(capture: SiteCapture, analysis: "AnalysisBase") -> object:
    """Return what `combine`, or without one `plot`, sees of one run."""
    if analysis.TOGETHER:
        return together(capture.values, capture.axes, analysis.analyze)
    if capture.single and not hasattr(analysis, "combine"):
        return next(iter(capture.values.values()))
    return dict(capture.values)


def _edited(edited: SiteCapture | Captures, analysis: "AnalysisBase") -> object:
    if isinstance(edited, SiteCapture):
        return _value(edited, analysis)
    return {path: _value(one, analysis) for path, one in edited.items()}


def _taken(capture: SiteCapture) -> tuple[Array, ...]:
    """Return the flags of the calls in branches: taken, in the edited run as well."""
    edited = capture.edited.valid if isinstance(capture.edited, SiteCapture) else {}
    return tuple(
        flag & edited[path] if path in edited else flag
        for path, flag in capture.valid.items()
    )


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


def _held(analysis: "AnalysisBase", capture: SiteCapture) -> int:
    """Weigh what TOGETHER holds; refuse it before anything is computed."""
    edited = capture.edited.values if isinstance(capture.edited, SiteCapture) else {}
    held = held_bytes(capture.values) + held_bytes(edited)
    if held > analysis.MAX_BYTES:
        listed = list(capture.values.items())
        shown = [f"{path!r} ({call.cls})" for path, call in listed[:3]]
        more = ["..."] if len(listed) > len(shown) else []
        raise BadInput(
            f"the inputs and outputs of its {len(listed)} calls, "
            f"{', '.join([*shown, *more])}, weigh {held:,} bytes; TOGETHER holds them "
            f"whole, and MAX_BYTES allows {analysis.MAX_BYTES:,}. Select fewer calls, "
            "crop in an analyze of each call alone, or raise MAX_BYTES."
        )
    return held


def _check_size(
    analysis: "AnalysisBase", leaves: list[tuple[str, Array]], held: int
) -> None:
    size = sum(leaf.size * leaf.dtype.itemsize for _, leaf in leaves) + held
    if size > analysis.MAX_BYTES:
        beside = " with the inputs that TOGETHER holds" if held else ""
        raise BadInput(
            f"its value weighs {size:,} bytes{beside}, MAX_BYTES allows "
            f"{analysis.MAX_BYTES:,}. Crop or reduce in analyze, or raise MAX_BYTES."
        )


def _fault(
    analysis: "AnalysisBase", phase: Phase, error: Exception, paths: tuple[str, ...]
) -> Fault:
    first = str(error).strip().split("\n", 1)[0] or type(error).__name__
    known = isinstance(error, BadInput)
    target = describe_target(target_of(analysis))
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    shown = ", ".join(map(repr, paths[:3])) + more
    text = first if known else f"{type(error).__name__}: {first}"
    return Fault(
        phase=phase,
        message=f"{analysis.NAME} ({analysis.KEY}), {phase} at {shown} ({target}): "
        f"{text}",
        traceback="".join(traceback.format_exception(error)),
    )


def _program(packed: list[Packed]) -> str:
    """Fingerprint which analyses ran together, on what, giving which shapes."""
    parts = [jax.__version__, jax.default_backend()]
    for entry, leaves, _ in packed:
        shapes = ",".join(f"{leaf.dtype}{leaf.shape}" for leaf in leaves)
        parts += [entry.key, measure_hash(entry.analysis), *entry.paths, shapes]
    return text_hash(*parts)
