"""Keeps what is compiled while the tests run, for every process that compiles it."""

import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

_PLACE = "JAX_COMPILATION_CACHE_DIR"
_LEAST_SECONDS = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"


def begin() -> None:
    """Let JAX look for what is compiled in a place of this session; before its import.

    The processes that tests start take from it only: one that is killed while it writes
    would leave half a program, at which JAX warns.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ[_PLACE] = tempfile.mkdtemp(prefix="theseus-compiled-")
    os.environ[_LEAST_SECONDS] = "1e9"


def keep() -> None:
    """Let this process add what it compiles, however small."""
    if "jax" not in sys.modules:
        return
    update = sys.modules["jax"].config.update
    update("jax_persistent_cache_min_compile_time_secs", 0)
    update("jax_persistent_cache_min_entry_size_bytes", -1)
    files: Any = importlib.import_module("jax._src.lru_cache")
    files.LRUCache.put = _put


def end() -> None:
    """Remove it all."""
    shutil.rmtree(os.environ[_PLACE], ignore_errors=True)


def _put(cache: Any, key: str, value: bytes) -> None:
    """Write in one step, as another process may read; JAX's own does not (0.10)."""
    with tempfile.NamedTemporaryFile(dir=os.environ[_PLACE], delete=False) as file:
        file.write(value)
    Path(file.name).replace(cache.path / f"{key}-cache")
