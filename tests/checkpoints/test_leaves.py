"""Names of leaves, and arrays on their way to devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from theseus_track.checkpoints.leaves import Wanted, as_keys, name_of, place


def test_names_are_those_of_dicts_lists_and_fields() -> None:
    tree = {"a": [1, {"b": 2}], 3: nnx.State({"w": nnx.Param(jnp.ones(1))})}
    names = [name_of(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree[3])]
    assert names == [("w", "value")]
    del tree[3]
    names = [name_of(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    assert names == [("a", "0"), ("a", "1", "b")]


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_key_data_become_keys_of_the_wanted_kind(impl: str) -> None:
    keys = jax.random.key(7, impl=impl)
    like = jax.eval_shape(lambda: jax.random.key(0, impl=impl))
    assert as_keys(jax.random.key_data(keys), like) == keys
    assert as_keys(keys, like) is keys
    array = jnp.ones(2)
    assert as_keys(array, array) is array


def test_each_device_is_given_its_part_alone() -> None:
    asked = []

    def read(index: tuple[slice, ...]) -> np.ndarray:
        asked.append(index)
        return np.arange(8, dtype=np.float32)[index]

    mesh = jax.make_mesh((4,), ("d",), devices=jax.devices()[:4])
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    wanted = Wanted(shape=(8,), dtype=np.dtype("int32"), sharding=rows)
    placed = place(read, wanted)
    np.testing.assert_array_equal(placed, np.arange(8))
    assert placed.dtype == jnp.int32
    assert {(part.start, part.stop) for (part,) in asked} == {
        (0, 2),
        (2, 4),
        (4, 6),
        (6, 8),
    }
