"""`theseus-track checkpoints DIR`: which checkpoints a directory holds."""

from typing import TYPE_CHECKING

import click

from theseus_track.cli.options import json_option

if TYPE_CHECKING:
    from theseus_track.checkpoints import Checkpoint, Found, Leaf

__all__ = ["command"]

_SOURCES = {"mtime": " (file time)", "orbax": "", "theseus-track": ""}


@click.command()
@click.argument("directory", type=click.Path())
@click.option(
    "--shapes",
    is_flag=True,
    help="List the leaves of one checkpoint instead: names, shapes and dtypes.",
)
@click.option(
    "--step",
    type=click.IntRange(min=0),
    help="Of which step to list the leaves; else the last.",
)
@click.option(
    "--group",
    help="Only the checkpoints of this group, as the list names it, such as ckpt_.",
)
@json_option
def command(
    directory: str, shapes: bool, step: int | None, group: str | None, as_json: bool
) -> None:
    """List the checkpoints in DIRECTORY: step, time, format, size and state.

    Whoever wrote them: Orbax of any release, Flax, safetensors. What is broken, in
    progress, or no checkpoint at all is listed with the reason. Nothing is changed,
    and no array is read.
    """
    from theseus_track.checkpoints import find_checkpoints
    from theseus_track.cli.output import print_json

    found = find_checkpoints(directory)
    if shapes:
        chosen = _choose(found, step, group)
        _print_leaves(chosen, as_json=as_json)
    elif as_json:
        print_json(found.to_json())
    else:
        _print_list(found, group)


def _choose(found: "Found", step: int | None, group: str | None) -> "Checkpoint":
    from theseus_track.errors import NotFound, describe_unknown

    by_step = found.by_step(group)
    chosen = max(by_step) if step is None else step
    if chosen not in by_step:
        raise NotFound(describe_unknown("step", chosen, map(str, by_step)))
    return by_step[chosen]


def _print_leaves(checkpoint: "Checkpoint", *, as_json: bool) -> None:
    from theseus_track.checkpoints import describe
    from theseus_track.cli.output import print_json, print_table

    leaves = describe(checkpoint)
    if as_json:
        print_json({"path": str(checkpoint.path), "leaves": _rows(leaves)})
        return
    print_table(
        ("LEAF", "DTYPE", "SHAPE"),
        [
            (name, leaf.dtype, "x".join(map(str, leaf.shape)) or "scalar")
            for name, leaf in leaves.items()
        ],
    )


def _rows(leaves: "dict[str, Leaf]") -> dict[str, object]:
    return {
        name: {"shape": list(leaf.shape), "dtype": leaf.dtype}
        for name, leaf in leaves.items()
    }


def _print_list(found: "Found", group: str | None) -> None:
    from theseus_track.cli.output import clock, one_line, print_table
    from theseus_track.errors import BadInput, NotFound

    shown = [one for one in found.checkpoints if group in (None, one.group)]
    if shown:
        print_table(
            ("STEP", "SAVED", "FORMAT", "ITEMS", "SIZE", "STATE", "GROUP", "PATH"),
            [
                (
                    "?" if one.step is None else str(one.step),
                    clock(one.wall_time) + _SOURCES[one.wall_time_source],
                    one.format,
                    " ".join(name or "(whole)" for name in one.items),
                    f"{one.bytes:,}",
                    one.state if one.reason is None else f"{one.state}: {one.reason}",
                    one.group or "(none)",
                    str(one.path.relative_to(found.directory)),
                )
                for one in shown
            ],
        )
    else:
        click.echo(f"No checkpoints in {one_line(str(found.directory))}.")
    for ignored in found.ignored:
        path = ignored.path.relative_to(found.directory)
        click.echo(f"Ignored {one_line(str(path))}: {ignored.reason}.")
    try:
        found.by_step(group)
    except BadInput as question:
        click.echo(one_line(f"Note: {question}"), err=True)
    except NotFound:
        return
