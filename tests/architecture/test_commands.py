"""Every command and option says what it is for, in its help and in the docs."""

from collections.abc import Callable, Iterator

import click
import pytest

from docs.command_reference import commands
from tests.architecture.project import ROOT


def test_every_command_and_option_has_a_help_text() -> None:
    missing = []
    for words, command in commands():
        if not (command.help or "").strip():
            missing.append(words)
        missing += [f"{words} {o.opts[0]}" for o in _options(command) if not o.help]
    assert not missing


def test_every_command_says_in_one_line_what_it_does() -> None:
    for words, command in commands():
        first = (command.help or "").strip().splitlines()[0]
        assert first.endswith("."), f"the help of {words} begins {first!r}"


def test_the_overview_lists_exactly_the_commands_that_exist() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `theseus-track ")]
    leaves = {
        words for words, command in commands() if not isinstance(command, click.Group)
    }
    assert {row.split("`")[1] for row in rows} == leaves


@pytest.mark.slow  # builds the documentation
def test_every_option_is_in_the_reference(page_text: Callable[[str], str]) -> None:
    text = page_text("cli")
    missing = []
    for words, command in commands():
        section = text.partition(f"Usage: {words} ")[2].partition("Usage: ")[0]
        names = [name for option in _options(command) for name in option.opts]
        missing += [f"{words} {name}" for name in names if name not in section]
    assert not missing


def _options(command: click.Command) -> Iterator[click.Option]:
    """Yield the options that a command shows, without the automatic `--help`."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            yield parameter
