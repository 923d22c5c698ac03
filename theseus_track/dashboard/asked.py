"""What a request asks for, checked: runs by key, an analysis, a moment, a number."""

import re

from starlette.exceptions import HTTPException
from starlette.requests import Request

from theseus_track.dashboard.library import Library
from theseus_track.dashboard.panels import Moment
from theseus_track.store import Result, RunIndex

__all__ = [
    "MAX_RUNS",
    "asked_moment",
    "asked_name",
    "asked_number",
    "asked_result",
    "asked_run",
    "asked_runs",
    "asked_step",
]

MAX_RUNS = 64
"""How many runs one request may ask for."""


def asked_run(library: Library, request: Request) -> tuple[str, RunIndex]:
    """Return the run that the path names, and its key."""
    key: str = request.path_params["run"]
    return key, library.run(key)


def asked_result(library: Library, request: Request) -> Result:
    """Return the result that the path names."""
    known = request.path_params
    return library.result(known["run"], known["writer"], known["seq"])


def asked_runs(library: Library, request: Request) -> dict[str, RunIndex]:
    """Return the runs of `run=KEY`, which may be repeated, in that order."""
    keys = dict.fromkeys(request.query_params.getlist("run"))
    if not 1 <= len(keys) <= MAX_RUNS:
        raise HTTPException(
            400, f"Choose 1 to {MAX_RUNS} runs with run=KEY, not {len(keys)}."
        )
    return {key: library.run(key) for key in keys}


def asked_name(request: Request) -> str:
    """Return the NAME of an analysis, from `name=`."""
    name = request.query_params.get("name", "")
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,80}", name):
        raise HTTPException(400, "Say which analysis with name=NAME.")
    return name


def asked_moment(request: Request) -> Moment:
    """Return when, from `step=`, `tokens=`, or `metric=` and `below=`."""
    asked = request.query_params
    metric, exact = asked.get("metric"), asked.get("exact", "0") not in ("", "0")
    if metric is not None:
        try:
            below = float(asked.get("below", ""))
        except ValueError as error:
            raise HTTPException(400, "Say below=NUMBER with metric=.") from error
        return Moment(metric=metric, below=below, exact=exact)
    if "tokens" in asked:
        tokens = asked_number(request, "tokens", default=0)
        return Moment(tokens=tokens, exact=exact)
    step = asked_step(request)
    if step is None:
        raise HTTPException(400, "Say when: step=, tokens= or metric= and below=.")
    return Moment(step=step, exact=exact)


def asked_step(request: Request) -> int | None:
    """Return `step=`, or None without it."""
    if "step" not in request.query_params:
        return None
    return asked_number(request, "step", default=0)


def asked_number(
    request: Request,
    name: str,
    *,
    default: int,
    least: int = 0,
    most: int = 10**18,
) -> int:
    """Return a number of the query, or the default without it."""
    text = request.query_params.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,18}", text) or not least <= int(text) <= most:
        raise HTTPException(
            400, f"{name} is an integer from {least} to {most}, not {text[:40]!r}."
        )
    return int(text)
