"""Fills the reference in cli.md with the help texts of the commands themselves."""

import importlib
from collections.abc import Iterator

import click
from mkdocs.structure.pages import Page

PROGRAM = "theseus-track"
MARK = "<!-- The help text of every command stands here. -->"


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with the words that call it, groups before their members."""
    yield from _walk(PROGRAM, importlib.import_module("theseus_track.cli").main)


def _walk(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _walk(f"{words} {name}", child)


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Put the help texts in the place of the mark; MkDocs calls this for each page."""
    if page.file.src_uri != "cli.md":
        return markdown
    sections = []
    for words, command in commands():
        context = click.Context(command, info_name=words, terminal_width=80)
        text = command.get_help(context)
        sections.append(f"### {words}\n\n```text\n{text}\n```")
    return markdown.replace(MARK, "\n\n".join(sections))
