"""Which training step a checkpoint is of, by its name and by what lies beside it."""

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["file_step", "group_of", "number_in", "step_beside"]

_NUMBERED = re.compile(r"(?P<prefix>.*?)(?P<number>\d+)", re.DOTALL)
# What a folder around a checkpoint is called when its number is a step: `run_3` is not.
_STEP_WORDS = {"", "checkpoint", "ckpt", "global_step", "iter", "iteration", "step"}
_ACCUMULATE = re.compile(r"^\s*accumulate_steps\s*:\s*(\d+)\s*$", re.MULTILINE)


def number_in(name: str) -> tuple[str, int] | None:
    """Split a name into what stands before its last digits, and their number.

    Example:
        >>> number_in("ckpt_00000010"), number_in("7"), number_in("best")
        (('ckpt_', 10), ('', 7), None)
    """
    match = _NUMBERED.fullmatch(name)
    return None if match is None else (match["prefix"], int(match["number"]))


def file_step(path: Path) -> int | None:
    """Return the number in a name, else that of the folder if it is called a step."""
    own = number_in(path.name.removesuffix(".safetensors"))
    if own is not None:
        return own[1]
    around = _step_folder(path.parent.name)
    return None if around is None else around[1]


def step_beside(path: Path) -> int | None:
    """Return the step that the original Theseus wrote beside a checkpoint.

    Its folders are named after tokens: `ntoks/1048576/checkpoint`, `best/checkpoint`,
    `final/1048576/checkpoint`. Beside each lies `config.json`, which counts
    microbatches, and `config.yaml`, which says how many of them make a step.
    """
    about = _json(path.parent / "config.json")
    steps = about.get("steps") if path.name == "checkpoint" else None
    if not isinstance(steps, int) or "score" not in about:
        return None
    try:
        text = (path.parent / "config.yaml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    match = _ACCUMULATE.search(text)
    return steps // max(1, int(match[1])) if match else steps


def group_of(path: Path, root: Path) -> str:
    """Return the folders above a checkpoint and its name without the number."""
    if path == root:
        return ""
    parts = list(path.relative_to(root).parts)
    own = number_in(parts[-1].removesuffix(".safetensors"))
    if own is not None:
        return "/".join([*parts[:-1], own[0]])
    around = _step_folder(parts[-2]) if len(parts) > 1 else None
    return "/".join(parts if around is None else [*parts[:-2], around[0]])


def _step_folder(name: str) -> tuple[str, int] | None:
    found = number_in(name)
    if found is None or found[0].rstrip("_-=").lower() not in _STEP_WORDS:
        return None
    return found


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
