"""`theseus-track rm RUN`: delete a run from the ledger."""

import click

from theseus_track.cli.options import root_option

__all__ = ["command"]


@click.command()
@click.argument("run")
@root_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--assume-stopped",
    is_flag=True,
    help="Delete it although it looks as if it were running.",
)
def command(run: str, root: str | None, yes: bool, assume_stopped: bool) -> None:
    """Delete RUN from the ledger, for good: values, figures and metrics.

    Says what that is, and asks. Its checkpoints, and what trackers show, stay. A run
    that is being written is not deleted.
    """
    from theseus_track.cli.output import one_line
    from theseus_track.store import Store
    from theseus_track.store.removal import holdings, remove

    found = Store(root).run(run)
    has = holdings(found)
    what = one_line(
        f"{found.name} (id {found.id}, {found.state}): {has.results} results, "
        f"{has.files} files, {has.bytes:,} bytes, in {found.dir}"
    )
    click.echo(what)
    if not yes and not click.confirm("Delete it?"):
        click.echo("Nothing was deleted.")
        return
    remove(found, assume_stopped=assume_stopped)
    click.echo("Deleted.")
