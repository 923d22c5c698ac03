"""`theseus-track demo`: train a small GPT and look inside it while it trains."""

import click

from theseus_track.cli.options import root_option, sinks_option

__all__ = ["command"]


@click.command()
@root_option
@sinks_option("tensorboard")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    help="Training steps; else 600, about two minutes on two CPU cores.",
)
def command(root: str | None, sinks: tuple[str, ...], steps: int | None) -> None:
    """Train a small GPT on real text and look inside it while it trains.

    Ends by saying the loss, which figures there are, and how to see them.
    """
    from theseus_track.demo import run_demo

    click.echo(run_demo(root, steps=steps, sinks=sinks))
