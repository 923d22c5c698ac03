"""The one registry: key -> class, for analyses and jobs, ours and third parties'.

Third parties register by the entry point group `theseus_track.analyses`, whose
names are the keys; an entry is imported when its key is asked for.
"""

import inspect
import logging
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeVar

from theseus_track.errors import NotFound, RegistryError, describe_unknown

__all__ = ["analysis", "lookup", "place_of", "register", "registered_keys"]

ENTRY_POINTS = "theseus_track.analyses"

_log = logging.getLogger(__name__)
_classes: dict[str, type] = {}

C = TypeVar("C", bound=type)


def analysis(key: str) -> Callable[[C], C]:
    """Register an analysis class under a key.

    Args:
        key: What the CLI and the ledger call it, such as "my/gpt/activations".

    Returns:
        A decorator that returns the class itself.

    Raises:
        RegistryError: When the key is taken by another class; names both places.

    Example:
        ```python
        from theseus_track.analysis import AnalysisBase, analysis

        @analysis("docs/registry/example")
        class Example(AnalysisBase):
            def analyze(self, layer, inputs):
                return inputs.output
        ```
    """

    def decorate(cls: C) -> C:
        register(key, cls)
        return cls

    return decorate


def register(key: str, cls: type) -> None:
    """Put a class under a key; the same name from the same file replaces silently.

    Args:
        key: A text without blanks; slashes group keys.
        cls: An analysis or a job.

    Raises:
        RegistryError: When the key is malformed or taken by another class.
    """
    if not isinstance(key, str) or not key or any(c.isspace() for c in key):
        raise RegistryError(
            f"The key {key!r} cannot be used: a key is a text without blanks, such "
            "as 'my/gpt/activations'."
        )
    taken = _classes.get(key)
    if taken is not None and _identity(taken) != _identity(cls):
        raise RegistryError(
            f"The key {key!r} is taken by {place_of(taken)}; {place_of(cls)} cannot "
            "have it too. Choose another key."
        )
    _classes[key] = cls
    # A plain attribute, not a field: the ledger reads the key back from the class.
    cls.KEY = key  # type: ignore[attr-defined]


def lookup(key: str) -> type:
    """Return the class that is registered under a key.

    Args:
        key: A registered key, or the key of an installed entry point.

    Returns:
        The class.

    Raises:
        NotFound: When there is none; lists near matches.
        RegistryError: When the entry point of that key cannot be imported.
    """
    if key in _classes:
        return _classes[key]
    entry = _installed().get(key)
    if entry is None:
        raise NotFound(describe_unknown("key", key, registered_keys()))
    try:
        loaded = entry.load()
    except Exception as error:
        _log.warning(
            "The plugin %s (%s) cannot be loaded: %r.", key, entry.value, error
        )
        raise RegistryError(
            f"The entry point {key!r} = {entry.value!r} cannot be imported: {error!r}. "
            "Repair or uninstall the package that provides it."
        ) from error
    _classes.setdefault(key, loaded)
    return _classes[key]


def registered_keys() -> list[str]:
    """List every key, registered or installed, without importing any plugin."""
    return sorted({*_classes, *_installed()})


def place_of(cls: type) -> str:
    """Say where a class is, as `module.Class (file)`."""
    return f"{cls.__module__}.{cls.__qualname__} ({_file_of(cls)})"


def _identity(cls: type) -> tuple[str, str]:
    # A notebook cell gives a class a new file name each time it runs, and a file
    # loaded by path another module name; the qualified name and the file decide.
    return cls.__qualname__, _file_of(cls)


def _file_of(cls: type) -> str:
    try:
        path = inspect.getfile(cls)
    except (TypeError, OSError):
        return cls.__module__
    if "ipykernel" in path or path.startswith("<"):
        return cls.__module__
    return str(Path(path).resolve())


def _installed() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
