"""What is asked for, what was found, and what went wrong: the records of capture."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import jax

from theseus_track.capture.marked import Marked, Sown, Tapped
from theseus_track.errors import AnalysisFault, BadInput, TheseusError

if TYPE_CHECKING:
    from theseus_track.capture.edits import Edits

__all__ = [
    "Call",
    "Captures",
    "Fault",
    "Site",
    "SiteCapture",
    "Target",
    "describe_target",
    "matches",
]

Target = type | tuple[type, ...] | Callable[[Any], bool]
"""What names modules: a class, a tuple of classes, or a predicate on the module.

`Tapped` and `Sown` name marked values instead.
"""
Phase = Literal["select", "analyze", "trace", "combine", "edit"]


@dataclass(frozen=True, kw_only=True)
class Site:
    """One question about the calls of some modules.

    Attributes:
        target: A module class, a tuple of classes, or a predicate on the module.
        select: Called once per trace with the paths of the target's calls, in
            program order; returns one path or several. Calls in a scanned stack are
            one path, "blocks/attn"; "blocks[3]/attn" and "blocks[2:5]/attn" may be
            returned instead, to look at these layers only.
        analyze: Called while tracing, at each selected call, with an isolated view
            of the layer and the inputs of the call. Returns a pytree of arrays and
            numbers. What it does to the layer stays in the view.
        methods: Names of the methods whose calls count.
        max_bytes: Upper limit of all values that the site keeps, in bytes; None
            for no limit.
        whole: Take each selected call whole, as an `Isolated`, and do not run `analyze`
            at the call. Only outside of loops, branches and `shard_map`.
        edits: What is edited in a second run of the function, from the same arguments,
            of which only the values of this site are kept: rules by path, as `edit`
            takes them, where `*` and `?` may stand for parts of names; or a `Grid`,
            for many such runs as one batch. None for the plain run alone. Sites with
            the same edits share a run.
    """

    target: Target
    select: Callable[[list[str]], str | Iterable[str]]
    analyze: Callable[[Any, Any], Any]
    methods: tuple[str, ...] = ("__call__",)
    max_bytes: int | None = None
    whole: bool = False
    edits: "Edits | None" = None

    def __post_init__(self) -> None:
        """Refuse a target, methods or limit that can match nothing."""
        check_target(self.target)
        if isinstance(self.methods, str) or not self.methods:
            raise BadInput(
                f"methods must be a non-empty tuple of names, not {self.methods!r}."
            )
        if self.max_bytes is not None and self.max_bytes < 0:
            raise BadInput(f"max_bytes must be at least 0, not {self.max_bytes!r}.")


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a module, found by tracing.

    Attributes:
        path: Where it happens, as in the parameter tree.
        cls: Qualified name of the module's class.
        method: The method called.
        axes: Names of the axes that loops and `vmap` put in front of every value
            taken here, such as "scan12".
        inputs: Arguments by parameter name; arrays as shapes, other leaves as None.
            Shapes are those inside the loop, without the axes.
        output: What it returns, in the same way.
        layers: Where the call is part of a scanned stack, the path of all its layers
            as a slice: "blocks[0:12]/attn" beside `path` "blocks/attn". An index or
            a part of the slice in its place selects those layers only. Else None.
    """

    path: str
    cls: str
    method: str
    axes: tuple[str, ...]
    inputs: Mapping[str, Any]
    output: Any
    layers: str | None = None


@dataclass(frozen=True)
class Fault:
    """Why a site has no values.

    Attributes:
        phase: What failed.
        message: One line that names the site, and path and class where known.
        traceback: The exception's traceback as text; empty if there was none.
        error: What `strict` raises.
    """

    phase: Phase
    message: str
    traceback: str = ""
    error: type[TheseusError] = field(default=AnalysisFault, repr=False)

    def exception(self) -> TheseusError:
        """Return the exception that `strict` raises for this fault."""
        detail = f"\n\n{self.traceback}" if self.traceback else ""
        return self.error(self.message + detail)


@jax.tree_util.register_pytree_with_keys_class
@dataclass(frozen=True, kw_only=True)
class SiteCapture:
    """What one site took out of one evaluation.

    Attributes:
        values: What `analyze` returned, by path, in program order.
        axes: By path, the names of the leading axes of the values.
        valid: By path, whether the call was reached; only for calls inside `cond`
            and while loops. A value that was not reached is zero.
        paths: Paths of all of the target's calls, those of a stack once.
        selected: Paths that `select` chose.
        single: Whether `select` returned one path as a text, not several.
        fault: Why there are no values; None if there are.
        edited: What it took out of the edited run; of a grid by the edited path, with
            the masks as the first axis. None where there are no edits.
    """

    values: dict[str, Any] = field(default_factory=dict)
    axes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    valid: dict[str, Any] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    selected: tuple[str, ...] = ()
    single: bool = False
    fault: Fault | None = None
    edited: "SiteCapture | Captures | None" = None

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Split into arrays and the static rest (JAX's protocol)."""
        # Values go as a list: JAX sorts the keys of dicts, and program order counts.
        key = jax.tree_util.GetAttrKey
        arrays = (
            (key("values"), list(self.values.values())),
            (key("valid"), list(self.valid.values())),
            (key("edited"), self.edited),
        )
        rest = (
            tuple(self.values),
            tuple(self.valid),
            tuple(self.axes.items()),
            self.paths,
            self.selected,
            self.single,
            self.fault,
        )
        return arrays, rest

    @classmethod
    def tree_unflatten(
        cls, rest: tuple[Any, ...], arrays: Iterable[Any]
    ) -> "SiteCapture":
        """Put arrays and the static rest together (JAX's protocol)."""
        names, guarded, axes, paths, selected, single, fault = rest
        values, valid, edited = arrays
        return cls(
            values=dict(zip(names, values, strict=True)),
            axes=dict(axes),
            valid=dict(zip(guarded, valid, strict=True)),
            paths=paths,
            selected=selected,
            single=single,
            fault=fault,
            edited=edited,
        )


@jax.tree_util.register_pytree_with_keys_class
class Captures(Mapping[str, SiteCapture]):
    """What every site took out of one evaluation, by the site's name.

    A pytree: names, paths, axes and faults are static, values and flags are leaves.
    """

    def __init__(self, sites: Mapping[str, SiteCapture]) -> None:
        self._sites = dict(sites)

    def __getitem__(self, name: str) -> SiteCapture:
        """Return what the site of that name took."""
        return self._sites[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in the order in which the sites were given."""
        return iter(self._sites)

    def __len__(self) -> int:
        """Return the number of sites."""
        return len(self._sites)

    def __repr__(self) -> str:
        """Show the sites and what they hold."""
        return f"Captures({self._sites!r})"

    @property
    def faults(self) -> dict[str, Fault]:
        """The faults, by the name of the site that has one."""
        return {name: site.fault for name, site in self._sites.items() if site.fault}

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Split into the sites and their names (JAX's protocol)."""
        key = jax.tree_util.DictKey
        sites = tuple((key(name), site) for name, site in self._sites.items())
        return sites, tuple(self._sites)

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], sites: Iterable[Any]) -> "Captures":
        """Put the sites and their names together (JAX's protocol)."""
        return cls(dict(zip(names, sites, strict=True)))


def check_target(target: object) -> None:
    """Refuse what can be no target.

    Raises:
        BadInput: When it is neither a class, a tuple of classes nor a predicate.
    """
    classes = isinstance(target, tuple) and all(isinstance(c, type) for c in target)
    if not (callable(target) or (classes and target)):
        raise BadInput(
            f"A target is a module class, a tuple of classes or a predicate on the "
            f"module, not {target!r}."
        )


def matches(target: Target | None, module: object) -> bool:
    """Tell whether a module is what a target names; None names every module."""
    if isinstance(module, Marked) or isinstance(target, Tapped | Sown):
        # Other predicates ask modules for what a marked value has not.
        return isinstance(target, Tapped | Sown) and target(module)
    if target is None:
        return True
    if isinstance(target, type | tuple):
        return isinstance(module, target)
    return bool(target(module))


def describe_target(target: Target | None) -> str:
    """Name a target in a message."""
    if target is None:
        return "any module"
    if isinstance(target, tuple):
        return " or ".join(one.__name__ for one in target)
    if isinstance(target, Tapped | Sown):
        return repr(target)
    return getattr(target, "__name__", repr(target))
