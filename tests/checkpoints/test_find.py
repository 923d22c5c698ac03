"""find_checkpoints: every layout, and what only looks like a checkpoint."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints.saved import LAYOUTS, bare, manager, state
from tests.jobs.small import Small
from theseus_track.checkpoints import Checkpoint, Found, find_checkpoints
from theseus_track.errors import BadInput, NotFound
from theseus_track.records import dumps
from theseus_track.store import Store

OLD = Path(__file__).parent / "old"


def _steps(found: Found) -> list[int | None]:
    return [one.step for one in found.checkpoints]


def _states(found: Found) -> dict[str, tuple[str, str | None]]:
    return {one.path.name: (one.state, one.reason) for one in found.checkpoints}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_found_with_its_steps(saved: Path, layout: str) -> None:
    found = find_checkpoints(saved / layout)
    assert _steps(found) == LAYOUTS[layout][1]
    assert {one.state for one in found.checkpoints} == {"complete"}
    assert list(found.by_step()) == LAYOUTS[layout][1]
    assert found.ignored == ()


def test_formats_and_items_are_named(saved: Path) -> None:
    def one(layout: str) -> Checkpoint:
        return find_checkpoints(saved / layout).checkpoints[0]

    assert one("manager").format == "ocdbt"
    assert one("bare zarr").format == "zarr"
    assert one("bare zarr3").format == "ocdbt zarr3"
    assert one("zarr3 alone").format == "zarr3"
    assert one("msgpack").format == "msgpack"
    assert one("safetensors").format == "safetensors"
    assert list(one("manager").items) == ["default"]
    assert list(one("bare").items) == [""]
    assert list(one("an item for each part").items) == ["opt_state", "params"]
    # The item in JSON holds no arrays.
    assert list(one("composite, prefixed and padded").items) == ["state"]


@pytest.mark.parametrize("release", ["orbax-0.5.3", "orbax-0.6.4"])
def test_what_old_releases_wrote_is_found(release: str) -> None:
    found = find_checkpoints(OLD / release)
    assert {(one.group, one.step) for one in found.checkpoints} == {
        ("aggregated/", 9),
        ("bare_", 7),
        ("composite/ckpt_", 10),
        ("manager/", 5),
        ("manager/", 100),
        ("mixed/", 11),
        ("msgpack/checkpoint_", 20),
        ("zarr/", 8),
    }
    assert {one.state for one in found.checkpoints} == {"complete"}


def test_all_names_of_a_step_are_read_without_flags(tmp_path: Path) -> None:
    names = ["ppo_networks_3", "00000003", "checkpoint_3", "step_3", "step=3"]
    for name in names:
        place = tmp_path / name
        place.mkdir()
        step = manager(tmp_path / f".{name}", 3) / "3"
        shutil.copytree(step, place, dirs_exist_ok=True)
        assert list(find_checkpoints(place).by_step()) == [3], name
    found = find_checkpoints(tmp_path)
    assert _steps(found) == [3] * len(names)
    with pytest.raises(BadInput, match=r"several groups: .*'ppo_networks_' \(1\)"):
        found.by_step()
    assert found.by_step("ppo_networks_")[3].path.name == "ppo_networks_3"
    with pytest.raises(NotFound, match="'checkpoint_'"):
        found.by_step("checkpont_")


def test_a_step_that_is_there_twice_is_a_question(tmp_path: Path) -> None:
    root = manager(tmp_path, 3)
    shutil.copytree(root / "3", root / "0003")
    with pytest.raises(BadInput, match="Step 3 is there twice"):
        find_checkpoints(root).by_step()


def test_look_alikes_and_leftovers_are_not_taken(tmp_path: Path) -> None:
    root = manager(tmp_path / "run", 5, 100)
    unfinished = root / "200.orbax-checkpoint-tmp-123"
    shutil.copytree(root / "100", unfinished)
    shutil.copytree(root / "100", root / "300")
    (root / "300" / "default" / "_METADATA").unlink()
    shutil.rmtree(root / "300" / "default" / "d")
    (root / "400").mkdir()
    (root / "600").write_text("no checkpoint")
    (root / "tb_logs_7").mkdir()
    (root / "tb_logs_7" / "events").write_text("")
    (root / "empty_8").mkdir()
    before = _snapshot(root)

    found = find_checkpoints(root)

    assert list(found.by_step()) == [5, 100]
    assert _states(found) == {
        "5": ("complete", None),
        "100": ("complete", None),
        unfinished.name: ("in progress", "it is being written, or its writer died"),
        "300": ("broken", "default/_METADATA is missing"),
        "400": ("broken", "it is empty"),
    }
    assert {one.path.name: one.reason for one in found.ignored} == {
        "600": "it is a file in no known format",
        "empty_8": "it holds no checkpoint",
        "tb_logs_7": "it holds no checkpoint",
    }
    assert _snapshot(root) == before


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda d: (d / "default" / "_METADATA").write_text("{"), "cannot be read"),
        (lambda d: (d / "default" / "manifest.ocdbt").unlink(), "manifest.ocdbt"),
        (lambda d: shutil.rmtree(d / "default" / "d"), "d, which holds the arrays"),
        (lambda d: shutil.rmtree(d / "default"), "'default' is missing"),
        (lambda d: _edit(d, commit_timestamp_nsecs=None), "not committed"),
    ],
    ids=["metadata cut", "no manifest", "no data", "no item", "not committed"],
)
def test_damage_that_small_files_show_is_named(
    tmp_path: Path, spoil: Any, reason: str
) -> None:
    root = manager(tmp_path, 5)
    spoil(root / "5")
    (one,) = find_checkpoints(root).checkpoints
    assert one.state != "complete"
    assert reason in str(one.reason)
    with pytest.raises(NotFound, match=f"5 is {one.state}: "):
        find_checkpoints(root).by_step()


@pytest.mark.parametrize(
    "name", ["_CHECKPOINT_METADATA", "commit_success.txt", "default/_sharding"]
)
def test_files_that_a_restore_does_not_need_may_be_missing(
    tmp_path: Path, name: str
) -> None:
    root = manager(tmp_path, 5)
    (root / "5" / name).unlink()
    (one,) = find_checkpoints(root).checkpoints
    assert one.state == "complete"


def test_a_directory_without_metadata_of_old_releases_may_be_half_there(
    tmp_path: Path,
) -> None:
    shutil.copytree(OLD / "orbax-0.5.3" / "manager", tmp_path, dirs_exist_ok=True)
    (tmp_path / "100" / "default" / "_METADATA").unlink()
    assert _states(find_checkpoints(tmp_path))["100"] == (
        "broken",
        "its _METADATA is missing",
    )
    alone = find_checkpoints(tmp_path / "100")
    assert [one.reason for one in alone.checkpoints] == ["its _METADATA is missing"]


def test_times_come_from_the_metadata_and_outlive_a_copy(tmp_path: Path) -> None:
    root = manager(tmp_path / "first", 5)
    about = json.loads((root / "5" / "_CHECKPOINT_METADATA").read_text())
    shutil.copytree(root, tmp_path / "copy", copy_function=shutil.copyfile)
    (one,) = find_checkpoints(tmp_path / "copy").checkpoints
    assert one.wall_time == about["init_timestamp_nsecs"] / 1e9
    assert one.wall_time_source == "orbax"
    (old,) = find_checkpoints(OLD / "orbax-0.5.3" / "zarr").checkpoints
    assert old.wall_time_source == "mtime"
    assert old.wall_time == old.path.stat().st_mtime


def test_a_rewritten_checkpoint_has_another_identity(tmp_path: Path) -> None:
    first = find_checkpoints(manager(tmp_path, 5)).by_step()[5].identity
    assert find_checkpoints(tmp_path).by_step()[5].identity == first
    shutil.rmtree(tmp_path / "5")
    assert find_checkpoints(manager(tmp_path, 5)).by_step()[5].identity != first


@pytest.mark.slow  # trains
def test_our_trainer_says_step_run_and_time(tmp_path: Path) -> None:
    Small(steps=3)(tmp_path)
    (run,) = Store(tmp_path).runs()
    directory = Path(str(run.info.checkpoints))
    (directory / "3").rename(directory / "renamed")
    (one,) = find_checkpoints(directory).checkpoints
    assert (one.step, one.run) == (3, run.id)
    assert one.wall_time_source == "theseus-track"


def test_the_layout_of_the_original_theseus_gives_its_steps(tmp_path: Path) -> None:
    for place, microbatches in (("ntoks/4096", 8), ("ntoks/8192", 16), ("best", 8)):
        folder = tmp_path / place
        bare(folder / "checkpoint", 1)
        about = {"steps": microbatches, "score": 0.5}
        (folder / "config.json").write_text(json.dumps(about))
        (folder / "config.yaml").write_text("name: gpt\naccumulate_steps: 4\n")
    (tmp_path / "latest").write_text("ntoks/8192")
    found = find_checkpoints(tmp_path)
    assert [(one.group, one.step) for one in found.checkpoints] == [
        ("best/checkpoint", 2),
        ("ntoks/", 2),
        ("ntoks/", 4),
    ]
    assert list(found.by_step("ntoks/")) == [2, 4]
    assert found.ignored == ()


def test_a_step_rule_decides_and_may_pass_over(tmp_path: Path) -> None:
    for tokens in ("1000", "2000", "other"):
        bare(tmp_path / tokens, 1)
    found = find_checkpoints(
        tmp_path,
        step_of=lambda path: int(path.name) // 10 if path.name.isdigit() else None,
    )
    assert list(found.by_step()) == [100, 200]
    assert [one.path.name for one in found.ignored] == ["other"]


def test_a_name_without_a_number_tells_no_step(tmp_path: Path) -> None:
    bare(tmp_path / "run_3" / "best", 1)
    found = find_checkpoints(tmp_path)
    assert _steps(found) == [None]
    with pytest.raises(NotFound, match="best tells no step"):
        found.by_step()


def test_a_checkpoint_itself_can_be_given(saved: Path) -> None:
    path = saved / "manager" / "100"
    assert find_checkpoints(path).by_step()[100].path == path
    assert _steps(find_checkpoints(saved / "msgpack" / "checkpoint_9")) == [9]


def test_links_are_not_counted_twice(tmp_path: Path) -> None:
    manager(tmp_path / "run", 5)
    (tmp_path / "run" / "latest").symlink_to(tmp_path / "run" / "5")
    assert _steps(find_checkpoints(tmp_path / "run")) == [5]
    (tmp_path / "run" / "gone").symlink_to(tmp_path / "nowhere")
    assert _steps(find_checkpoints(tmp_path / "run")) == [5]
    (tmp_path / "link").symlink_to(tmp_path / "run")
    assert _steps(find_checkpoints(tmp_path / "link")) == [5]


def test_relative_paths_and_blanks_work(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved)
    (one,) = find_checkpoints("an item for each part").checkpoints
    assert one.path.is_absolute()


def test_a_typing_error_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    with pytest.raises(NotFound, match=r"Did you mean .*results"):
        find_checkpoints(tmp_path / "reslts")
    assert [entry.name for entry in tmp_path.iterdir()] == ["results"]


def test_an_empty_directory_has_none(tmp_path: Path) -> None:
    found = find_checkpoints(tmp_path)
    assert (found.checkpoints, found.ignored) == ((), ())
    with pytest.raises(NotFound, match="no complete checkpoint"):
        found.by_step()


def test_parts_of_a_safetensors_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(b"")
    (one,) = find_checkpoints(tmp_path).ignored
    assert "one part of several" in one.reason


def test_the_json_is_strict(saved: Path) -> None:
    found = find_checkpoints(saved)
    shown = json.loads(dumps(found.to_json()))
    assert len(shown["checkpoints"]) == len(found.checkpoints) > len(LAYOUTS)
    assert shown["checkpoints"][0]["state"] == "complete"
    assert found.checkpoints[0].bytes > sum(
        leaf.nbytes for leaf in state(1)["params"]["blocks_0"].values()
    )


def _edit(step: Path, **changes: object) -> None:
    file = step / "_CHECKPOINT_METADATA"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def _snapshot(root: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in sorted(root.rglob("*"))
    }
