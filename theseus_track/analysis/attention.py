"""How attention layers of any class are looked into: one adapter a class."""

from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
from flax import nnx

from theseus_track.analysis import attention_flax
from theseus_track.analysis.heads import Heads
from theseus_track.errors import BadInput, RegistryError

__all__ = ["attention_adapter", "attention_heads", "is_attention"]

# A module of Linen or NNX, which share no base class.
Layer = Any
Adapter = Callable[[Layer, Mapping[str, Any]], Heads]

_adapters: dict[type, Adapter] = {
    nn.MultiHeadDotProductAttention: attention_flax.linen_heads,
    nnx.MultiHeadAttention: attention_flax.nnx_heads,
}


def attention_adapter(*classes: type) -> Callable[[Adapter], Adapter]:
    """Say how to look into attention layers of your own.

    The decorated function is called inside jit, with the layer on an isolated view
    and its inputs by name, and returns `Heads`. Subclasses of the classes use it too.
    Declare it beside the class, so that a replay finds it. The layers of Flax,
    `flax.linen.MultiHeadDotProductAttention` and `flax.nnx.MultiHeadAttention`, have
    theirs.

    Example:
        ```python
        import flax.linen as nn
        import jax.numpy as jnp
        from theseus_track.analysis import Heads, attention_adapter

        class MyAttention(nn.Module):
            def setup(self):
                self.qkv = nn.DenseGeneral((3, 2, 8))
                self.out = nn.DenseGeneral(16, axis=(-2, -1))

            def __call__(self, x):
                q, k, v = jnp.moveaxis(self.qkv(x), 2, 0)
                heads = Heads.of(q, k, v)
                return self.out(jnp.einsum("bhqk,bkhd->bqhd", heads.weights, v))

        @attention_adapter(MyAttention)
        def look(layer, inputs):
            q, k, v = jnp.moveaxis(layer.qkv(inputs.x), 2, 0)
            kernel = layer.variables["params"]["out"]["kernel"]
            return Heads.of(q, k, v, out=kernel)
        ```

    Args:
        classes: One or more module classes.

    Raises:
        BadInput: If there is no class, or something that is none.
        RegistryError: If another function is already the adapter of a class; the
            same function, defined again in the same place, replaces itself.
    """
    if not classes or not all(isinstance(each, type) for each in classes):
        raise BadInput(
            f"attention_adapter takes module classes, not {classes!r}: write "
            "@attention_adapter(MyAttention)."
        )

    def declare(adapter: Adapter) -> Adapter:
        for each in classes:
            known = _own_adapter(each)
            if known is not None and _place(known) != _place(adapter):
                raise RegistryError(
                    f"{each.__name__} already has an attention adapter, "
                    f"{_place(known)}; {_place(adapter)} cannot be another."
                )
            _adapters[each] = adapter
        return adapter

    return declare


def is_attention(module: Layer) -> bool:
    """Say whether a module has an adapter: the `TARGET` of attention analyses."""
    return _find(type(module)) is not None


def attention_heads(layer: Layer, inputs: Mapping[str, Any]) -> Heads:
    """Look into one call of an attention layer.

    Args:
        layer: The module, as `analyze` gets it.
        inputs: The inputs of its call, as `analyze` gets them.

    Returns:
        Its queries, keys, values, weights and output projection, on device.

    Raises:
        BadInput: If the class has no adapter, or the layer decodes with a cache.
    """
    adapter = _find(type(layer))
    if adapter is None:
        known = ", ".join(sorted(each.__name__ for each in _adapters))
        raise BadInput(
            f"{type(layer).__name__} has no attention adapter; {known} have one. "
            f"Declare it with @attention_adapter({type(layer).__name__})."
        )
    return adapter(layer, inputs)


def _find(cls: type) -> Adapter | None:
    found = (_own_adapter(base) for base in cls.__mro__)
    return next((adapter for adapter in found if adapter is not None), None)


def _own_adapter(cls: type) -> Adapter | None:
    """Return the adapter of this very class, also of its earlier definition."""
    if cls in _adapters:
        return _adapters[cls]
    # A notebook cell or a file that was loaded again defines the class anew.
    named = ((each, adapter) for each, adapter in _adapters.items())
    return next((a for each, a in named if _place(each) == _place(cls)), None)


def _place(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"
