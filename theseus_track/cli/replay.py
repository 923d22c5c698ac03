"""`theseus-track replay`: ask saved checkpoints a question, at their own steps."""

import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import click

from theseus_track.cli.options import (
    chosen_steps,
    recipe_option,
    root_option,
    sinks_option,
    step_options,
)

if TYPE_CHECKING:
    from theseus_track.replay import Outcome, Request, Target
    from theseus_track.store import Run

__all__ = ["command"]


def _shard(_ctx: click.Context, _option: click.Parameter, text: str | None) -> Any:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not int(match[1]) < int(match[2]):
        raise click.BadParameter(
            f"{text!r} is no part: write I/N with 0 <= I < N, such as 0/4."
        )
    return int(match[1]), int(match[2])


@click.command()
@click.argument("what", metavar="RUN_OR_DIR")
@click.option(
    "-a",
    "--analysis",
    "analyses",
    multiple=True,
    required=True,
    metavar="KEY_OR_FILE:CLASS",
    help="The question: a registered key, module:Class or file.py:Class; repeatable.",
)
@root_option
@step_options
@click.option("--latest", is_flag=True, help="The latest checkpoint only.")
@click.option(
    "--missing",
    is_flag=True,
    help="Only where there is no result at all, also if the analysis changed.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Replay each checkpoint as it is saved, until the training ends.",
)
@sinks_option("", none="default: those that the run was started with")
@click.option(
    "--ledger-only", is_flag=True, help="Deliver nothing; theseus-track sync does."
)
@click.option(
    "--yes",
    is_flag=True,
    help="Write into the trackers without asking.",
)
@click.option(
    "--companion",
    is_flag=True,
    help="Leave the W&B run as it is, and show the results in one beside it.",
)
@click.option("--into", metavar="RUN", help="Put the results into this run.")
@recipe_option
@click.option(
    "--probe",
    metavar="NAME",
    default="val",
    show_default=True,
    help="Which stored batch to look at, or what to call another one.",
)
@click.option(
    "--batch",
    metavar="FILE.npz|FILE.py:FUNCTION",
    help="Look at these arrays, by name, instead of the stored batch.",
)
@click.option(
    "--group",
    metavar="GROUP",
    help="Which checkpoints, as theseus-track checkpoints lists their groups.",
)
@click.option(
    "--shard",
    callback=_shard,
    metavar="I/N",
    help="Do part I of N; else as $SLURM_ARRAY_TASK_ID of _COUNT says.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where to compute: in this process, or in Ray tasks (the extra `ray`).",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="How many Ray tasks share the checkpoints.",
)
@click.option(
    "--gpus",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="GPUs of each Ray task.",
)
@click.option(
    "--allow-partial",
    is_flag=True,
    help="Fill in arrays that a checkpoint lacks, and say so in the results.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and stop.")
@click.option("--strict", is_flag=True, help="Stop at the first fault.")
def command(
    what: str,
    analyses: tuple[str, ...],
    root: str | None,
    steps: str | None,
    step: int | None,
    latest: bool,
    missing: bool,
    follow: bool,
    sinks: tuple[str, ...],
    ledger_only: bool,
    yes: bool,
    companion: bool,
    into: str | None,
    recipe: str | None,
    probe: str,
    batch: str | None,
    group: str | None,
    shard: tuple[int, int] | None,
    engine: str,
    workers: int,
    gpus: float,
    allow_partial: bool,
    dry_run: bool,
    strict: bool,
) -> None:
    """Run analyses on the checkpoints of a run, or in a directory.

    Each result appears in the ledger at the step and time of its checkpoint. What is
    there already is not done again. Exits with 3 when some checkpoints failed.
    """
    import theseus_track.demo  # noqa: F401 (registers its jobs)
    import theseus_track.replay as replay
    from theseus_track.cli.output import one_line
    from theseus_track.cli.progress import Bar
    from theseus_track.run.probe import batch_of

    chosen = chosen_steps(steps, step, latest=latest)
    # Registered under a key in this process alone: a worker looks for the class.
    analyses = tuple(map(_found_anywhere, analyses))
    target = replay.find_target(
        what,
        analyses,
        root=root,
        recipe=recipe,
        into=into,
        allow_partial=allow_partial,
        group=group,
    )
    arrays = batch_of(_batch(batch))
    shown = () if ledger_only else sinks or _own_sinks(target.run)
    if companion and not _of_wandb(shown):
        goes = ", ".join(shown) or "no tracker"
        raise click.UsageError(
            f"--companion is for W&B, and the results go to {goes}. Add --to wandb."
        )
    agreed = yes or companion
    if follow:
        if dry_run or shard or engine == "ray":
            raise click.UsageError(
                "--follow goes with neither --dry-run, --shard nor --engine ray."
            )
        _agree(shown, agreed=agreed)
        outcome = replay.follow(
            target, chosen, probe=probe, batch=arrays, strict=strict, tell=_progress
        )
        _end(outcome, target, shown, companion=companion)
    plan = replay.plan_replay(
        target, chosen, only_missing=missing, probe=probe, batch=arrays
    )
    part = shard or replay.slurm_part()
    plan = plan if part is None else plan.shard(*part)
    click.echo(str(plan))
    # Of several parts each writes to the ledger only, and `sync` delivers.
    told = replay.announcement(plan, () if part else shown, companion=companion)
    for sink, change in told.items():
        click.echo(one_line(f"  {sink}: {change}"))
    if dry_run:
        return
    _agree(told, agreed=agreed)
    if engine == "ray":
        request = replay.Request(
            what=what,
            analyses=analyses,
            root=str(target.root),
            recipe=recipe,
            into=into,
            steps=chosen,
            only_missing=missing,
            probe=probe,
            allow_partial=allow_partial,
            group=group,
        )
        refused = bool(batch or part or strict)
        outcome = _on_ray(request, workers=workers, gpus=gpus, refused=refused)
    else:
        with Bar("checkpoint") as bar:
            outcome = replay.backfill(
                plan,
                probe=probe,
                batch=arrays,
                strict=strict,
                allow_partial=allow_partial,
                tell=bar,
            )
    # One process delivers for all parts, when the last of them is done.
    _end(outcome, target, () if part else shown, companion=companion)


def _progress(outcome: "Outcome") -> None:
    """Say which steps came; the summary of all of them stands at the end, once."""
    click.echo(f"computed: {', '.join(map(str, outcome.done))}", err=True)


def _own_sinks(run: "Run | None") -> tuple[str, ...]:
    return () if run is None else tuple(run.info.sinks)


def _of_wandb(sinks: Iterable[str]) -> list[str]:
    return [sink for sink in sinks if sink.partition(":")[0] == "wandb"]


def _agree(sinks: Iterable[str], *, agreed: bool) -> None:
    """Ask before rows are added to a W&B run, which cannot be taken back."""
    named = _of_wandb(sinks)
    if not named or agreed:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"The results will be added to {named[0]}, and nobody can be asked. Agree "
            "with --yes, show them in a run beside it with --companion, or keep them "
            "in the ledger with --ledger-only."
        )
    click.confirm(f"Add the results to {named[0]}?", abort=True)


def _end(
    outcome: "Outcome",
    target: "Target",
    sinks: tuple[str, ...],
    *,
    companion: bool,
) -> NoReturn:
    """Deliver, say what was done, and end with the exit code that says it, too."""
    from theseus_track.cli.output import one_line
    from theseus_track.sinks import sync

    lines, code = str(outcome).splitlines(), outcome.exit_code
    if sinks and (outcome.done or target.run is not None):
        report = sync(target.id, to=sinks, root=target.root, companion=companion)
        lines += str(report).splitlines()
        code = code if report.complete else 3
    if outcome.done:
        lines.append(f"theseus-track results {target.id}")
    for line in lines:
        click.echo(one_line(line))
    raise SystemExit(code)


def _on_ray(
    request: "Request", *, workers: int, gpus: float, refused: bool
) -> "Outcome":
    from theseus_track.cli.progress import Bar
    from theseus_track.replay import replay_on_ray

    if refused:
        raise click.UsageError(
            "--engine ray goes with neither --batch, --shard nor --strict."
        )
    with Bar("part") as bar:
        return replay_on_ray(request, workers=workers, gpus=gpus, tell=bar)


def _found_anywhere(spec: str) -> str:
    """Return `module:Class` or `file.py:Class` of an analysis, however it was named."""
    from theseus_track.jobs import load_job, spec_of

    return spec_of(load_job(spec))


def _batch(text: str | None) -> Any:
    """Return what `--batch` names: the path of a file, or a function."""
    from theseus_track.jobs.load import load_class

    if text is None or ":" not in text:
        return text
    found = load_class(text)
    if not callable(found):
        raise click.UsageError(f"--batch {text} is no function that makes a batch.")
    return found
