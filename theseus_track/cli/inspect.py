"""`theseus-track inspect FILE`: what a saved isolated call holds."""

import dataclasses
from typing import TYPE_CHECKING

import click

from theseus_track.cli.options import json_option

if TYPE_CHECKING:
    from theseus_track.capture.isolated_file import Summary

__all__ = ["command"]


@click.command()
@click.argument("file", type=click.Path())
@json_option
def command(file: str, as_json: bool) -> None:
    """Show what the isolated call in FILE holds, and how large it is.

    FILE is the directory that `Isolated.save` wrote. Nothing of it is run, and the
    class of its layer is not needed.
    """
    from theseus_track.capture.isolated_file import describe
    from theseus_track.cli.output import print_json, print_table

    found = describe(file)
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    click.echo(f"{found.origin.path or '(root)'}  {found.origin.cls}")
    click.echo(f"method {found.origin.method}, {found.file_bytes:,} bytes on disk")
    versions = (f"{name} {version}" for name, version in found.versions.items())
    click.echo(f"written by {', '.join(versions)}\n")
    print_table(("part", "array", "type", "bytes"), _rows(found))


def _rows(found: "Summary") -> list[tuple[str, str, str, str]]:
    rows = []
    for part, arrays in found.parts.items():
        rows.append((part, "", "", f"{found.sizes[part]:,}"))
        rows += [("", name, kind, "") for name, kind in arrays.items()]
    return rows
