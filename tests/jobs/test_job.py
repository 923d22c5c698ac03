"""The job decorator, and what counts as a job."""

import pytest

from tests.jobs.small import Outputs, Small
from theseus_track.analysis import AnalysisBase, lookup
from theseus_track.errors import RegistryError
from theseus_track.jobs import Trainer, job, kind_of


def test_a_job_is_registered_and_returned() -> None:
    @job("tests/job/mine")
    class Mine(Small):
        pass

    assert lookup("tests/job/mine") is Mine
    assert Mine.KEY == "tests/job/mine"  # type: ignore[attr-defined]


def test_a_key_cannot_be_taken_twice() -> None:
    @job("tests/job/taken")
    class First(Small):
        pass

    with pytest.raises(RegistryError, match="First"):

        @job("tests/job/taken")
        class Second(Small):
            pass


def test_only_jobs_can_be_registered() -> None:
    with pytest.raises(TypeError, match="neither a Trainer nor an analysis"):

        @job("tests/job/none")
        class Nothing:
            pass


def test_an_analysis_with_a_trainer_base_is_an_analysis() -> None:
    class Both(AnalysisBase, Small):
        pass

    kinds = [kind_of(cls) for cls in (Small, Trainer, Outputs, Both, int, 3)]
    assert kinds == ["trainer", "trainer", "analysis", "analysis", None, None]
