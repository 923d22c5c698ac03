"""Which modules a forward pass calls, and their parameter counts, from shapes alone."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import jax
from flax import nnx

from theseus_track.capture import Call, Path, discover
from theseus_track.errors import BadInput, NotFound, TheseusError, describe_unknown
from theseus_track.jobs.forward import first_line
from theseus_track.jobs.recipe import Recipe

__all__ = ["ModuleOutline", "outline"]

Names = tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModuleOutline:
    """One module of a model, as a forward pass calls it.

    Attributes:
        path: Where it is in the parameter tree, such as "blocks_0/attn"; "" is the
            root. A scanned stack is one module, and `layers` names its layers.
        cls: The qualified name of its class.
        parameters: How many numbers its parameters and those below it have, all
            layers of a stack together.
        layers: The path that names each layer of a scanned stack, "blocks[0:12]/attn";
            None outside of one.
        calls: Its calls, in program order.
    """

    path: str
    cls: str
    parameters: int
    layers: str | None
    calls: tuple[Call, ...]

    def to_json(self) -> dict[str, object]:
        """Return what strict JSON can hold, all shapes included."""
        return {
            "path": self.path,
            "class": self.cls,
            "parameters": self.parameters,
            "layers": self.layers,
            "calls": [
                {
                    "path": call.path,
                    "layers": call.layers,
                    "axes": list(call.axes),
                    "inputs": {k: _leaves(v) for k, v in call.inputs.items()},
                    "output": _leaves(call.output),
                }
                for call in self.calls
            ],
        }


def outline(
    recipe: Recipe, *, cls: str | None = None, methods: tuple[str, ...] = ("__call__",)
) -> list[ModuleOutline]:
    """Trace a forward pass and describe every module that it calls.

    Nothing is computed, and no parameter is allocated: a model of any size is
    described on any machine.

    Args:
        recipe: The forward pass.
        cls: Only modules of the class of this name or of a subclass: "Attention" or
            "my_model.Attention". None for all.
        methods: Names of the methods whose calls count.

    Returns:
        The modules, each before those inside it.

    Raises:
        BadInput: When the forward pass cannot be traced; names what it raised.
        NotFound: When no module of that class is called; names those that are.
    """
    seen: set[str] = set()

    def named(module: Any) -> bool:
        names = _class_names(type(module))
        seen.update(names[:1])
        return cls is None or cls in names

    try:
        calls = discover(
            recipe.eval_step,
            recipe.variables,
            recipe.make_batch(),
            target=named,
            methods=methods,
        )
        counts = _counts(recipe.variables)
    except TheseusError:
        raise
    except Exception as error:  # The user's own code, which may raise anything.
        raise BadInput(
            f"The forward pass cannot be traced: {type(error).__name__}: "
            f"{first_line(error)}"
        ) from error
    if not calls:
        shown = ", ".join(methods)
        if cls is None or cls in seen:
            raise NotFound(f"No call of {shown} was found in the forward pass.")
        raise NotFound(describe_unknown("class", cls, seen))
    return _by_module(calls, counts)


def _by_module(
    calls: Mapping[str, Call], counts: Mapping[Names, int]
) -> list[ModuleOutline]:
    groups: dict[Names, list[Call]] = {}
    for text, call in calls.items():
        groups.setdefault(Path.parse(text).names, []).append(call)
    return [
        ModuleOutline(
            path=str(Path(names)),
            cls=group[0].cls,
            parameters=counts.get(names, 0),
            layers=_layers(group[0]),
            calls=tuple(group),
        )
        for names, group in groups.items()
    ]


def _layers(call: Call) -> str | None:
    """Return the place of a call in a stack, without its method and number."""
    if call.layers is None:
        return None
    path = Path.parse(call.layers)
    return str(Path(path.names, layers=path.layers))


def _class_names(cls: type) -> list[str]:
    """Return the names that a class goes by, its own first, then those of its bases."""
    return [
        name
        for one in cls.__mro__
        for name in (one.__name__, f"{one.__module__}.{one.__qualname__}")
    ]


def _counts(variables: Any) -> Counter[Names]:
    """Count the numbers of all parameters at and below each place of the model."""
    counts: Counter[Names] = Counter()
    for names, size in _parameters(variables):
        for depth in range(len(names) + 1):
            counts[names[:depth]] += size
    return counts


def _parameters(variables: Any) -> Iterator[tuple[Names, int]]:
    """Yield name and size of each parameter: `nnx.Param`s, else what is in "params".

    A tree without a collection of that name is taken for the parameters themselves.
    """
    found = [
        (tuple(map(_key, path)), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(variables, is_leaf=_whole)
    ]
    collected = any("params" in path for path, _ in found)
    for path, leaf in found:
        if isinstance(leaf, nnx.Module):
            for inner, value in nnx.to_flat_state(nnx.state(leaf, nnx.Param)):
                yield tuple(map(str, inner)), _size(value)
            continue
        if isinstance(leaf, nnx.Variable) and not isinstance(leaf, nnx.Param):
            continue
        if "params" in path:
            yield path[path.index("params") + 1 :], _size(leaf)
        elif isinstance(leaf, nnx.Param) or not collected:
            yield path, _size(leaf)


def _whole(value: object) -> bool:
    return isinstance(value, nnx.Module | nnx.Variable)


def _key(key: Any) -> str:
    """Return what stands in a path for a step of a pytree."""
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def _size(leaf: Any) -> int:
    return sum(math.prod(array.shape) for array in jax.tree.leaves(leaf))


def _leaves(tree: Any) -> list[dict[str, object]]:
    return [
        {
            "leaf": jax.tree_util.keystr(path),
            "shape": list(leaf.shape),
            "dtype": str(leaf.dtype),
        }
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    ]
