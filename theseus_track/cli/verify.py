"""`theseus-track verify`: is anything in the ledger damaged."""

import click

from theseus_track.cli.options import json_option, root_option

__all__ = ["command"]


@click.command()
@click.argument("run", required=False)
@root_option
@json_option
def command(run: str | None, root: str | None, as_json: bool) -> None:
    """Check every line, array and file of the ledger, or of RUN, by its checksum.

    Exit code 0 when there is no damage, 1 when there is, each named.
    """
    from theseus_track.cli.output import one_line, print_json
    from theseus_track.store import Store, verify

    store = Store(root)
    damages = verify(store if run is None else store.run(run))
    if as_json:
        print_json(damages)
    elif not damages:
        click.echo("no damage")
    else:
        for damage in damages:
            click.echo(one_line(str(damage)))
        click.echo(f"damaged places: {len(damages)}")
    if damages:
        raise click.exceptions.Exit(1)
