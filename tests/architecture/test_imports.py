"""Importing ours starts no JAX backend, and reading the ledger needs no JAX at all."""

import pytest

from tests.architecture.project import run

IMPORT_ALL = """
import importlib, pkgutil, theseus_analyses, theseus_track
for package in (theseus_track, theseus_analyses):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""
BACKENDS = """
from jax._src import xla_bridge
print("started" if xla_bridge.backends_are_initialized() else "none")
"""
HEAVY = """
import sys
heavy = "jax jaxlib flax optax orbax matplotlib seaborn pandas tensorboard tensorboardX"
print(*sorted(set(heavy.split()) & set(sys.modules)))
"""


@pytest.mark.slow  # imports JAX and everything else in a process of its own
def test_importing_every_module_starts_no_backend() -> None:
    assert run(["-c", IMPORT_ALL + BACKENDS]).split() == ["none"]


@pytest.mark.slow  # starts a JAX backend in a process of its own
def test_the_check_for_backends_can_fail() -> None:
    assert run(["-c", "import jax; jax.devices()" + BACKENDS]).split() == ["started"]


@pytest.mark.parametrize("layer", ["errors", "records", "store", "web", "dashboard"])
def test_the_ledger_is_read_without_heavy_libraries(layer: str) -> None:
    assert run(["-c", f"import theseus_track.{layer}" + HEAVY]).split() == []


def test_the_package_itself_loads_nothing_heavy() -> None:
    code = "import theseus_track; dir(theseus_track); theseus_track.Store"
    assert run(["-c", code + HEAVY]).split() == []


@pytest.mark.slow  # imports JAX in a process of its own
def test_the_check_for_heavy_libraries_can_fail() -> None:
    assert "jax" in run(["-c", "import theseus_track.capture" + HEAVY]).split()


@pytest.mark.parametrize("command", ["", "runs", "results", "show", "verify"])
def test_help_loads_nothing_heavy(command: str) -> None:
    code = (
        "from theseus_track.cli import main\n"
        f"main({[*command.split(), '--help']!r}, standalone_mode=False)\n"
        "print('---')"
    )
    printed = run(["-c", code + HEAVY])
    assert "Usage:" in printed
    assert printed.rpartition("---")[2].split() == []
