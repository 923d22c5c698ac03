"""quiet: drops the noise of a failed read and nothing else, and leaves no trace."""

import logging
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from theseus_track.checkpoints.quiet import quiet


def test_only_the_noise_is_dropped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    before = sys.unraisablehook
    noise: Any = SimpleNamespace(exc_value=RuntimeError("Event loop is closed"))
    other: Any = SimpleNamespace(exc_value=RuntimeError("Another matter"))
    log = logging.getLogger("asyncio")
    with quiet(), quiet():
        sys.unraisablehook(noise)
        sys.unraisablehook(other)
        log.error("Future exception was never retrieved")
        log.error("Another matter")
    assert seen == [other]
    assert caplog.messages == ["Another matter"]
    assert sys.unraisablehook is before
    assert log.filters == []


def test_a_hook_that_came_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    with quiet():
        inner = sys.unraisablehook
        theirs = lambda found: inner(found)  # noqa: E731, PLW0108 (another object)
        sys.unraisablehook = theirs
    assert sys.unraisablehook is theirs
    other: Any = SimpleNamespace(exc_value=None)
    with quiet():
        sys.unraisablehook(other)
    assert seen == [other]


def test_the_exception_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    with pytest.raises(ZeroDivisionError, match="mine"), quiet():
        raise ZeroDivisionError("mine")
