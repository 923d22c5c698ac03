"""Every public name has a docstring and a place in the reference."""

import importlib
import inspect
import types
import typing

import pytest

from tests.architecture.surface import layers, public_names


@pytest.mark.parametrize("layer", layers())
def test_a_layer_says_what_comes_in_and_what_goes_out(layer: str) -> None:
    module = importlib.import_module(layer)
    assert module.__doc__, f"{layer} has no docstring"
    first = module.__doc__.splitlines()[0]
    assert first.endswith("."), f"the first line of {layer} is no sentence: {first}"


@pytest.mark.parametrize("layer", [x for x in layers() if x != "theseus_analyses"])
def test_a_layer_lists_names_that_it_has(layer: str) -> None:
    module = importlib.import_module(layer)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert len(set(module.__all__)) == len(module.__all__) > 0


def test_every_public_name_has_a_docstring() -> None:
    bare = [
        f"{layer}.{name}"
        for layer, name, value in public_names()
        if _documents_itself(value) and not (inspect.getdoc(value) or "").strip()
    ]
    assert bare == []


def test_every_public_method_has_a_docstring() -> None:
    bare = [
        f"{layer}.{name}.{attribute}"
        for layer, name, value in public_names()
        if inspect.isclass(value)
        for attribute, member in vars(value).items()
        if not attribute.startswith("_")
        and isinstance(member, types.FunctionType | classmethod | property)
        and not (inspect.getdoc(getattr(value, attribute)) or "").strip()
    ]
    assert bare == []


@pytest.mark.slow  # builds the documentation
def test_every_public_name_is_in_the_reference(documented: set[str]) -> None:
    missing = [
        f"{layer}.{name}"
        for layer, name, value in public_names()
        if not name.startswith("_")
        and not {f"{layer}.{name}", _home(value)} & documented
    ]
    assert missing == []


def _home(value: object) -> str:
    """Return the full name of a function or class where it is written."""
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


def _documents_itself(value: object) -> bool:
    """Tell values with a docstring of their own from constants and type aliases."""
    if typing.get_origin(value) is not None:
        return False
    return inspect.isclass(value) or inspect.isroutine(value)
