"""The primitive that stands for an edit of some layers of a scanned stack.

A body is traced once for all iterations, so an edit of some must wait until the
program is complete: the interpreter tells iterations from each other. Until then
`swap_p` holds the old and the new value, and is linear in them, so that JAX can
differentiate and batch the function around it.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from theseus_track.capture.primitives import varying
from theseus_track.capture.tap import Tag
from theseus_track.capture.vary import vary

__all__ = ["swap", "swap_p", "swapped"]

swap_p = Primitive("swap")


def swap(old: Any, new: Any, tag: Tag) -> Any:
    """Put new arrays in the place of old ones, in the layers that a tag stands for.

    Args:
        old: A pytree.
        new: Of the same structure, shapes and dtypes.
        tag: For whoever knows the layers; until then the old ones stay.
    """

    def one(before: Any, after: Any) -> Any:
        if not isinstance(before, jax.Array) and not isinstance(after, jax.Array):
            return after
        before, after = jnp.asarray(before), jnp.asarray(after)
        axes = varying(jax.typeof(before)) | varying(jax.typeof(after))
        return swap_p.bind(vary(before, axes), vary(after, axes), tag=tag)

    return jax.tree.map(one, old, new)


def swapped(old: Any, new: Any, flag: Any) -> Any:
    """Choose between the two values; the flag is None where all layers are meant."""
    return new if flag is None else jnp.where(flag, new, old)


def _old(old: Any, _new: Any, **_: Any) -> Any:
    return old


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, tag: Tag
) -> tuple[Any, Any]:
    out = swap_p.bind(*primals, tag=tag)
    constant = all(isinstance(tangent, ad.Zero) for tangent in tangents)
    if constant or not jnp.issubdtype(out.dtype, jnp.inexact):
        return out, tangents[0]
    return out, swap_p.bind(*map(ad.instantiate_zeros, tangents), tag=tag)


def _transpose(cotangent: Any, old: Any, new: Any, *, tag: Tag) -> list[Any]:
    if isinstance(cotangent, ad.Zero):
        return [None, None]
    zeros = jnp.zeros_like(cotangent)
    pairs = [(cotangent, zeros), (zeros, cotangent)]
    return [
        swap_p.bind(*pair, tag=tag) if ad.is_undefined_primal(value) else None
        for value, pair in zip((old, new), pairs, strict=True)
    ]


def _batch(args: Sequence[Any], dims: Sequence[Any], *, tag: Tag) -> tuple[Any, int]:
    size = next(
        arg.shape[dim] for arg, dim in zip(args, dims, strict=True) if dim is not None
    )
    moved = [
        jnp.broadcast_to(arg, (size, *arg.shape))
        if dim is None
        else jnp.moveaxis(arg, dim, 0)
        for arg, dim in zip(args, dims, strict=True)
    ]
    return swap_p.bind(*moved, tag=tag), 0


swap_p.def_impl(_old)
swap_p.def_abstract_eval(_old)
ad.primitive_jvps[swap_p] = _jvp
ad.primitive_transposes[swap_p] = _transpose
batching.primitive_batchers[swap_p] = _batch
mlir.register_lowering(swap_p, mlir.lower_fun(_old, multiple_results=False))
