"""Steps and groups, from names alone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theseus_track.checkpoints.steps import (
    file_step,
    group_of,
    number_in,
    step_beside,
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("7", ("", 7)),
        ("00000010", ("", 10)),
        ("ckpt_00000010", ("ckpt_", 10)),
        ("ppo_networks_3", ("ppo_networks_", 3)),
        ("step=3", ("step=", 3)),
        ("v2_run_30", ("v2_run_", 30)),
        ("best", None),
        ("3_best", None),
        ("", None),
    ],
)
def test_the_last_number_of_a_name_is_its_step(
    name: str, found: tuple[str, int] | None
) -> None:
    assert number_in(name) == found


@given(st.text(st.characters(categories=["L", "P", "S", "Z"])), st.integers(0, 10**12))
def test_a_name_is_what_was_put_together(prefix: str, step: int) -> None:
    assert number_in(f"{prefix}{step}") == (prefix, step)


@pytest.mark.parametrize(
    ("path", "step", "group"),
    [
        ("checkpoint_20", 20, "checkpoint_"),
        ("a/b/00000010", 10, "a/b/"),
        ("step_100/model.safetensors", 100, "step_"),
        ("checkpoint-500/model.safetensors", 500, "checkpoint-"),
        ("model_7.safetensors", 7, "model_"),
        ("1000/state", 1000, ""),
        ("run_3/best", None, "run_3/best"),
        ("v1/final", None, "v1/final"),
        ("best", None, "best"),
    ],
)
def test_a_folder_counts_only_if_it_is_called_a_step(
    tmp_path: Path, path: str, step: int | None, group: str
) -> None:
    assert file_step(tmp_path / "run" / path) == step
    assert group_of(tmp_path / "run" / path, tmp_path / "run") == group


@pytest.mark.parametrize(
    ("config", "settings", "step"),
    [
        ('{"steps": 12, "score": 1.0}', "accumulate_steps: 4", 3),
        ('{"steps": 12, "score": 1.0}', "accumulate_steps: 0", 12),
        ('{"steps": 12, "score": 1.0}', None, 12),
        ('{"steps": 12}', None, None),
        ('{"steps": "12", "score": 1.0}', None, None),
        ("[12]", None, None),
        ("{", None, None),
        (None, None, None),
    ],
)
def test_the_file_of_the_original_theseus_is_read_with_care(
    tmp_path: Path, config: str | None, settings: str | None, step: int | None
) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    if settings is not None:
        (tmp_path / "config.yaml").write_text(settings)
    assert step_beside(tmp_path / "checkpoint") == step
    assert step_beside(tmp_path / "other") is None
