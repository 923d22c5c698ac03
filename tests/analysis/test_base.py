"""AnalysisBase checks what a subclass says of itself when it is defined."""

import pytest

from theseus_track.analysis import AnalysisBase
from theseus_track.errors import BadInput


class Trainer:
    """Stands for any class that carries the Trainer's marker."""

    THESEUS_TRAINER = True


def test_the_default_name_is_the_class_name_in_snake_case() -> None:
    class AttentionMapOfHTTPHeads(AnalysisBase):
        pass

    assert AttentionMapOfHTTPHeads.NAME == "attention_map_of_http_heads"


def test_a_subclass_gets_its_own_default_name() -> None:
    class First(AnalysisBase):
        NAME = "given"

    class Second(First):
        pass

    assert (First.NAME, Second.NAME) == ("given", "second")


@pytest.mark.parametrize("name", ["a b", "", "x" * 81, "é", "a/b"])
def test_a_name_that_no_tracker_takes_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=r"1 to 80 characters"):
        type("Bad", (AnalysisBase,), {"NAME": name})


@pytest.mark.parametrize("every", [0, -1, True, 2.0, "2", None])
def test_an_interval_that_is_no_count_is_refused(every: object) -> None:
    with pytest.raises(BadInput, match=r"Often\.EVERY.*>= 1"):
        type("Often", (AnalysisBase,), {"EVERY": every})


def test_a_trainer_before_analysis_base_is_refused_with_the_fix() -> None:
    with pytest.raises(TypeError, match=r"class Wrong\(AnalysisBase, Trainer\)"):
        type("Wrong", (Trainer, AnalysisBase), {})


def test_plain_mixins_may_come_first_and_subclasses_may_follow() -> None:
    class Mixin:
        pass

    right = type("Right", (Mixin, AnalysisBase, Trainer), {})
    assert issubclass(type("Sub", (right,), {}), AnalysisBase)


def test_without_analyze_the_error_says_what_to_write() -> None:
    class Empty(AnalysisBase):
        pass

    with pytest.raises(NotImplementedError, match="Empty has no analyze"):
        Empty().analyze(None, None)


def test_the_default_select_takes_the_first_path() -> None:
    class Look(AnalysisBase):
        pass

    assert Look().select(["a", "b"]) == "a"
