"""What we must know of a jitted function: that it is one, and its options."""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.layout import Format

from theseus_track.capture.frameworks import nnx_in_use
from theseus_track.errors import UnsupportedProgram

__all__ = ["is_jitted", "lowered", "nested", "placement", "rejit", "traced_jaxpr"]

# The protocol `jax.stages.Wrapped` also fits other libraries' wrappers.
_JITTED = type(jax.jit(lambda: None))


def is_jitted(fn: object) -> bool:
    """Tell whether a function is a `jax.jit` or an `nnx.jit` object."""
    return isinstance(fn, _JITTED) or _is_nnx(fn)


def traced_jaxpr(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Trace a jitted function; what it was traced to is one object for all like it."""
    traced = fn.trace(*args, **kwargs)
    return traced.traced.jaxpr if _is_nnx(fn) else traced.jaxpr


def lowered(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> jax.stages.Lowered:
    """Lower a jitted function."""
    stage = fn.lower(*args, **kwargs)
    return stage.lowered if _is_nnx(fn) else stage  # type: ignore[no-any-return]


def rejit(fn: Any, other: Callable[..., tuple[Any, Any]]) -> Any:
    """Compile a function as another one is: statics, donation, shardings, options.

    Args:
        fn: A `jax.jit` or an `nnx.jit` object.
        other: A function of the same arguments that returns a pair; its first
            part is placed as `fn`'s output.

    Raises:
        UnsupportedProgram: When this version of JAX does not tell the options.
    """
    # JAX 0.10 and Flax 0.12 have no public way to ask for them. The tests of `watch`
    # for static arguments, donation and shardings pin these attributes.
    try:
        jit, options = _nnx_options(fn) if _is_nnx(fn) else _jax_options(fn)
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
    return jit(both, **options)


def nested(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is called in place of a function inside another jitted one.

    That is the function itself, but for the compiler options of a `jax.jit` object:
    JAX takes them from the outermost one only.
    """
    if not isinstance(fn, _JITTED):
        return fn
    _, options = _jax_options(fn)
    if not options.pop("compiler_options"):
        return fn
    # The outer function, which has the same ones, places what goes in and out.
    options.pop("in_shardings", None)
    options.pop("out_shardings", None)
    return jax.jit(fn.__wrapped__, **options)  # type: ignore[attr-defined]


def placement(sharding: object, layout: Any = None) -> Any:
    """Say where an array lives, in the terms of `jax.jit`; None: unspecified."""
    place = sharding if isinstance(sharding, jax.sharding.Sharding) else None
    return place if layout is None else Format(layout, place)


Options = tuple[Callable[..., Any], dict[str, Any]]


def _is_nnx(fn: object) -> bool:
    if not nnx_in_use():
        return False
    from flax import nnx  # noqa: PLC0415 - a program without NNX need not load it

    kinds = (nnx.jit(_nothing, graph=graph) for graph in (True, False))
    return isinstance(fn, tuple(type(kind) for kind in kinds))


def _nothing() -> None: ...


def _jax_options(fn: Any) -> Options:
    info = fn._jit_info  # noqa: SLF001 - see rejit
    options = _common(info)
    options["compiler_options"] = dict(info.compiler_options_kvs) or None
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
    return jax.jit, options


def _nnx_options(fn: Any) -> Options:
    from flax import nnx  # noqa: PLC0415 - a program without NNX need not load it

    info = fn.jitted_fn._jit_info  # noqa: SLF001 - see rejit
    options = _common(info)
    if fn.in_shardings is not None:
        options["in_shardings"] = fn.in_shardings
        # NNX has filled in the static arguments.
        if info.static_argnums and isinstance(fn.in_shardings, tuple):
            options["in_shardings"] = tuple(
                place
                for i, place in enumerate(fn.in_shardings)
                if i not in info.static_argnums
            )
    if fn.out_shardings is not None:
        options["out_shardings"] = (fn.out_shardings, None)
    graph = getattr(fn, "graph", None)
    modes = {"graph": True, "graph_updates": True}
    if graph is not None:  # The simple kind, which does not change the graph.
        modes = {"graph": graph, "graph_updates": False}
    return functools.partial(nnx.jit, **modes), options


def _common(info: Any) -> dict[str, Any]:
    return {
        "static_argnums": info.static_argnums or None,
        "static_argnames": info.static_argnames or None,
        "donate_argnums": info.donate_argnums or None,
        "donate_argnames": info.donate_argnames or None,
        "keep_unused": info.keep_unused,
        "inline": info.inline,
    }


def _places(tree: Any, shardings: Any, layouts: Any) -> Any:
    if len(layouts) != len(shardings):  # One None for all: no layouts given.
        layouts = [None] * len(shardings)
    return jax.tree.unflatten(tree, map(placement, shardings, layouts))
