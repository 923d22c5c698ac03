"""From a text to a job: keys, modules, files, and what can be wrong with them."""

import sys
from pathlib import Path

import pytest

from tests.jobs.small import Small
from theseus_track.analysis import register
from theseus_track.errors import BadInput, NotFound
from theseus_track.jobs import Trainer, kind_of, load_job, spec_of

JOB = """
import neighbour
from theseus_track.jobs import Trainer, job

@job(f"tests/load{__file__}")
class FromFile(Trainer):
    WORD = neighbour.WORD

    class Nested(Trainer):
        pass

class Other:
    pass

if __name__ == "__main__":
    raise SystemExit("ran as a script")
"""


@pytest.fixture
def job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "neighbour", raising=False)
    (tmp_path / "neighbour.py").write_text("WORD = 'hello'\n")
    file = tmp_path / "my_job.py"
    file.write_text(JOB)
    return file


def test_a_key_names_a_job() -> None:
    register("tests/load/small", Small)
    assert load_job("tests/load/small") is Small


def test_a_module_and_class_name_a_job() -> None:
    assert load_job("tests.jobs.small:Small") is Small


def test_a_file_and_class_name_a_job(job_file: Path) -> None:
    cls = load_job(f"{job_file}:FromFile")
    assert issubclass(cls, Trainer)
    assert vars(cls)["WORD"] == "hello"
    assert load_job(f"tests/load{job_file}") is cls


def test_a_class_within_a_class_can_be_named(job_file: Path) -> None:
    assert load_job(f"{job_file}:FromFile.Nested").__name__ == "Nested"


def test_a_file_is_loaded_once_and_its_classes_are_found_again(job_file: Path) -> None:
    cls = load_job(f"{job_file}:FromFile")
    assert spec_of(cls) == f"{job_file}:FromFile"
    assert load_job(spec_of(cls)) is cls


def test_a_class_of_a_module_is_named_by_its_module() -> None:
    assert spec_of(Trainer) == "theseus_track.jobs.trainer:Trainer"


def test_main_is_its_file(job_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = sys.modules["__main__"]
    # Under xdist there is no file behind the main module.
    monkeypatch.setattr(main, "__file__", str(job_file), raising=False)
    cls = load_job("__main__:FromFile")
    assert spec_of(cls) == f"{job_file}:FromFile"
    monkeypatch.setattr(cls, "__module__", "__main__")
    assert spec_of(cls) == f"{job_file}:FromFile"


def test_main_without_a_file_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    with pytest.raises(BadInput, match="notebook"):
        load_job("__main__:Anything")


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ("tests/load/smal", "'tests/load/smal'"),
        ("{folder}/my_jobs.py:FromFile", "'my_job.py'"),
        ("{folder}/my_job.py:FromFiel", "'FromFile'"),
        ("{folder}/my_job.py:FromFile.Nestd", "FromFile.Nestd"),
        ("no_such_package.jobs:Job", "no_such_package.jobs"),
        ("tests.jobs.small:Smal", "'Small'"),
    ],
)
def test_what_does_not_exist_is_named(job_file: Path, spec: str, named: str) -> None:
    with pytest.raises(NotFound, match=named):
        load_job(spec.format(folder=job_file.parent))


def test_a_class_that_is_no_job_is_named(job_file: Path) -> None:
    with pytest.raises(BadInput, match=r"Other.*no job"):
        load_job(f"{job_file}:Other")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import no_such_thing", "no_such_thing"),
        ("raise SystemExit(3)", "SystemExit"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_a_file_that_fails_says_how_and_can_be_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, named: str
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / "broken.py"
    file.write_text(body)
    with pytest.raises(BadInput, match=named) as caught:
        load_job(f"{file}:Job")
    assert "__main__" in str(caught.value)

    file.write_text("from theseus_track.jobs import Trainer\nclass Job(Trainer): ...\n")
    # A source file of the same size and second would else come from its cache.
    sys.dont_write_bytecode = True
    assert kind_of(load_job(f"{file}:Job")) == "trainer"


def test_a_module_that_lacks_an_import_of_its_own_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "lacking.py").write_text("import no_such_thing\n")
    with pytest.raises(BadInput, match=r"lacking cannot be loaded.*no_such_thing"):
        load_job("lacking:Job")
