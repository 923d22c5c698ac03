"""One call taken out of a model: what is needed to make it again, alone."""

import os
import pathlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from theseus_track.capture.inputs import Inputs, spread
from theseus_track.capture.isolated_file import read, write
from theseus_track.capture.origin import Frame, Opened, Origin
from theseus_track.errors import BadInput, describe_unknown

__all__ = ["Isolated", "load", "same_structure"]


@dataclass(frozen=True, eq=False)
class _Static:
    """What is no array; compared by identity, so that jit may cache on it."""

    origin: Origin
    frame: Frame
    tree: Any
    rest: tuple[Any, ...]
    places: tuple[int, ...]


@jax.tree_util.register_pytree_node_class
class Isolated:
    """One call of one layer, with everything that it needs; made by `isolate`.

    Calling it makes the same call again, as often as you like: parameters, state and
    random streams start each time as they were. It is a pytree, so it can be an
    argument of jitted and differentiated functions.

    Example:
        >>> import flax.linen as nn, jax, jax.numpy as jnp
        >>> from theseus_track.capture import isolate
        >>> model = nn.Sequential([nn.Dense(3), nn.Dense(2)])
        >>> x = jnp.ones((1, 4))
        >>> variables = model.init(jax.random.key(0), x)
        >>> last = isolate(model.apply, "layers_1")(variables, x)
        >>> bool((last() == model.apply(variables, x)).all())
        True
        >>> last(inputs=jnp.zeros((1, 3))).tolist()
        [[0.0, 0.0]]
    """

    def __init__(
        self, origin: Origin, frame: Frame, content: Mapping[str, Any]
    ) -> None:
        leaves, tree = jax.tree.flatten(dict(content))
        places = tuple(i for i, leaf in enumerate(leaves) if _is_array(leaf))
        rest = tuple(None if _is_array(leaf) else leaf for leaf in leaves)
        self._static = _Static(origin, frame, tree, rest, places)
        self._arrays: tuple[Any, ...] = tuple(leaves[i] for i in places)

    @property
    def path(self) -> str:
        """Where the call happens in the model."""
        return self._static.origin.path

    @property
    def cls(self) -> str:
        """Name of the layer's class."""
        return self._static.origin.cls.rpartition(".")[2]

    @property
    def origin(self) -> Origin:
        """Where the call comes from."""
        return self._static.origin

    @property
    def frame(self) -> Frame:
        """All of the layer but its arrays."""
        return self._static.frame

    @property
    def content(self) -> dict[str, Any]:
        """Parameters, state, inputs, output and the state afterwards, as one pytree."""
        leaves = list(self._static.rest)
        for place, array in zip(self._static.places, self._arrays, strict=True):
            leaves[place] = array
        content: dict[str, Any] = jax.tree.unflatten(self._static.tree, leaves)
        return content

    @property
    def layer(self) -> Any:
        """The layer as it was at the entry of the call, bound and with its own state.

        Anew each time, so that nothing you do to it comes back.
        """
        return self._open().layer

    @property
    def inputs(self) -> Inputs:
        """The arguments by name, defaults applied; and the output."""
        return Inputs(self._thawed(), output=self.output)

    @property
    def output(self) -> Any:
        """What the real call returned."""
        return self.content["output"]

    @property
    def params(self) -> Any:
        """The parameters; those of a layer from elsewhere are under "/its/path"."""
        return self.content["params"]

    @property
    def state(self) -> Any:
        """All else that the layer held at the entry: statistics, counters, RNG keys."""
        return self.content["state"]

    @property
    def state_after(self) -> Any:
        """What became of `state` in the real call."""
        return self.content["after"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make the call again, on other inputs where some are given.

        Args:
            *args: Replace the first inputs.
            **kwargs: Replace inputs by name.

        Returns:
            What the layer returns. With the inputs as they were it is what the real
            call returned, bit for bit, where both run alike: a function that was not
            jitted operation by operation, a jitted one under `jax.jit`. Between the
            two, XLA may round differently.

        Raises:
            BadInput: When the method has no such parameter.
        """
        return self.run(*args, **kwargs)[0]

    def run(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """As calling it, but also return the state afterwards."""
        opened = self._open()
        method = getattr(type(opened.layer), self.origin.method)
        inputs = {**self._thawed(), **self._named(args, kwargs)}
        given, named = spread(method, inputs)
        return method(opened.layer, *given, **named), opened.state()

    def replace(
        self, *, params: Any = None, state: Any = None, **inputs: Any
    ) -> "Isolated":
        """Return the same call with other parameters, state or inputs.

        Args:
            params: Of the structure of `self.params`; None keeps them.
            state: Of the structure of `self.state`; None keeps it.
            **inputs: Inputs by name.

        Returns:
            The new call; its `output` and `state_after` remain those of the real one.

        Raises:
            BadInput: When a structure or a name does not fit.
        """
        content = self.content
        for name, value in (("params", params), ("state", state)):
            if value is not None:
                same_structure(name, value, content[name])
                content[name] = value
        content["inputs"] = {**content["inputs"], **self._named((), inputs)}
        return Isolated(self.origin, self.frame, content)

    def moved(self, path: str) -> "Isolated":
        """Return the same call under another path."""
        return Isolated(replace(self.origin, path=path), self.frame, self.content)

    def save(self, directory: str | os.PathLike[str]) -> pathlib.Path:
        """Write the call to a directory, for `load`; nothing is pickled.

        Args:
            directory: Must not exist, or be empty. It appears when it is complete.

        Returns:
            The directory.

        Raises:
            BadInput: When the directory is in use, or the layer holds what cannot be
                written, such as a function that has no importable name.
        """
        return write(self.origin, self.frame, self.content, directory)

    def tree_flatten(self) -> tuple[tuple[Any, ...], _Static]:
        """Split into arrays and the static rest (JAX's protocol)."""
        return self._arrays, self._static

    @classmethod
    def tree_unflatten(cls, static: _Static, arrays: Iterable[Any]) -> "Isolated":
        """Put arrays and the static rest together (JAX's protocol)."""
        made = object.__new__(cls)
        made._static = static
        made._arrays = tuple(arrays)
        return made

    def __repr__(self) -> str:
        """Show where the call comes from, and what it took and gave."""
        inputs = self.content["inputs"]
        given = ", ".join(f"{name}={_told(inputs[name])}" for name in self.origin.names)
        place = f"{self.path!r}{list(self.origin.index) if self.origin.index else ''}"
        return f"Isolated({place}: {self.cls}({given}) -> {_told(self.output)})"

    def _repr_html_(self) -> str:
        from theseus_track.capture.isolated_html import html  # noqa: PLC0415 - only for notebooks

        return html(self)

    def _open(self) -> Opened:
        content = self.content
        return self.frame.open(content["params"], content["state"])

    def _thawed(self) -> dict[str, Any]:
        # JAX sorts the keys of dicts.
        inputs = self.frame.thaw(self.content["inputs"])
        return {name: inputs[name] for name in self.origin.names}

    def _named(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        names = self.origin.names
        if len(args) > len(names):
            raise BadInput(
                f"{len(args)} inputs given, but {self.path!r} takes {len(names)}: "
                f"{', '.join(names) or 'none'}."
            )
        given = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names or name in given:
                raise BadInput(
                    describe_unknown("input", name, names)
                    if name not in names
                    else f"The input {name!r} of {self.path!r} is given twice."
                )
            given[name] = value
        return given


def load(directory: str | os.PathLike[str], *, cls: type | None = None) -> Isolated:
    """Read a call that `Isolated.save` wrote.

    Classes and functions are imported by name, from JAX, Flax and the package of the
    layer's class only. Load what you trust: its package is imported.

    Args:
        directory: Where it is.
        cls: The class that the layer must be of; None for the one in the file.

    Returns:
        The call, with arrays on the default device.

    Raises:
        NotFound: When there is no such file.
        BadInput: When it is not one of ours, was changed since, or needs what is not
            there.
    """
    call = Isolated(*read(directory))
    if cls is not None and not isinstance(call.layer, cls):
        raise BadInput(
            f"{str(directory)!r} holds a {call.origin.cls}, not a {cls.__qualname__}."
        )
    return call


def same_structure(name: str, value: Any, expected: Any) -> None:
    """Refuse a pytree that has not the structure of another.

    Raises:
        BadInput: When the structures differ.
    """
    structures: list[Any] = [jax.tree.structure(tree) for tree in (value, expected)]
    if structures[0] != structures[1]:
        raise BadInput(
            f"{name} has the structure {structures[0]}, but the call needs "
            f"{structures[1]}; change values, not names."
        )


def _is_array(leaf: object) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct)


def _told(value: Any) -> str:
    def leaf(x: Any) -> Any:
        return f"{x.dtype}{list(x.shape)}" if _is_array(x) else x

    return str(jax.tree.map(leaf, value)).replace("'", "")
