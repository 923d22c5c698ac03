"""CONFIG dataclasses compose into one `self.args`."""

from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from theseus_track.analysis import AnalysisBase, Configured, compose_config
from theseus_track.errors import BadInput


@dataclass
class Base:
    rate: float = 0.1
    names: list[str] = field(default_factory=lambda: ["a"])


@dataclass
class More:
    depth: int = 2


class Job(Configured):
    CONFIG: ClassVar[type | None] = Base


class Deeper(Job):
    CONFIG: ClassVar[type | None] = More


def test_fields_of_all_bases_appear_with_their_defaults() -> None:
    args = Deeper().args
    assert (args.rate, args.names, args.depth) == (0.1, ["a"], 2)


def test_default_factories_give_each_instance_its_own_list() -> None:
    one, two = Job().args, Job().args
    one.names.append("b")
    assert two.names == ["a"]


def test_a_subclass_overrides_a_default() -> None:
    @dataclass
    class Faster:
        rate: float = 0.5

    class Fast(Job):
        CONFIG = Faster

    assert Fast().args.rate == 0.5


def test_extra_classes_are_merged_in() -> None:
    @dataclass
    class Crop:
        tokens: int = 64

    class Look(AnalysisBase):
        CONFIG = Crop

    config = compose_config(Deeper, extra=[Look])
    assert config(rate=1.0).tokens == 64


def test_conflicting_defaults_name_both_classes_and_values() -> None:
    @dataclass
    class Other:
        rate: float = 0.7

    class Look(AnalysisBase):
        CONFIG = Other

    with pytest.raises(BadInput, match=r"'rate'.*0\.1.*Deeper.*0\.7.*Look"):
        compose_config(Deeper, extra=[Look])


def test_the_config_of_the_class_itself_decides_a_conflict() -> None:
    @dataclass
    class Other:
        rate: float = 0.7

    class Look(AnalysisBase):
        CONFIG = Other

    assert compose_config(Job, extra=[Look])().rate == 0.1


def test_what_an_extra_class_inherits_from_a_shared_base_is_no_conflict() -> None:
    @dataclass
    class Faster:
        rate: float = 0.5

    class Fast(Job):
        CONFIG = Faster

    class Faster2(Fast):
        pass

    class Look(AnalysisBase, Job):
        pass

    assert compose_config(Faster2, extra=[Look])().rate == 0.5


def test_a_config_that_is_no_dataclass_is_refused() -> None:
    class Wrong(Configured):
        CONFIG = dict

    with pytest.raises(BadInput, match="not a dataclass"):
        _ = Wrong().args
