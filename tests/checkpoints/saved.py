"""Checkpoints of every layout that the current Orbax and Flax write, small."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flax.serialization
import flax.training.checkpoints as flax_checkpoints
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import orbax.checkpoint as ocp
import orbax.checkpoint.experimental.v1 as ocp_v1
import pytest
from flax import nnx

# What `Tree` below is: nested dicts of arrays, as the users' own.
Tree = Any


def kernel(step: int) -> np.ndarray:
    """Return the kernel that every checkpoint of a step holds, [8, 4]."""
    return np.arange(32, dtype=np.float32).reshape(8, 4) + step


def bias(step: int) -> np.ndarray:
    """Return its bias, [4]; every value is exact in bfloat16."""
    return np.arange(4).astype(ml_dtypes.bfloat16) + ml_dtypes.bfloat16(step)


def state(step: int) -> Tree:
    """Return parameters, Adam's moments and the step, as `old/make.py` does."""
    params = {
        "blocks_0": {
            "kernel": jnp.asarray(kernel(step)),
            "bias": jnp.asarray(bias(step)),
        }
    }
    return {
        "params": params,
        "opt_state": optax.adam(1e-3).init(params),
        "step": step,
    }


def like(dtype: Any = jnp.bfloat16) -> Tree:
    """Return what a forward pass wants of it, as shapes."""
    return {
        "params": {
            "blocks_0": {
                "kernel": jax.ShapeDtypeStruct((8, 4), jnp.float32),
                "bias": jax.ShapeDtypeStruct((4,), dtype),
            }
        }
    }


def check(tree: Tree, step: int) -> None:
    """Compare what was read with what was saved, to the last bit."""
    block = tree["params"]["blocks_0"]
    assert block["bias"].dtype == jnp.bfloat16
    np.testing.assert_array_equal(block["kernel"], kernel(step))
    np.testing.assert_array_equal(np.asarray(block["bias"]), bias(step))


def manager(place: Path, *steps: int, args: Any = None, **options: Any) -> Path:
    """Save with a CheckpointManager; by default the whole state."""
    made = ocp.CheckpointManagerOptions(**options)
    with ocp.CheckpointManager(place, options=made) as saver:
        for step in steps:
            saver.save(step, args=args or ocp.args.StandardSave(state(step)))
    return place


def bare(place: Path, step: int = 7, tree: Tree = None, **options: Any) -> Path:
    """Save one tree without a manager."""
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**options)) as saver:
        saver.save(place, state(step) if tree is None else tree)
    return place


def safetensors(place: Path, arrays: dict[str, np.ndarray]) -> Path:
    """Write a file in the format of safetensors, by hand."""
    names = {"float32": "F32", "bfloat16": "BF16", "int64": "I64"}
    header: dict[str, Any] = {"__metadata__": {"format": "np"}}
    data = b""
    for name, array in arrays.items():
        begin = len(data)
        data += array.tobytes()
        header[name] = {
            "dtype": names[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [begin, len(data)],
        }
    text = json.dumps(header).encode()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return place


class Net(nnx.Module):
    """A module with parameters, batch statistics and a random stream."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.layers = nnx.List([nnx.Linear(4, 4, rngs=rngs) for _ in range(2)])
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer in self.layers:
            x = layer(x)
        return self.drop(self.norm(x))


def _composite(place: Path) -> None:
    whole = ocp.args.StandardSave(state(10))
    about = ocp.args.JsonSave({"loss": 0.5})
    both = ocp.args.Composite(state=whole, metadata=about)
    manager(place, 10, args=both, step_prefix="ckpt", step_format_fixed_length=8)


def _items(place: Path) -> None:
    parts = {k: ocp.args.StandardSave(state(3)[k]) for k in ("params", "opt_state")}
    manager(place, 3, args=ocp.args.Composite(**parts))


def _params_only(place: Path) -> None:
    alone = ocp.args.StandardSave(state(4)["params"])
    manager(place, 4, args=ocp.args.Composite(params=alone))


def _v1(place: Path) -> None:
    with ocp_v1.training.Checkpointer(place) as saver:
        saver.save(6, state(6), custom_metadata={"run": "r1"})


def _flax_orbax(place: Path) -> None:
    flax_checkpoints.save_checkpoint(
        place, state(9), 9, orbax_checkpointer=ocp.PyTreeCheckpointer()
    )


def _msgpack(place: Path) -> None:
    place.mkdir(parents=True)
    for step in (9, 10, 100):
        # What `save_checkpoint` wrote before Flax left that to Orbax.
        data = flax.serialization.to_bytes(state(step))
        (place / f"checkpoint_{step}").write_bytes(data)


def _sharded(place: Path) -> None:
    mesh = jax.make_mesh((4,), ("d",), devices=jax.devices()[:4])
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    tree = state(5)
    block = tree["params"]["blocks_0"]
    block["kernel"] = jax.device_put(block["kernel"], rows)
    manager(place, 5, args=ocp.args.StandardSave(tree))


# Layout -> how it is written, and the steps that it then holds.
LAYOUTS: dict[str, tuple[Callable[[Path], object], list[int]]] = {
    "manager": (lambda place: manager(place, 5, 100), [5, 100]),
    "pytree": (
        lambda place: manager(place, 2, args=ocp.args.PyTreeSave(state(2))),
        [2],
    ),
    "composite, prefixed and padded": (_composite, [10]),
    "an item for each part": (_items, [3]),
    "parameters only": (_params_only, [4]),
    "bare": (lambda place: bare(place / "step_7"), [7]),
    "bare zarr": (lambda place: bare(place / "8", 8, use_ocdbt=False), [8]),
    "bare zarr3": (lambda place: bare(place / "8", 8, use_zarr3=True), [8]),
    "zarr3 alone": (
        lambda place: bare(place / "8", 8, use_zarr3=True, use_ocdbt=False),
        [8],
    ),
    "v1": (_v1, [6]),
    "flax with orbax": (_flax_orbax, [9]),
    "msgpack": (_msgpack, [9, 10, 100]),
    "sharded on 4": (_sharded, [5]),
    "safetensors": (
        lambda place: safetensors(
            place / "step_11" / "model.safetensors",
            {
                "params.blocks_0.kernel": kernel(11),
                "params.blocks_0.bias": bias(11),
                "step": np.asarray(11),
            },
        ),
        [11],
    ),
}


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a subdirectory for each layout; not to be written to."""
    root = tmp_path_factory.mktemp("saved checkpoints")
    for name, (save, _) in LAYOUTS.items():
        save(root / name)
    return root
