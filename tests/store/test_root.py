"""The root: the argument, else the environment, else ./results."""

from pathlib import Path

import pytest

from theseus_track.store import Store, resolve_root


def test_the_argument_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THESEUS_ROOT", "/elsewhere")
    assert resolve_root(tmp_path) == tmp_path
    assert resolve_root(str(tmp_path)) == tmp_path


def test_then_the_environment_then_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THESEUS_ROOT", str(tmp_path / "a"))
    assert Store().root == tmp_path / "a"
    monkeypatch.setenv("THESEUS_ROOT", "")
    assert resolve_root() == tmp_path / "results"
    monkeypatch.delenv("THESEUS_ROOT")
    assert resolve_root(None) == tmp_path / "results"
    assert not (tmp_path / "results").exists()


def test_a_relative_root_and_a_home_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert resolve_root("a b/c") == tmp_path / "a b" / "c"
    assert resolve_root("~/x") == tmp_path / "home" / "x"
