"""What we must know of a `jax.jit` object: that it is one, and its options."""

from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.layout import Format

from theseus_track.errors import UnsupportedProgram

__all__ = ["is_jitted", "placement", "rejit"]

# The protocol `jax.stages.Wrapped` also fits other libraries' wrappers.
_JITTED = type(jax.jit(lambda: None))


def is_jitted(fn: object) -> bool:
    """Tell whether a function is a `jax.jit` object."""
    return isinstance(fn, _JITTED)


def rejit(fn: Any, other: Callable[..., tuple[Any, Any]]) -> Any:
    """Compile a function as another one is: statics, donation, shardings, options.

    Args:
        fn: A `jax.jit` object.
        other: A function of the same arguments that returns a pair; its first
            part is placed as `fn`'s output.

    Raises:
        UnsupportedProgram: When this version of JAX does not tell the options.
    """
    # JAX 0.10 has no public way to ask for them. The tests of `watch` for static
    # arguments, donation and shardings pin these attributes.
    info = getattr(fn, "_jit_info", None)
    try:
        options = _options(info)
    except AttributeError as error:
        raise UnsupportedProgram(
            f"JAX {jax.__version__} does not tell how {fn!r} was jitted. Watch the "
            "function before `jax.jit` instead: jax.jit(watch(fn, ...))."
        ) from error

    def both(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return other(*args, **kwargs)

    # JAX finds the parameters that the options name by the signature, and shows the
    # name in profiles.
    both.__name__ = both.__qualname__ = getattr(fn, "__name__", "watched")
    both.__wrapped__ = fn  # type: ignore[attr-defined]
    return jax.jit(both, **options)


def placement(sharding: object, layout: Any = None) -> Any:
    """Say where an array lives, in the terms of `jax.jit`; None: unspecified."""
    place = sharding if isinstance(sharding, jax.sharding.Sharding) else None
    return place if layout is None else Format(layout, place)


def _options(info: Any) -> dict[str, Any]:
    options: dict[str, Any] = {
        "static_argnums": info.static_argnums or None,
        "static_argnames": info.static_argnames or None,
        "donate_argnums": info.donate_argnums or None,
        "donate_argnames": info.donate_argnames or None,
        "keep_unused": info.keep_unused,
        "inline": info.inline,
        "compiler_options": dict(info.compiler_options_kvs) or None,
    }
    inputs = _places(
        info.in_shardings_treedef, info.in_shardings_leaves, info.in_layouts_leaves
    )
    output = _places(
        info.out_shardings_treedef, info.out_shardings_leaves, info.out_layouts_leaves
    )
    # JAX refuses keyword arguments where shardings of inputs are given.
    if info.user_specified_in_shardings:
        options["in_shardings"] = inputs
    if jax.tree.leaves(output):
        options["out_shardings"] = (output, None)
    return options


def _places(tree: Any, shardings: Any, layouts: Any) -> Any:
    if len(layouts) != len(shardings):  # One None for all: no layouts given.
        layouts = [None] * len(shardings)
    return jax.tree.unflatten(tree, map(placement, shardings, layouts))
