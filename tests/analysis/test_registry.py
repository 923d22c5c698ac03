"""The registry keeps one class for each key and says who has it."""

import importlib.metadata
import logging
from typing import Any

import pytest

from theseus_track.analysis import AnalysisBase, analysis, lookup, registered_keys
from theseus_track.analysis import registry as registry_module
from theseus_track.errors import NotFound, RegistryError


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_classes", {})


def _make(name: str) -> type[AnalysisBase]:
    return type(name, (AnalysisBase,), {"__module__": __name__, "__qualname__": name})


def test_a_class_is_found_under_its_key_and_carries_it() -> None:
    cls = analysis("my/key")(_make("Mine"))
    assert lookup("my/key") is cls
    assert cls.KEY == "my/key"
    assert "my/key" in registered_keys()


def test_the_same_name_from_the_same_file_replaces_silently() -> None:
    analysis("my/key")(_make("Mine"))
    again = analysis("my/key")(_make("Mine"))
    assert lookup("my/key") is again


def test_another_class_cannot_take_the_key() -> None:
    analysis("my/key")(_make("Mine"))
    with pytest.raises(RegistryError, match=r"'my/key'.*Mine.*Other"):
        analysis("my/key")(_make("Other"))


def test_an_unknown_key_lists_near_matches() -> None:
    analysis("my/key")(_make("Mine"))
    with pytest.raises(NotFound, match=r"'my/kay'.*Did you mean 'my/key'"):
        lookup("my/kay")


@pytest.mark.parametrize("key", ["", "two words", "tab\t"])
def test_a_malformed_key_is_refused(key: str) -> None:
    with pytest.raises(RegistryError, match="without blanks"):
        analysis(key)(_make("Mine"))


def test_a_subclass_does_not_inherit_the_key() -> None:
    cls: Any = analysis("my/key")(_make("Mine"))
    sub: Any = type("Sub", (cls,), {})
    assert sub.KEY != "my/key"


def _plugins(
    monkeypatch: pytest.MonkeyPatch, *points: importlib.metadata.EntryPoint
) -> None:
    monkeypatch.setattr(registry_module, "entry_points", lambda group: points)


def test_a_plugin_is_imported_when_its_key_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point = importlib.metadata.EntryPoint(
        "other/base", "theseus_track.analysis:AnalysisBase", "theseus_track.analyses"
    )
    _plugins(monkeypatch, point)
    assert registered_keys() == ["other/base"]
    assert lookup("other/base") is AnalysisBase


def test_a_broken_plugin_costs_one_warning_and_names_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    point = importlib.metadata.EntryPoint(
        "other/broken", "no_such_module:Thing", "theseus_track.analyses"
    )
    _plugins(monkeypatch, point)
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(RegistryError, match=r"other/broken.*no_such_module"),
    ):
        lookup("other/broken")
    assert len(caplog.records) == 1
