"""Runs a page of the documentation as its reader would: block by block, from the top.

Called as a program with the files of pages, in an empty directory. The Python blocks
of a page share one namespace; `theseus-track` lines run in between, where they stand.
"""

import dataclasses
import re
import shlex
import subprocess
import sys
import textwrap
import traceback
import types
from collections.abc import Iterator, Sequence
from pathlib import Path

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```\s*$",
    flags=re.MULTILINE | re.DOTALL,
)
# A reader has minutes, the tests do not.
SHORTER = {"demo": ["--steps", "20"]}
COMMAND = "from theseus_track.cli import main; main(prog_name='theseus-track')"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of a page, and the line of the page that it begins on."""

    language: str
    line: int
    source: str


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order."""
    for match in FENCE.finditer(text):
        yield Block(
            language=match["language"],
            line=text.count("\n", 0, match.start("body")) + 1,
            source=textwrap.dedent(match["body"]),
        )


def shell_lines(source: str) -> Iterator[list[str]]:
    """Yield each line of a shell block as words, without comments."""
    for line in source.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def run_page(page: Path) -> None:
    """Run the blocks of a page in the working directory."""
    text = page.read_text(encoding="utf-8")
    found = list(blocks(text))
    script = Path(f"{page.stem.lower()}.py").resolve()
    # The lines keep their numbers, so that a traceback points into the page.
    lines = [""] * text.count("\n")
    for block in found:
        if block.language == "python":
            source = block.source.splitlines()
            lines[block.line - 1 : block.line - 1 + len(source)] = source
    script.write_text("\n".join(lines), encoding="utf-8")
    module = types.ModuleType("__main__")
    module.__file__ = str(script)
    sys.modules["__main__"] = module
    for block in found:
        if block.language == "python":
            padded = "\n" * (block.line - 1) + block.source
            exec(compile(padded, str(script), "exec"), module.__dict__)
        elif block.language == "bash":
            for words in shell_lines(block.source):
                _run_command(words)


def _run_command(words: list[str]) -> None:
    if words[0] != "theseus-track":
        return
    shorter = [] if "--steps" in words else SHORTER.get(words[1], [])
    subprocess.run([sys.executable, "-c", COMMAND, *words[1:], *shorter], check=True)


def main(pages: Sequence[str]) -> int:
    """Run each page; say which lines failed, and return how many pages did."""
    failures = 0
    for page in pages:
        try:
            run_page(Path(page))
        except Exception:  # noqa: BLE001 (a page may fail in any way; all are run)
            print(f"{page} fails:", file=sys.stderr)  # noqa: T201
            traceback.print_exc()
            failures += 1
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
