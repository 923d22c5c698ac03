"""Who a run is: ids, names, and configs of every common form."""

import argparse
import dataclasses
from typing import Any

import pytest

from theseus_track.errors import BadInput
from theseus_track.run.identity import config_json, make_info
from theseus_track.run.rank import decided_by_rank_zero, is_rank_zero


@dataclasses.dataclass
class Config:
    rate: float = 0.5
    layers: tuple[int, ...] = (1, 2)


class Collection:
    """Stands for ml_collections.ConfigDict."""

    def to_dict(self) -> dict[str, Any]:
        return {"rate": 0.5}


def _info(**fields: Any) -> Any:
    given = dict.fromkeys(
        ("name", "id", "group", "config", "job", "job_source", "recipe", "checkpoints")
    )
    return make_info(**{**given, "project": "p", "tags": (), "sinks": {}, **fields})


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, {}),
        ({"a": 1, 2: {"b": (3,)}}, {"a": 1, "2": {"b": [3]}}),
        (Config(), {"rate": 0.5, "layers": [1, 2]}),
        (argparse.Namespace(rate=0.5), {"rate": 0.5}),
        (Collection(), {"rate": 0.5}),
        ({"lr": float("nan")}, {"lr": "NaN"}),
    ],
)
def test_configs_become_json(config: object, expected: object) -> None:
    assert config_json(config) == expected


def test_what_json_cannot_hold_is_kept_as_text() -> None:
    value = config_json({"activation": len})["activation"]
    assert "len" in str(value)


def test_a_config_of_another_kind_is_refused() -> None:
    with pytest.raises(BadInput, match=r"config=3.*int"):
        config_json(3)


def test_ids_are_fresh_and_names_follow_them() -> None:
    one, two = _info(), _info()
    assert one.id != two.id
    assert one.name == f"run-{one.id}"
    assert _info(id="abc", name="mine").name == "mine"
    assert "jax" in one.versions


def test_an_empty_name_and_a_wrong_tag_are_refused() -> None:
    with pytest.raises(BadInput, match="name"):
        _info(name=" ")
    with pytest.raises(BadInput, match="tag 3"):
        _info(tags=[3])


def test_several_processes_without_initialize_are_an_error_that_says_the_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert is_rank_zero()
    monkeypatch.setenv("JAX_NUM_PROCESSES", "2")
    with pytest.raises(
        BadInput, match=r"JAX_NUM_PROCESSES=2.*initialize\(\).*open_run"
    ):
        is_rank_zero()


def test_a_process_alone_decides_by_itself_where_it_is_known_to_be_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert decided_by_rank_zero(lambda: "mine") == "mine"
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    with pytest.raises(BadInput, match="SLURM_STEP_NUM_TASKS=4"):
        decided_by_rank_zero(lambda: "mine")
