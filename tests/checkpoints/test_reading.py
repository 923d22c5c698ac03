"""restore and describe: every layout, any devices, only what is wanted, no silence."""

import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest
from flax import nnx

from tests.checkpoints.saved import (
    LAYOUTS,
    Net,
    bare,
    bias,
    check,
    kernel,
    like,
    manager,
    safetensors,
    state,
)
from tests.jobs.small import Small
from theseus_track.checkpoints import (
    Checkpoint,
    Difference,
    Found,
    describe,
    find_checkpoints,
    restore,
)
from theseus_track.errors import (
    BadInput,
    CheckpointError,
    CheckpointMismatch,
    NotFound,
)

OLD = Path(__file__).parent / "old"


def _only(found: Found) -> Checkpoint:
    (one,) = found.checkpoints
    return one


def _snapshot(root: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(root.rglob("*"))
    }


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_restored_and_nothing_in_it_changes(
    saved: Path, layout: str
) -> None:
    before = _snapshot(saved / layout)
    for step, checkpoint in find_checkpoints(saved / layout).by_step().items():
        restored = restore(checkpoint, like())
        check(restored.tree, step)
        assert restored.differences == ()
        assert "params" not in restored.ignored
    assert _snapshot(saved / layout) == before


@pytest.mark.parametrize("release", ["orbax-0.5.3", "orbax-0.6.4"])
def test_what_old_releases_wrote_is_restored(release: str) -> None:
    for checkpoint in find_checkpoints(OLD / release).checkpoints:
        assert checkpoint.step is not None
        check(restore(checkpoint, like()).tree, checkpoint.step)
        leaves = describe(checkpoint)
        assert str(leaves["params/blocks_0/kernel"]) == "float32[8, 4]"
        assert str(leaves["params/blocks_0/bias"]) == "bfloat16[4]"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_leaves_are_described(saved: Path, layout: str) -> None:
    leaves = describe(find_checkpoints(saved / layout).checkpoints[0])
    prefix = "" if layout == "parameters only" else "params/"
    assert str(leaves[f"{prefix}blocks_0/kernel"]) == "float32[8, 4]"
    assert str(leaves[f"{prefix}blocks_0/bias"]) == "bfloat16[4]"
    if layout not in ("parameters only", "safetensors"):
        assert "opt_state/0/mu/blocks_0/kernel" in leaves


@pytest.mark.parametrize("devices", [1, 2, 8])
@pytest.mark.parametrize(
    "layout", ["manager", "sharded on 4", "msgpack", "safetensors"]
)
def test_arrays_go_onto_any_mesh(saved: Path, layout: str, devices: int) -> None:
    mesh = jax.make_mesh((devices,), ("d",), devices=jax.devices()[:devices])
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    tree = like()
    block = tree["params"]["blocks_0"]
    block["kernel"] = jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=rows)
    steps = find_checkpoints(saved / layout).by_step()
    step = min(steps)
    restored = restore(steps[step], tree, sharding=whole).tree
    check(restored, step)
    assert restored["params"]["blocks_0"]["kernel"].sharding == rows
    assert restored["params"]["blocks_0"]["bias"].sharding == whole


def test_by_default_arrays_are_committed_to_the_first_device(saved: Path) -> None:
    checkpoint = find_checkpoints(saved / "manager").by_step()[5]
    array = restore(checkpoint, like()).tree["params"]["blocks_0"]["kernel"]
    assert array.devices() == {jax.devices()[0]}
    assert array.committed


@pytest.mark.slow  # a process with one device, which the checkpoint was not saved from
def test_a_checkpoint_of_four_devices_is_read_on_one(saved: Path) -> None:
    code = (
        "import logging, sys; logging.basicConfig(level='INFO')\n"
        "from tests.checkpoints.saved import check, like\n"
        "from theseus_track.checkpoints import find_checkpoints, restore\n"
        "found = find_checkpoints(sys.argv[1]).by_step()\n"
        "check(restore(found[5], like()).tree, 5)\n"
    )
    done = _python(code, str(saved / "sharded on 4"), devices=1)
    assert done.returncode == 0, done.stderr
    assert "was saved from 4 devices and is read onto 1" in done.stderr


def test_the_devices_are_told_at_info(
    saved: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "theseus_track.checkpoints")
    restore(_only(find_checkpoints(saved / "sharded on 4")), like())
    assert "was saved from 4 devices and is read onto 1" in caplog.text


def test_only_the_wanted_arrays_are_read(tmp_path: Path) -> None:
    bare(tmp_path / "8", 8, use_ocdbt=False)
    others = [p for p in (tmp_path / "8").iterdir() if p.name.startswith("opt_state")]
    assert len(others) == 5
    for other in others:
        for chunk in other.iterdir():
            if not chunk.name.startswith("."):
                chunk.write_bytes(b"spoilt")
    check(restore(_only(find_checkpoints(tmp_path)), like()).tree, 8)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_bytes_read_are_those_of_the_leaves(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    size = 1 << 20
    tree = {name: rng.normal(size=size // 8) for name in ("params", *"abcdefg")}
    bare(tmp_path / "1", 1, {k: {"w": v} for k, v in tree.items()})
    (one,) = find_checkpoints(tmp_path).checkpoints
    wanted = {"params": {"w": jax.ShapeDtypeStruct((size // 8,), np.float64)}}
    restore(one, wanted)  # What is read once, such as libraries.
    before = _bytes_read()
    restore(one, wanted)
    # Random numbers do not compress; metadata are some KiB; the rest is 7 MiB.
    assert _bytes_read() - before < 1.5 * size


def test_a_model_of_another_size_is_a_table_not_a_partial_restore(
    tmp_path: Path,
) -> None:
    layers = {f"layers_{i}": {"w": np.ones((8, 4), np.float32)} for i in range(3)}
    checkpoint = _only(find_checkpoints(bare(tmp_path / "1", 1, {"params": layers})))

    def wanted(count: int, width: int = 4) -> Any:
        leaf = jax.ShapeDtypeStruct((8, width), jnp.float32)
        return {"params": {f"layers_{i}": {"w": leaf} for i in range(count)}}

    restore(checkpoint, wanted(3))
    cases = {
        (2, 4): "1 extra",
        (4, 4): "1 missing",
        (3, 16): "3 of another shape",
        (4, 16): "1 missing, 3 of another shape",
    }
    for (count, width), counted in cases.items():
        with pytest.raises(CheckpointMismatch, match=counted) as caught:
            restore(checkpoint, wanted(count, width))
        text = str(caught.value)
        if (count, width) == (3, 16):
            assert "params/layers_0/w  float32[8, 16]  float32[8, 4]" in text
        if (count, width) == (4, 4):
            assert re.search(r"missing +params/layers_3/w", text)
        if (count, width) == (2, 4):
            assert re.search(r"extra +params/layers_2/w", text)


def test_a_partial_restore_is_asked_for_and_recorded(tmp_path: Path) -> None:
    bare(tmp_path / "7", 7)
    tree = like()
    tree["params"]["blocks_0"]["scale"] = jnp.full(3, 2.0)
    tree["params"]["blocks_0"]["kernel"] = jnp.zeros((8, 5))
    checkpoint = _only(find_checkpoints(tmp_path))
    with pytest.raises(CheckpointMismatch):
        restore(checkpoint, tree)
    restored = restore(checkpoint, tree, allow_partial=True)
    assert restored.partial
    assert [(d.kind, d.name) for d in restored.differences] == [
        ("shape", "params/blocks_0/kernel"),
        ("missing", "params/blocks_0/scale"),
    ]
    block = restored.tree["params"]["blocks_0"]
    np.testing.assert_array_equal(np.asarray(block["bias"]), bias(7))
    np.testing.assert_array_equal(block["scale"], np.full(3, 2.0))
    np.testing.assert_array_equal(block["kernel"], np.zeros((8, 5)))


def test_a_dtype_is_converted_and_said(saved: Path) -> None:
    checkpoint = find_checkpoints(saved / "manager").by_step()[5]
    restored = restore(checkpoint, like(jnp.float32))
    block = restored.tree["params"]["blocks_0"]
    assert block["bias"].dtype == jnp.float32
    np.testing.assert_array_equal(block["bias"], bias(5).astype(np.float32))
    assert restored.differences == (
        Difference(
            kind="dtype",
            name="params/blocks_0/bias",
            wanted="float32[4]",
            stored="bfloat16[4]",
        ),
    )
    assert not restored.partial


def test_entries_that_nobody_asked_for_are_named(tmp_path: Path) -> None:
    tree = {**state(7), "last_batch": np.zeros(3)}
    restored = restore(_only(find_checkpoints(bare(tmp_path / "7", 7, tree))), like())
    assert restored.ignored == ("last_batch", "opt_state", "step")


def test_names_are_found_where_they_are_in_the_state(tmp_path: Path) -> None:
    tree = state(7)
    tree = {"opt_state": {"mu": {"params": tree["params"]}}, "train": tree}
    check(
        restore(_only(find_checkpoints(bare(tmp_path / "7", 7, tree))), like()).tree, 7
    )


def test_names_at_several_places_are_a_question(tmp_path: Path) -> None:
    tree = {"live": state(7), "ema": state(8)}
    checkpoint = _only(find_checkpoints(bare(tmp_path / "7", 7, tree)))
    with pytest.raises(BadInput, match=r"'ema/params', 'live/params'.*take="):
        restore(checkpoint, like())
    check(restore(checkpoint, like(), take={"params": "ema/params"}).tree, 8)
    with pytest.raises(BadInput, match=r"nothing at 'em/params'.*ema, live"):
        restore(checkpoint, like(), take={"params": "em/params"})


def test_an_item_can_be_named(saved: Path) -> None:
    checkpoint = _only(find_checkpoints(saved / "an item for each part"))
    check(restore(checkpoint, like(), item="params").tree, 3)
    check(restore(checkpoint, like(), item="params", take={"params": ""}).tree, 3)
    assert "blocks_0/kernel" in describe(checkpoint, "params")
    with pytest.raises(NotFound, match="'params'"):
        restore(checkpoint, like(), item="param")


@pytest.mark.slow  # trains
def test_our_trainers_variables_are_restored_without_its_optimizer(
    tmp_path: Path,
) -> None:
    trainer = Small(steps=3)
    trainer(tmp_path)
    variables = trainer.abstract_state().variables
    assert set(variables) == {"params", "batch_stats"}
    (checkpoint,) = find_checkpoints(tmp_path / "checkpoints").checkpoints
    restored = restore(checkpoint, variables)
    for mine, its in zip(
        jax.tree.leaves(restored.tree),
        jax.tree.leaves(trainer.state.variables),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, its)
    assert restored.ignored == ("opt_state", "step")


@pytest.mark.parametrize("pure", [False, True], ids=["as states", "as pure dicts"])
@pytest.mark.parametrize("saved_pure", [False, True], ids=["state", "pure dict"])
def test_nnx_is_restored_with_its_random_keys(
    tmp_path: Path, saved_pure: bool, pure: bool
) -> None:
    graphdef, given = nnx.split(Net(nnx.Rngs(3)))
    tree = nnx.to_pure_dict(given) if saved_pure else given
    with ocp.StandardCheckpointer() as saver:
        saver.save(tmp_path / "1", tree)
    abstract = nnx.split(nnx.eval_shape(lambda: Net(nnx.Rngs(0))))[1]
    wanted = nnx.to_pure_dict(abstract) if pure else abstract
    restored = restore(_only(find_checkpoints(tmp_path)), wanted).tree
    if pure:
        state_ = nnx.split(Net(nnx.Rngs(0)))[1]
        nnx.replace_by_pure_dict(state_, restored)
        restored = state_
    x = jnp.ones((2, 4))
    # Dropout draws from the restored key.
    expected = Net(nnx.Rngs(3))(x)
    np.testing.assert_array_equal(nnx.merge(graphdef, restored)(x), expected)


def test_linen_variables_of_a_train_state_are_restored(tmp_path: Path) -> None:
    model = nn.Dense(3)
    x = jnp.ones((1, 2))
    variables = model.init(jax.random.key(0), x)
    manager(tmp_path, 1, args=ocp.args.StandardSave({"model": variables, "step": 1}))
    abstract = jax.eval_shape(model.init, jax.random.key(0), x)
    restored = restore(_only(find_checkpoints(tmp_path)), abstract).tree
    np.testing.assert_array_equal(
        model.apply(restored, x), model.apply(variables, x), strict=True
    )


def test_relative_paths_and_directories_that_cannot_be_written_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = manager(tmp_path / "with a blank", 5)
    for path in (root, *root.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    monkeypatch.chdir(tmp_path)
    before = _snapshot(root)
    try:
        check(restore(_only(find_checkpoints("with a blank")), like()).tree, 5)
        assert _snapshot(root) == before
    finally:
        for path in (root, *root.rglob("*")):
            path.chmod(0o755)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _data(step: Path) -> list[Path]:
    folder = step / "default"
    return [p for p in folder.rglob("*") if p.is_file() and p.parent.name == "d"]


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        _cut,
    ],
    ids=["removed", "cut"],
)
def test_damaged_arrays_are_one_line(
    tmp_path: Path, spoil: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    checkpoint = _only(find_checkpoints(manager(tmp_path, 5)))
    for path in _data(tmp_path / "5"):
        spoil(path)
    with pytest.raises(CheckpointError) as caught:
        restore(checkpoint, like())
    assert len(str(caught.value).splitlines()) == 1
    assert str(tmp_path / "5") in str(caught.value)
    assert capfd.readouterr().err == ""


@pytest.mark.slow  # a process of its own, whose exit may print what was pending
def test_damage_prints_nothing_but_the_error(tmp_path: Path) -> None:
    manager(tmp_path, 5)
    for path in _data(tmp_path / "5"):
        _cut(path)
    code = (
        "import sys, jax\n"
        "from theseus_track.checkpoints import find_checkpoints, restore\n"
        "from theseus_track.errors import CheckpointError\n"
        "one = find_checkpoints(sys.argv[1]).checkpoints[0]\n"
        "leaves = {'kernel': (8, 4), 'bias': (4,)}\n"
        "block = {k: jax.ShapeDtypeStruct(v, 'float32') for k, v in leaves.items()}\n"
        "try:\n    restore(one, {'params': {'blocks_0': block}})\n"
        "except CheckpointError as error:\n    print(error)\n"
    )
    done = _python(code, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_what_is_not_complete_is_refused(tmp_path: Path) -> None:
    manager(tmp_path, 5)
    (tmp_path / "5" / "default" / "_METADATA").unlink()
    checkpoint = _only(find_checkpoints(tmp_path))
    for read in (describe, lambda one: restore(one, like())):
        with pytest.raises(CheckpointError, match=r"is broken: .*_METADATA is missing"):
            read(checkpoint)


def test_a_checkpoint_that_goes_away_is_an_error_not_an_empty_one(
    tmp_path: Path,
) -> None:
    checkpoint = _only(find_checkpoints(manager(tmp_path, 5)))
    shutil.rmtree(tmp_path / "5")
    with pytest.raises(CheckpointError, match="cannot be read"):
        describe(checkpoint)


def test_a_cut_msgpack_file_is_one_line(tmp_path: Path, saved: Path) -> None:
    shutil.copy(saved / "msgpack" / "checkpoint_9", tmp_path)
    _cut(tmp_path / "checkpoint_9")
    with pytest.raises(CheckpointError, match="no whole msgpack file") as caught:
        restore(_only(find_checkpoints(tmp_path)), like())
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("keep", [4, 40, -3])
def test_a_cut_safetensors_file_is_one_line(tmp_path: Path, keep: int) -> None:
    file = safetensors(tmp_path / "1.safetensors", {"params.w": kernel(1)})
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="no whole safetensors file") as caught:
        describe(_only(find_checkpoints(tmp_path)))
    assert len(str(caught.value).splitlines()) == 1


def _python(
    code: str, *words: str, devices: int = 8
) -> subprocess.CompletedProcess[str]:
    flags = f"--xla_force_host_platform_device_count={devices}"
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *words],
        env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )


def _bytes_read() -> int:
    text = Path("/proc/self/io").read_text()
    found = re.search(r"rchar: (\d+)", text)
    assert found is not None
    return int(found[1])
