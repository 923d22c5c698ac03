import importlib.metadata
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TypeAlias

import pytest

from theseus_track.errors import BadInput, RegistryError
from theseus_track.records import RunInfo
from theseus_track.sinks import MemorySink, Sink, check_sink, open_sink, sink_names
from theseus_track.sinks.registry import GROUP


def run_info(**sinks: object) -> RunInfo:
    return RunInfo(project="tests", name="gpt", id="r1", created=0.0, sinks=sinks)  # type: ignore[arg-type]


Install: TypeAlias = Callable[..., None]


class MadeSink(MemorySink):
    name = "made"

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target


def make_sink(target: str, _info: RunInfo) -> Sink:
    return MadeSink(target)


def make_no_sink(_target: str, _info: RunInfo) -> object:
    return object()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install entry points, as if other packages had brought them."""

    def install(*points: tuple[str, str]) -> None:
        found = [EntryPoint(name, value, GROUP) for name, value in points]

        def entry_points(*, group: str) -> list[EntryPoint]:
            return found if group == GROUP else []

        monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
        monkeypatch.setattr("theseus_track.sinks.registry.entry_points", entry_points)

    return install


def test_an_unknown_sink_is_named_with_its_nearest_match() -> None:
    with pytest.raises(BadInput, match=r"'tensorbord'.*'tensorboard'.*'memory'"):
        check_sink("tensorbord:logs")


def test_tensorboard_takes_its_directory_from_the_spec(tmp_path: Path) -> None:
    sink = open_sink(f"tensorboard:{tmp_path}/a:b", run_info())
    sink.open(run_info())
    sink.close(1.0)
    assert (tmp_path / "a:b" / "gpt").is_dir()


def test_tensorboard_takes_its_directory_from_the_settings_of_the_run(
    tmp_path: Path,
) -> None:
    settings = {"logdir": str(tmp_path), "run": "", "metrics": False}
    info = run_info(tensorboard=settings)
    sink = open_sink("tensorboard", info)
    sink.open(info)
    sink.close(1.0)
    assert [path.name for path in tmp_path.iterdir()] == ["theseus"]


def test_tensorboard_without_a_directory_says_how_to_give_one() -> None:
    with pytest.raises(BadInput, match="tensorboard:DIR"):
        open_sink("tensorboard", run_info())


def test_a_sink_of_another_package(install: Install) -> None:
    install(("mine", f"{__name__}:make_sink"))
    sink = open_sink("mine:entity/project", run_info())
    assert isinstance(sink, MadeSink)
    assert sink.target == "entity/project"
    assert sink_names() == ["memory", "mine", "tensorboard", "wandb"]


def test_a_broken_package_is_named_only_when_its_sink_is_asked_for(
    install: Install,
) -> None:
    install(("broken", "no_such_module:make"), ("mine", f"{__name__}:make_sink"))
    assert open_sink("mine", run_info()).name == "made"
    with pytest.raises(RegistryError, match="no_such_module"):
        open_sink("broken", run_info())


def test_two_packages_that_claim_one_name_are_both_named(install: Install) -> None:
    install(("x", "one:make"), ("x", "two:make"))
    with pytest.raises(RegistryError, match=r"one:make, two:make"):
        open_sink("x", run_info())


def test_what_is_no_sink_is_refused(install: Install) -> None:
    install(("x", f"{__name__}:make_no_sink"))
    with pytest.raises(RegistryError, match=r"object.*flush"):
        open_sink("x", run_info())
