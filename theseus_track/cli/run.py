"""`theseus-track run JOB`: train by a job's key or file."""

import click

from theseus_track.cli.options import root_option, sinks_option

__all__ = ["command"]


@click.command()
@click.argument("job")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a hyperparameter, such as steps=100; may be repeated.",
)
@root_option
@click.option("--name", help="What to call the run; else the name of the class.")
@click.option(
    "--project", default="default", show_default=True, help="Project of the run."
)
@sinks_option("tensorboard")
@click.option(
    "--resume",
    metavar="RUN",
    help="Go on from the latest checkpoint of this run, given by id or name.",
)
@click.option(
    "--strict", is_flag=True, help="Stop at the first fault of an analysis or sink."
)
def command(
    job: str,
    settings: tuple[str, ...],
    root: str | None,
    name: str | None,
    project: str,
    sinks: tuple[str, ...],
    resume: str | None,
    strict: bool,
) -> None:
    """Train a JOB: a registered key, module:Class or file.py:Class.

    `theseus-track jobs` lists the keys.
    """
    import theseus_track.demo  # noqa: F401 (registers its jobs)
    from theseus_track.errors import BadInput
    from theseus_track.jobs import Trainer, kind_of, load_job, parse_settings

    for option, text in (
        ("--name", name),
        ("--project", project),
        ("--resume", resume),
    ):
        if text is not None and not text.strip():
            raise BadInput(f"{option} {text!r} is empty. Give a text, or leave it out.")
    cls = load_job(job)
    if kind_of(cls) != "trainer" or not issubclass(cls, Trainer):
        raise BadInput(
            f"{job!r} is an analysis, not a training. Put it in the ANALYSIS of a "
            "Trainer, and run that one."
        )
    trainer = cls(**parse_settings(cls.config_class(), settings))
    metrics = trainer(
        root,
        project=project,
        name=name,
        id=resume,
        sinks=sinks,
        resume=resume is not None,
        strict=strict,
    )
    click.echo("  ".join(f"{key} {value:.4f}" for key, value in metrics.items()))
