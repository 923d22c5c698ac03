"""Holds for every test: eight CPU devices, none of the user's settings."""

import os
import signal

import pytest

from tests import compiled

# JAX reads these when its backend starts, also in the processes that tests start.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would
# the processes that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for name in ("THESEUS_INDEX", "THESEUS_ROOT", "THESEUS_TRACK"):
    os.environ.pop(name, None)

compiled.begin()


def pytest_collection_finish() -> None:
    """Keep what this process compiles from now on."""
    compiled.keep()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what was kept, when every worker has ended."""
    if not hasattr(config, "workerinput"):
        compiled.end()


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave the soak tests out unless they are asked for by their mark."""
    if "soak" in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
