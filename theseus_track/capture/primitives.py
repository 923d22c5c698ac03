"""How JAX describes its equations: the only file that knows their parameters' names.

They carry no promise of compatibility. `tests/capture/test_primitives.py` holds JAX to
each of them, so that a release that renames one is told from a mistake of ours.
"""

import contextlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
from jax.extend import core
from jax.extend.core import Jaxpr, JaxprEqn
from jax.interpreters import partial_eval

from theseus_track.errors import UnsupportedProgram

__all__ = [
    "Body",
    "CondEqn",
    "JitEqn",
    "RematEqn",
    "ScanEqn",
    "ShardMapEqn",
    "WhileEqn",
    "is_shard_map",
    "opened",
    "read_cond",
    "read_inline",
    "read_jit",
    "read_remat",
    "read_scan",
    "read_shard_map",
    "read_while",
    "settings_of",
    "sub_jaxprs",
    "used_inputs",
    "varying",
]

Body: TypeAlias = tuple[Jaxpr, Sequence[Any]]
"""A program inside an equation, and the values of its constants."""

# From JAX 0.11 on there is one kind, which holds its constants itself.
_JAXPRS = (Jaxpr, getattr(core, "ClosedJaxpr", Jaxpr))


@dataclass(frozen=True, kw_only=True, slots=True)
class JitEqn:
    """A call of a jitted function; shardings and layouts as JAX keeps them.

    Attributes:
        same: Equal for the calls of one function with the same options.
    """

    same: Hashable
    body: Body
    name: str
    donated: Sequence[bool]
    keep_unused: bool
    inline: Any
    in_shardings: Sequence[Any]
    in_layouts: Sequence[Any]
    out_shardings: Sequence[Any]
    out_layouts: Sequence[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class RematEqn:
    """A call of a `jax.checkpoint` function."""

    body: Body
    prevent_cse: Any
    policy: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanEqn:
    """A scan; its arguments are `consts` constants, then `carry` carries, then rows."""

    body: Body
    consts: int
    carry: int
    length: int
    reverse: bool
    unroll: int


@dataclass(frozen=True, kw_only=True, slots=True)
class WhileEqn:
    """A while loop; its arguments are constants of both, then the carries."""

    condition: Body
    condition_consts: int
    body: Body
    body_consts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CondEqn:
    """A choice of one of several branches; the index is the first argument."""

    branches: Sequence[Body]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardMapEqn:
    """A program run by every shard; `manual` names the axes that it sees one by one."""

    body: Body
    mesh: Any
    in_specs: Sequence[Any]
    out_specs: Sequence[Any]
    manual: frozenset[str]
    checked: bool


def read_jit(eqn: JaxprEqn) -> JitEqn:
    """Read an equation of `jit`."""
    names = ("jaxpr", "in_shardings", "out_shardings", "donated_invars")
    return JitEqn(
        same=tuple(_param(eqn, name) for name in names),
        body=_body(eqn, "jaxpr"),
        name=_param(eqn, "name"),
        donated=_param(eqn, "donated_invars"),
        keep_unused=_param(eqn, "keep_unused"),
        inline=_param(eqn, "inline"),
        in_shardings=_param(eqn, "in_shardings"),
        in_layouts=_param(eqn, "in_layouts"),
        out_shardings=_param(eqn, "out_shardings"),
        out_layouts=_param(eqn, "out_layouts"),
    )


def read_remat(eqn: JaxprEqn) -> RematEqn:
    """Read an equation of `checkpoint`."""
    return RematEqn(
        body=_body(eqn, "jaxpr"),
        prevent_cse=_param(eqn, "prevent_cse"),
        policy=_param(eqn, "policy"),
    )


def read_inline(eqn: JaxprEqn) -> Body:
    """Read an equation that calls a program once: a custom derivative, a plain call."""
    return _body(eqn, "call_jaxpr")


def read_scan(eqn: JaxprEqn) -> ScanEqn:
    """Read an equation of `scan`."""
    # From JAX 0.11 on, a tree that has the arguments in three groups.
    groups = eqn.params.get("ft_in")
    if groups is not None:
        consts, carry, _ = map(len, groups.unpack())
    else:
        consts, carry = _param(eqn, "num_consts"), _param(eqn, "num_carry")
    return ScanEqn(
        body=_body(eqn, "jaxpr"),
        consts=consts,
        carry=carry,
        length=_param(eqn, "length"),
        reverse=_param(eqn, "reverse"),
        unroll=_param(eqn, "unroll"),
    )


def read_while(eqn: JaxprEqn) -> WhileEqn:
    """Read an equation of `while`."""
    return WhileEqn(
        condition=_body(eqn, "cond_jaxpr"),
        condition_consts=_param(eqn, "cond_nconsts"),
        body=_body(eqn, "body_jaxpr"),
        body_consts=_param(eqn, "body_nconsts"),
    )


def read_cond(eqn: JaxprEqn) -> CondEqn:
    """Read an equation of `cond`, which is that of `switch` too."""
    return CondEqn(branches=tuple(map(opened, _param(eqn, "branches"))))


def read_shard_map(eqn: JaxprEqn) -> ShardMapEqn:
    """Read an equation of `shard_map`."""
    return ShardMapEqn(
        body=_body(eqn, "jaxpr"),
        mesh=_param(eqn, "mesh"),
        in_specs=_param(eqn, "in_specs"),
        out_specs=_param(eqn, "out_specs"),
        manual=frozenset(_param(eqn, "newly_manual_axes", "manual_axes")),
        checked=_param(eqn, "check_vma"),
    )


def is_shard_map(eqn: JaxprEqn) -> bool:
    """Tell whether an equation is a `shard_map`, whose primitive JAX keeps private."""
    return eqn.primitive.name == "shard_map"


def varying(aval: Any) -> frozenset[str]:
    """Name the mesh axes over which an array may differ inside `shard_map`."""
    kind = getattr(aval, "manual_axis_type", None)
    # Up to JAX 0.10.1 the type of an array holds the names themselves.
    names = getattr(aval, "vma", ()) if kind is None else kind.varying
    return frozenset(names)


@contextlib.contextmanager
def settings_of(eqn: JaxprEqn) -> Iterator[None]:
    """Restore the settings under which the user's equation was traced.

    Among them are the names under which a profiler shows it.

    Yields:
        Nothing.
    """
    scope = str(eqn.source_info.name_stack)
    with (
        eqn.ctx.manager,
        jax.named_scope(scope) if scope else contextlib.nullcontext(),
    ):
        yield


def opened(jaxpr: Any) -> Body:
    """Split a jaxpr, open or closed, into the open one and its constants."""
    return getattr(jaxpr, "jaxpr", jaxpr), getattr(jaxpr, "consts", ())


def sub_jaxprs(params: object) -> Iterator[Jaxpr]:
    """Yield every jaxpr in an equation's parameters, in order."""
    if isinstance(params, _JAXPRS):
        yield opened(params)[0]
    elif isinstance(params, dict):
        for value in params.values():
            yield from sub_jaxprs(value)
    elif isinstance(params, tuple | list):
        for value in params:
            yield from sub_jaxprs(value)


def used_inputs(jaxpr: Jaxpr) -> list[bool]:
    """Tell for each input of a program whether some output depends on it."""
    _, used = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    return list(used)


def _body(eqn: JaxprEqn, name: str) -> Body:
    return opened(_param(eqn, name))


def _param(eqn: JaxprEqn, *names: str) -> Any:
    """Return the first of these parameters that there is, the newest name first."""
    for name in names:
        if name in eqn.params:
            return eqn.params[name]
    raise UnsupportedProgram(
        f"JAX {jax.__version__} describes {eqn.primitive.name} by "
        f"{', '.join(sorted(eqn.params))}, without {' or '.join(names)}. Use a release "
        "of JAX that the README names, or a newer theseus-track."
    )
