"""The text that names a job in a ledger, so that another process finds it again."""

import hashlib
import inspect
import sys
from pathlib import Path

__all__ = ["file_module", "source_of", "spec_of"]


def spec_of(cls: type) -> str:
    """Return the text by which `load_job` finds a class.

    Args:
        cls: A job.

    Returns:
        `module:Class`, or `file.py:Class` with an absolute path where the class
        comes from a script or from a file that was loaded by its path.
    """
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is not None and cls.__module__ in ("__main__", file_module(Path(file))):
        return f"{Path(file).resolve()}:{cls.__qualname__}"
    return f"{cls.__module__}:{cls.__qualname__}"


def source_of(cls: type) -> str | None:
    """Return the source text of the file that defines a class, or None without one."""
    try:
        file = inspect.getsourcefile(cls)
        return None if file is None else Path(file).read_text(encoding="utf-8")
    except (TypeError, OSError, UnicodeDecodeError):
        return None


def file_module(path: Path) -> str:
    """Return the module name that a file is loaded under: one for each path."""
    resolved = path.resolve()
    digest = hashlib.sha256(str(resolved).encode()).hexdigest()[:8]
    return f"theseus_file_{digest}_{resolved.stem}"
