"""Holds for every test: eight CPU devices, none of the user's settings."""

import os

# JAX reads these when its backend starts, also in the processes that tests start.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

for name in ("THESEUS_INDEX", "THESEUS_ROOT", "THESEUS_TRACK"):
    os.environ.pop(name, None)
