"""Writes the checkpoints in this folder; run by the old releases that it names.

    python -m venv old && old/bin/pip install VERSIONS && old/bin/python make.py

VERSIONS for `orbax-0.5.3`: orbax-checkpoint==0.5.3 jax==0.4.26 jaxlib==0.4.26
flax==0.8.2 "numpy<2" "scipy<1.13"; for `orbax-0.6.4`: orbax-checkpoint==0.6.4
jax==0.4.34 jaxlib==0.4.34 flax==0.10.0 "numpy<2" "scipy<1.13". Python 3.11.

The values follow from the step, so that the tests need no copy of them: see `state`.
"""

import os
import shutil
import sys
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"

from importlib.metadata import version

import flax
import flax.training.checkpoints as flax_checkpoints
import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp
from flax.training import orbax_utils


def state(step):
    """Parameters in float32 and bfloat16, Adam's moments, and the step."""
    kernel = jnp.arange(32, dtype=jnp.float32).reshape(8, 4) + step
    bias = jnp.arange(4, dtype=jnp.bfloat16) + step
    params = {"blocks_0": {"kernel": kernel, "bias": bias}}
    opt_state = optax.adam(1e-3).init(params)
    return {"params": params, "opt_state": opt_state, "step": step}


def main():
    home = Path(__file__).resolve().parent / f"orbax-{version('orbax-checkpoint')}"
    shutil.rmtree(home, ignore_errors=True)
    manager = ocp.CheckpointManager(home / "manager")
    for step in (5, 100):
        manager.save(step, args=ocp.args.StandardSave(state(step)))
    manager.wait_until_finished()
    options = ocp.CheckpointManagerOptions(
        step_prefix="ckpt", step_format_fixed_length=8
    )
    names = ("state", "metadata")
    manager = ocp.CheckpointManager(
        home / "composite", options=options, item_names=names
    )
    whole = ocp.args.StandardSave(state(10))
    about = ocp.args.JsonSave({"loss": 0.5})
    manager.save(10, args=ocp.args.Composite(state=whole, metadata=about))
    manager.wait_until_finished()
    ocp.PyTreeCheckpointer().save(home / "bare_7", state(7))
    per_leaf = ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_ocdbt=False))
    per_leaf.save(home / "zarr" / "8", state(8))
    # What the documentation of Flax said at the time.
    arguments = orbax_utils.save_args_from_target(state(9))
    ocp.PyTreeCheckpointer().save(
        home / "aggregated" / "9", state(9), save_args=arguments
    )
    # The same where only some arrays, those of one device, go into the one file.
    arguments = jax.tree_util.tree_map(
        lambda leaf: ocp.SaveArgs(aggregate=jnp.ndim(leaf) == 1), state(11)
    )
    ocp.PyTreeCheckpointer().save(home / "mixed" / "11", state(11), save_args=arguments)
    flax.config.update("flax_use_orbax_checkpointing", False)
    flax_checkpoints.save_checkpoint(str(home / "msgpack"), state(20), 20)


if __name__ == "__main__":
    sys.exit(main())
