"""What a method was called with, by parameter name, read-only."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

__all__ = ["Inputs", "bind", "frozen", "spread"]


class Inputs(Mapping[str, Any]):
    """The arguments of one call, as a mapping and as attributes; and its output.

    Every parameter of the method is there, with its default where the caller left
    it out. Containers are copies, so that changing one cannot reach the model. A
    parameter hides a mapping method of the same name (`inputs.keys` is the argument
    of an attention layer); one called `output` is at `inputs["output"]`.

    Example:
        >>> inputs = Inputs({"x": 1, "scale": 2.0}, output=2.0)
        >>> inputs.scale, inputs["x"], inputs.output, sorted(inputs)
        (2.0, 1, 2.0, ['scale', 'x'])
    """

    output: Any
    """What the method returned."""

    def __init__(self, arguments: Mapping[str, Any], *, output: Any = None) -> None:
        own = self.__dict__
        own.update(arguments)
        own["_arguments"] = dict(arguments)
        own["output"] = output

    def __getitem__(self, name: str) -> Any:
        """Return the argument of that name."""
        return self._arguments[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the parameter names in the order of the signature."""
        return iter(self._arguments)

    def __len__(self) -> int:
        """Return the number of parameters."""
        return len(self._arguments)

    def __getattr__(self, name: str) -> Any:
        """Say which parameters there are when one is asked for that is not there."""
        # Called only after the usual lookup failed. Copying and pickling ask for
        # dunder names before __init__ has run.
        if name.startswith("__") or "_arguments" not in self.__dict__:
            raise AttributeError(name)
        known = ", ".join(self._arguments) or "none"
        raise AttributeError(
            f"The call has no input {name!r}; its inputs are: {known}. What it "
            "returned is `output`."
        )

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: the inputs of a call are what they are."""
        raise AttributeError(f"Inputs are read-only; {name!r} cannot be set.")

    def __delattr__(self, name: str) -> None:
        """Refuse: the inputs of a call are what they are."""
        raise AttributeError(f"Inputs are read-only; {name!r} cannot be deleted.")

    def __dir__(self) -> list[str]:
        """List the parameter names and `output`."""
        return sorted({*self._arguments, "output"})

    def __repr__(self) -> str:
        """Show the arguments."""
        shown = ", ".join(
            f"{name}={value!r}" for name, value in self._arguments.items()
        )
        return f"Inputs({shown})"


def bind(
    method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Name the arguments of a call and apply the defaults.

    Args:
        method: The function as it stands in the class, `self` included.
        args: Positional arguments, without `self`.
        kwargs: Keyword arguments.

    Returns:
        Each parameter but `self`, in the order of the signature.
    """
    bound = inspect.signature(method).bind(None, *args, **kwargs)
    bound.apply_defaults()
    return dict(list(bound.arguments.items())[1:])


def spread(
    method: Callable[..., Any], arguments: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Turn named arguments back into those of a call, without `self`."""
    bound = inspect.signature(method).bind_partial(None)
    bound.arguments.update(arguments)
    return bound.args[1:], bound.kwargs


def frozen(value: Any) -> Any:
    """Copy the containers of a value; its numpy arrays cannot be written through."""
    try:
        return jax.tree.map(_locked, value)
    except (TypeError, ValueError):
        # JAX sorts the keys of dicts and cannot sort these.
        return value


def _locked(leaf: Any) -> Any:
    if not isinstance(leaf, np.ndarray):
        return leaf
    view = leaf.view()
    view.flags.writeable = False
    return view
