"""What people see of the package: its public names, layer by layer."""

import importlib
import pkgutil
from collections.abc import Iterator

import theseus_track


def layers() -> list[str]:
    """Return the modules whose `__all__` is public: both packages and each layer."""
    found = [
        f"theseus_track.{module.name}"
        for module in pkgutil.iter_modules(theseus_track.__path__)
        if not module.name.startswith("_")
    ]
    return ["theseus_track", *sorted(found), "theseus_analyses"]


def public_names() -> Iterator[tuple[str, str, object]]:
    """Yield each public name after its layer, with what it stands for."""
    for layer in layers():
        module = importlib.import_module(layer)
        for name in getattr(module, "__all__", ()):
            yield layer, name, getattr(module, name)
