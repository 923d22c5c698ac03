"""Settings: texts and values by the type of their field."""

import dataclasses
from typing import Any, Literal

import pytest

from theseus_track.errors import BadInput
from theseus_track.jobs import check_settings, parse_settings


@dataclasses.dataclass
class Config:
    """One field of each kind."""

    steps: int = 1
    rate: float = 0.1
    nesterov: bool = False
    name: str = "x"
    keep: int | None = None
    betas: tuple[float, float] = (0.9, 0.99)
    widths: tuple[int, ...] = ()
    kind: Literal["adam", "sgd"] = "adam"
    later: "int" = 0
    anything: Any = None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("steps=20", 20),
        ("steps=1_000", 1000),
        ("rate=3e-4", 3e-4),
        ("rate=1", 1.0),
        ("nesterov=true", True),
        ("nesterov=No", False),
        ("name=a=b", "a=b"),
        ("name=", ""),
        ("keep=none", None),
        ("keep=3", 3),
        ("betas=0.8,0.9", (0.8, 0.9)),
        ("betas=(0.8, 0.9)", (0.8, 0.9)),
        ("widths=1,2,3", (1, 2, 3)),
        ("widths=", ()),
        ("kind=sgd", "sgd"),
        ("later=4", 4),
        ("anything=[1, 2]", [1, 2]),
        ("anything=text", "text"),
    ],
)
def test_a_text_becomes_a_value_of_its_field(text: str, value: object) -> None:
    (parsed,) = parse_settings(Config, [text]).values()
    assert parsed == value
    assert type(parsed) is type(value)


def test_what_is_parsed_also_passes_the_check() -> None:
    parsed = parse_settings(Config, ["keep=none", "betas=1,2", "kind=sgd", "rate=1"])
    assert check_settings(Config, parsed) == parsed


def test_the_last_of_two_counts() -> None:
    assert parse_settings(Config, ["steps=1", "steps=2"]) == {"steps": 2}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("steps", "key=value"),
        ("=3", "key=value"),
        ("stps=3", "'steps'"),
        ("steps=2.5", "steps='2.5'.*integer"),
        ("steps=", "steps=''.*integer"),
        ("rate=fast", "rate='fast'.*number"),
        ("nesterov=2", "nesterov='2'.*true or false"),
        ("keep=some", "keep='some'.*an integer or none"),
        ("betas=0.9", r"betas='0.9'.*a tuple \(a number, a number\)"),
        ("kind=adagrad", "kind='adagrad'.*'adam', 'sgd'"),
    ],
)
def test_a_text_that_does_not_fit_is_named(text: str, named: str) -> None:
    with pytest.raises(BadInput, match=named):
        parse_settings(Config, [text])


@pytest.mark.parametrize(
    "settings",
    [
        {"rate": 1},
        {"keep": None},
        {"keep": 2},
        {"betas": (1, 2.0)},
        {"kind": "sgd"},
        {"anything": object()},
    ],
)
def test_a_value_of_the_right_type_passes(settings: dict[str, object]) -> None:
    assert check_settings(Config, settings) == settings


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"steps": True}, "steps=True"),
        ({"steps": 1.0}, "steps=1.0"),
        ({"keep": "2"}, "keep='2'"),
        ({"betas": (1,)}, "betas"),
        ({"betas": [1, 2]}, "betas"),
        ({"kind": "adagrad"}, "kind='adagrad'"),
        ({"Steps": 1}, "'Steps'"),
    ],
)
def test_a_value_of_another_type_is_named(
    settings: dict[str, object], named: str
) -> None:
    with pytest.raises(BadInput, match=named):
        check_settings(Config, settings)
