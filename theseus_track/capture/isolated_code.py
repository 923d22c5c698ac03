"""Values of Python as JSON and a list of arrays, and back; nothing is ever pickled."""

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.core.scope import DenyList

from theseus_track.capture.frameworks import nnx_in_use
from theseus_track.errors import BadInput

__all__ = ["Decoder", "Encoder", "name_of"]

_PUBLIC = ("jax.lax", "jax.nn", "jax.numpy", "jax.nn.initializers", "flax.linen")
_TRUSTED = ("jax", "flax", "optax")


class Encoder:
    """Turns values into JSON.

    Attributes:
        arrays: The arrays met, in the order of their numbers.
    """

    def __init__(self) -> None:
        self.arrays: list[np.ndarray[Any, Any]] = []
        self._numbers: dict[int, int] = {}
        self._known: dict[int, int] = {}
        # So that no identity above is used again.
        self._alive: list[Any] = []

    def encode(self, value: Any, place: str) -> Any:
        """Return the JSON of a value.

        Args:
            value: Numbers, texts, arrays, dtypes, importable functions and classes,
                Linen and NNX modules, and containers of these.
            place: What the value is called in a message.

        Raises:
            BadInput: When there is no way to write it without pickling.
        """
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, jax.Array | np.ndarray):
            return self._array(value)
        if isinstance(value, list | tuple | dict | set | frozenset | DenyList):
            return self._container(value, place)
        if isinstance(value, nn.Module):
            return self._once(value, lambda: self._linen(value, place))
        if nnx_in_use():
            from theseus_track.capture import isolated_nnx_code  # noqa: PLC0415 - it imports flax.nnx

            if isolated_nnx_code.is_ours(value):
                return self._once(
                    value, lambda: isolated_nnx_code.encode(self, value, place)
                )
        return self._other(value, place)

    def _array(self, value: Any) -> Any:
        if isinstance(value, jax.Array) and jnp.issubdtype(
            value.dtype, jax.dtypes.prng_key
        ):
            impl = str(jax.random.key_impl(value))
            return {"key": impl, "data": self._array(jax.random.key_data(value))}
        if id(value) not in self._numbers:
            self._alive.append(value)
            self._numbers[id(value)] = len(self.arrays)
            self.arrays.append(np.asarray(value))
        host = isinstance(value, np.ndarray)
        return {"array": self._numbers[id(value)], **({"host": True} if host else {})}

    def _container(self, value: Any, place: str) -> Any:
        if isinstance(value, DenyList):
            return {"deny": self.encode(value.deny, place)}
        if isinstance(value, dict):
            pairs = [
                [self.encode(k, place), self.encode(v, f"{place}[{k!r}]")]
                for k, v in value.items()
            ]
            return {"dict": pairs}
        kind = type(value).__name__
        if type(value) not in (list, tuple, set, frozenset):
            raise BadInput(_refusal(value, place))
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return {kind: [self.encode(x, f"{place}[{i}]") for i, x in enumerate(items)]}

    def _once(self, value: Any, build: Callable[[], Any]) -> Any:
        """Write an object once, and afterwards only its number."""
        if id(value) in self._known:
            return {"same": self._known[id(value)]}
        self._alive.append(value)
        number = self._known[id(value)] = len(self._known)
        return {"number": number, **build()}

    def _linen(self, module: nn.Module, place: str) -> Any:
        own = {}
        for field in fields(module):
            value = getattr(module, field.name, None)
            if not field.init or field.name == "parent" or value is field.default:
                continue
            where = f"{place}.{field.name}"
            if callable(value) and field.name.endswith("_init"):
                # The parameters are there already: what drew them is not needed.
                own[field.name] = {"init": True}
            else:
                own[field.name] = self.encode(value, where)
        return {"linen": _reference(type(module), place), "fields": own}

    def _other(self, value: Any, place: str) -> Any:
        if isinstance(value, np.generic):
            return {"array": self._array(np.asarray(value))["array"], "scalar": True}
        if isinstance(value, functools.partial):
            parts = [value.func, value.args, value.keywords]
            return {"partial": [self.encode(part, place) for part in parts]}
        if isinstance(value, np.dtype) or _is_dtype(value):
            return {"dtype": jnp.dtype(value).name}
        if callable(value):
            return {"import": _reference(value, place)}
        raise BadInput(_refusal(value, place))


def _is_dtype(value: Any) -> bool:
    if isinstance(value, type) and issubclass(value, np.generic):
        return True
    return type(value) is type(jnp.float32)


def name_of(value: Any) -> str:
    """Return the qualified name of a class or a function."""
    module = getattr(value, "__module__", "?")
    return f"{module}:{getattr(value, '__qualname__', type(value).__qualname__)}"


def _reference(value: Any, place: str) -> str:
    """Return where a class or a function can be imported from."""
    name = getattr(value, "__name__", "")
    public = [
        module
        for module in _PUBLIC
        if getattr(sys.modules.get(module), name, None) is value
    ]
    reference = f"{public[0]}:{name}" if public else name_of(value)
    module, _, attribute = reference.partition(":")
    if _attribute(sys.modules.get(module), attribute) is not value:
        raise BadInput(
            f"{place} is {reference}, which cannot be imported by that name. Define it "
            "at the top level of a module."
        )
    return reference


def _attribute(module: Any, names: str) -> Any:
    for name in names.split("."):
        module = getattr(module, name, None)
    return module


def _is_module_class(value: Any) -> bool:
    if not isinstance(value, type):
        return False
    if issubclass(value, nn.Module):
        return True
    from flax import nnx  # noqa: PLC0415 - only where it is not Linen's

    return issubclass(value, nnx.Module)


def _refusal(value: Any, place: str) -> str:
    return (
        f"{place} is a {name_of(type(value))}, which cannot be saved: nothing is "
        "pickled. Numbers, texts, arrays, plain containers, modules and importable "
        "functions can."
    )


class Decoder:
    """Turns the JSON of an `Encoder` back into values.

    Args:
        arrays: The arrays by number.
        layer: Where the layer's class is imported from. Classes and functions may
            come from its package, beside JAX and Flax.

    Raises:
        BadInput: When the layer's class is not there, or is none of Flax.
    """

    def __init__(self, arrays: list[np.ndarray[Any, Any]], layer: str) -> None:
        self._arrays = arrays
        self._known: dict[int, Any] = {}
        self._packages = frozenset(
            {*_TRUSTED, layer.partition(":")[0].partition(".")[0]}
        )
        # Else a file could name any package as the layer's.
        if not _is_module_class(self.imported(layer)):
            raise BadInput(f"The file asks for {layer!r}, which is no module of Flax.")

    def decode(self, code: Any) -> Any:
        """Return the value of a JSON.

        Raises:
            BadInput: When it is none of ours, or names what it may not.
        """
        if code is None or isinstance(code, bool | int | str):
            return code
        if not isinstance(code, dict) or not code:
            raise BadInput(f"{code!r} is no value of an isolated call.")
        if "same" in code:
            return self._known[code["same"]]
        for kind, read in self._readers.items():
            if kind in code:
                return read(self, code)
        from theseus_track.capture import isolated_nnx_code  # noqa: PLC0415 - it imports flax.nnx

        return isolated_nnx_code.decode(self, code)

    def keep(self, code: Mapping[str, Any], value: Any) -> Any:
        """Note what an object was read as, for those that are the same."""
        self._known[code["number"]] = value
        return value

    def imported(self, reference: str, base: type | None = None) -> Any:
        """Import a class or a function by its name.

        Args:
            reference: Such as "jax.nn:gelu".
            base: What it must be a subclass of; None for a function or any class.
        """
        module, colon, names = reference.partition(":")
        if not colon or not self._is_trusted(module):
            raise BadInput(self._untrusted(reference))
        try:
            value = _attribute(importlib.import_module(module), names)
        except ImportError as error:
            raise BadInput(
                f"The file needs {reference!r}, which cannot be imported here: {error}."
            ) from error
        fits = callable(value) if base is None else isinstance(value, type)
        if not fits or (base is not None and not issubclass(value, base)):
            raise BadInput(f"The file asks for {reference!r}, which is not fit for it.")
        # A module of JAX has `os` as an attribute: where a thing is defined counts.
        if not self._is_trusted(str(getattr(value, "__module__", ""))):
            raise BadInput(self._untrusted(reference))
        return value

    def _is_trusted(self, module: str) -> bool:
        return module.partition(".")[0] in self._packages

    def _untrusted(self, reference: str) -> str:
        known = ", ".join(sorted(self._packages))
        return f"The file asks for {reference!r}; only {known} may be imported."

    def _array(self, code: Mapping[str, Any]) -> Any:
        array = self._arrays[code["array"]]
        if code.get("scalar"):
            return array[()]
        return array if code.get("host") else jnp.asarray(array)

    def _key(self, code: Mapping[str, Any]) -> Any:
        return jax.random.wrap_key_data(self._array(code["data"]), impl=code["key"])

    def _linen(self, code: Mapping[str, Any]) -> Any:
        cls = self.imported(code["linen"], nn.Module)
        given = {k: self.decode(v) for k, v in code["fields"].items()}
        return self.keep(code, cls(parent=None, **given))

    def _partial(self, code: Mapping[str, Any]) -> Any:
        function, args, kwargs = map(self.decode, code["partial"])
        return functools.partial(function, *args, **kwargs)

    _readers: Mapping[str, Callable[["Decoder", Any], Any]] = {
        "float": lambda _, code: float.fromhex(code["float"]),
        "key": _key,
        "array": _array,
        "list": lambda self, code: list(map(self.decode, code["list"])),
        "tuple": lambda self, code: tuple(map(self.decode, code["tuple"])),
        "set": lambda self, code: set(map(self.decode, code["set"])),
        "frozenset": lambda self, code: frozenset(map(self.decode, code["frozenset"])),
        "dict": lambda self, code: {
            self.decode(k): self.decode(v) for k, v in code["dict"]
        },
        "deny": lambda self, code: DenyList(self.decode(code["deny"])),
        "dtype": lambda _, code: jnp.dtype(code["dtype"]),
        "init": lambda _, _code: nn.initializers.zeros,
        "import": lambda self, code: self.imported(code["import"]),
        "partial": _partial,
        "linen": _linen,
    }
