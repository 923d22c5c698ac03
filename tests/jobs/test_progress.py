"""What a training tells, on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

from theseus_track.jobs.progress import Progress


def _told(*, terminal: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120)
    with Progress(0, 4, console=console) as progress:
        progress.tell("[red]a plan[/red] of 3")
        for step in range(1, 5):
            progress.advance(step, 1.5)
            if step % 2 == 0:
                progress.evaluated(step, {"train/loss": 1.5, "eval/loss": 2.0})
    return file.getvalue()


def test_without_a_terminal_there_is_one_line_for_each_evaluation() -> None:
    lines = _told(terminal=False).splitlines()
    assert lines[0] == "[red]a plan[/red] of 3"
    assert len(lines) == 3
    assert lines[1].startswith("step 2/4  train/loss 1.5000  eval/loss 2.0000  ETA 0:")
    assert lines[2].endswith("ETA 0:00:00")


def test_a_terminal_has_a_bar_with_loss_and_remaining_time() -> None:
    shown = _told(terminal=True)
    assert "step 4/4" in shown
    assert "loss 1.500" in shown
    assert "ETA" in shown


def test_it_writes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(0, 1) as progress:
        progress.tell("hello")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "hello\n"
