"""Where the project's files are, and how the tests here start a Python of their own."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def run(words: Sequence[str], *, cwd: Path = ROOT) -> str:
    """Run a program of this environment; return what it printed to stdout.

    Args:
        words: The arguments of the interpreter, such as `["-m", "mkdocs"]`.
        cwd: The directory to run it in.

    Raises:
        AssertionError: When it fails; the message holds all that it printed.
    """
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, capture_output=True, text=True, check=False
    )
    shown = f"{' '.join(words)} gave {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, shown
    return done.stdout
