"""The command `theseus-track`: reads the ledger, runs jobs and replays analyses.

What comes in: the words of a command line. What goes out: text for people, or
strict JSON with `--json`; exit code 0, 1 for damage or failure, 2 for bad input.
Each command is a file of its own, loaded when it is used.
"""

from theseus_track.cli.group import main

__all__ = ["main"]
