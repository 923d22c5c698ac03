"""The group of all commands: loads one when it is used, and words its errors."""

import contextlib
import errno
import importlib
import io
import os
import sys
from typing import Any

import click

from theseus_track import __version__
from theseus_track.errors import TheseusError, describe_unknown

__all__ = ["main"]

# Command -> the module that holds it as `command`. A module imports what is heavy
# inside its function, so that `--help` stays fast and imports no JAX.
_COMMANDS = {
    "checkpoints": "theseus_track.cli.checkpoints",
    "compare": "theseus_track.cli.compare",
    "dashboard": "theseus_track.cli.dashboard",
    "demo": "theseus_track.cli.demo",
    "find": "theseus_track.cli.find",
    "inspect": "theseus_track.cli.inspect",
    "jobs": "theseus_track.cli.jobs",
    "replay": "theseus_track.cli.replay",
    "replot": "theseus_track.cli.replot",
    "results": "theseus_track.cli.results",
    "rm": "theseus_track.cli.rm",
    "run": "theseus_track.cli.run",
    "runs": "theseus_track.cli.runs",
    "show": "theseus_track.cli.show",
    "sync": "theseus_track.cli.sync",
    "tensorboard": "theseus_track.cli.tensorboard",
    "try": "theseus_track.cli.try_out",
    "verify": "theseus_track.cli.verify",
}


# What a shell reports of a program that was ended by Ctrl-C.
_INTERRUPTED = 130


class _UserError(click.ClickException):
    """Bad input as a line on stderr, with exit code 2."""

    exit_code = 2


class _LazyGroup(click.Group):
    """Finds commands in the table above."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click)
        """Return the names of all commands."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load a command, or return None when there is none of that name."""
        home = _COMMANDS.get(cmd_name)
        if home is None:
            return None
        command: click.Command = importlib.import_module(home).command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command that the first word names."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            raise _UserError(describe_unknown("command", args[0], _COMMANDS))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what the user can act on becomes one clear line."""
        _print_any_text()
        try:
            return super().invoke(ctx)
        except TheseusError as error:
            from theseus_track.cli.output import one_line

            # A message may quote names, and may have a line for each fault.
            lines = [one_line(line) for line in str(error).splitlines()]
            raise _UserError("\n".join(lines)) from error
        except OSError as error:
            if error.filename is not None or error.errno == errno.EPIPE:
                raise
            _give_up_printing()
            raise click.ClickException(f"Cannot print: {error.strerror}.") from error
        except KeyboardInterrupt as error:
            # A training leaves a note there of what is kept and how to go on.
            for note in getattr(error, "__notes__", ["Interrupted."]):
                click.echo(f"\n{note}", err=True)
            raise click.exceptions.Exit(_INTERRUPTED) from error


def _give_up_printing() -> None:
    # What could not be written is in a buffer still, and fails again at the exit.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_any_text() -> None:
    # Names may hold characters that the terminal's encoding lacks.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="theseus-track")
def main() -> None:
    """See inside JAX models while they train, and afterwards.

    Everything computed for a run is kept in a ledger under a root directory:
    --root, else $THESEUS_ROOT, else ./results.
    """
