"""The addresses of the dashboard: pages, JSON, files and a stream of changes."""

import functools
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from theseus_track.dashboard.answers import REVALIDATED, file_answer, json_answer
from theseus_track.dashboard.asked import (
    asked_moment,
    asked_name,
    asked_number,
    asked_result,
    asked_run,
    asked_runs,
    asked_step,
)
from theseus_track.dashboard.curves import curve_json
from theseus_track.dashboard.exports import csv_of, npz_of, zipped
from theseus_track.dashboard.library import Library
from theseus_track.dashboard.page import page_routes
from theseus_track.dashboard.panels import film, panels
from theseus_track.dashboard.tail import changes
from theseus_track.dashboard.values import (
    described,
    provenance,
    result_json,
    run_json,
    steps_json,
    summary,
)
from theseus_track.errors import BadInput, LedgerError, NotFound, PayloadPending
from theseus_track.records import safe_name
from theseus_track.records.strict_json import Json
from theseus_track.store import Result
from theseus_track.store.blobs import read_blob
from theseus_track.store.layout import blob_path

__all__ = ["create_app"]

# What a browser may show; anything else is only saved.
_TYPES = {"png": "image/png", "pdf": "application/pdf", "json": "application/json"}
_DIGEST = re.compile(r"[0-9a-f]{64}")
_STATUS = {NotFound: 404, BadInput: 413, PayloadPending: 503, LedgerError: 422}

Answers = Callable[[Library, Request], Response]


def create_app(
    library: Library, *, ending: Callable[[], bool] = lambda: False
) -> Starlette:
    """Return the application; whoever serves it puts a `Guard` before it.

    Args:
        library: The runs to show.
        ending: Says whether the server is about to end, so that streams end first.
    """
    run, result = "/api/runs/{run}", "/api/runs/{run}/results/{writer}/{seq:int}"
    paths: dict[str, Answers] = {
        "/api/runs": _runs,
        "/api/metrics": _curves,
        "/api/views": _views,
        run: _run,
        f"{run}/metrics": _metrics,
        f"{run}/steps": _steps,
        f"{run}/film": _film,
        f"{run}/steps.zip": _zip,
        f"{run}/results": _results,
        result: _result,
        f"{result}/values.npz": _npz,
        f"{result}/values.csv": _csv,
        f"{run}/files/{{digest}}": _file,
    }
    routes = [Route(path, _endpoint(library, ask)) for path, ask in paths.items()]
    routes.append(Route("/api/events", functools.partial(_events, library, ending)))
    routes += page_routes()
    return Starlette(routes=routes)


def _endpoint(
    library: Library, answers: Answers
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        # Files are read in a thread: a slow disk must not stop other answers.
        try:
            with library.asked():
                return await run_in_threadpool(answers, library, request)
        except tuple(_STATUS) as error:
            status = next(s for kind, s in _STATUS.items() if isinstance(error, kind))
            return json_answer(request, {"error": str(error)}, status)
        except HTTPException as error:
            return json_answer(request, {"error": error.detail}, error.status_code)

    return endpoint


def _runs(library: Library, request: Request) -> Response:
    rows: list[Json] = [
        summary(key, run, library.root_of(run)) for key, run in library.runs().items()
    ]
    return json_answer(
        request,
        {
            "runs": rows,
            "indexing": {**library.indexing()},
            "roots": [store.root.name for store in library.stores],
        },
    )


def _run(library: Library, request: Request) -> Response:
    key, run = asked_run(library, request)
    return json_answer(request, run_json(key, run, library.root_of(run)))


def _metrics(library: Library, request: Request) -> Response:
    _, run = asked_run(library, request)
    rows: list[Json] = [
        {"step": step, "wall_time": wall_time, "metrics": {**numbers}}
        for step, wall_time, numbers in run.rows()
    ]
    return json_answer(request, {"metrics": rows})


def _steps(library: Library, request: Request) -> Response:
    _, run = asked_run(library, request)
    return json_answer(request, {"analyses": {**steps_json(run)}})


def _curves(library: Library, request: Request) -> Response:
    points = asked_number(request, "points", default=1000, least=4, most=100_000)
    named = request.query_params.getlist("name")
    found: dict[str, Json] = {
        key: {
            name: curve_json(run.curve(name), points)
            for name in run.metrics
            if not named or name in named
        }
        for key, run in asked_runs(library, request).items()
    }
    return json_answer(request, {"runs": found})


def _views(library: Library, request: Request) -> Response:
    name, moment = asked_name(request), asked_moment(request)
    shown, differ = panels(asked_runs(library, request), name, moment)
    asked: dict[str, Json] = {
        "step": moment.step,
        "tokens": moment.tokens,
        "metric": moment.metric,
        "below": moment.below if moment.metric is not None else None,
        "exact": moment.exact,
    }
    answer: dict[str, Json] = {
        "name": name,
        "asked": asked,
        "panels": shown,
        "mismatches": differ,
    }
    return json_answer(request, answer)


def _film(library: Library, request: Request) -> Response:
    _, run = asked_run(library, request)
    cells = asked_number(request, "cells", default=64, least=1, most=1024)
    part = request.query_params.get("part", "")
    panel = asked_number(request, "panel", default=0)
    return json_answer(request, film(run, asked_name(request), part, cells, panel))


def _zip(library: Library, request: Request) -> Response:
    _, run = asked_run(library, request)
    name = asked_name(request)
    chunks: Iterator[bytes] = zipped(run, name)
    # The first one now, so that an unknown name is an error and no broken file.
    first = next(chunks)

    def whole() -> Iterator[bytes]:
        yield first
        yield from chunks

    saved = f'attachment; filename="{safe_name(run.info.name)[:80]}-{name}.zip"'
    return StreamingResponse(
        whole(),
        media_type="application/zip",
        headers={"Content-Disposition": saved},
    )


def _results(library: Library, request: Request) -> Response:
    _, run = asked_run(library, request)
    name, step = request.query_params.get("name"), asked_step(request)
    superseded = "superseded" in request.query_params
    names = run.totals().counts if name is None else [name]
    found = [
        result
        for one in names
        for result in run.results(one, step, superseded=superseded)
    ]
    rows: list[Json] = [*map(described, sorted(found, key=lambda r: r.step))]
    return json_answer(request, {"results": rows})


def _result(library: Library, request: Request) -> Response:
    _, run = asked_run(library, request)
    result = asked_result(library, request)
    record = result.result_record
    same = run.results(result.name, result.step, superseded=True)
    told: dict[str, Json] = {
        "phase": record.phase if record else None,
        "traceback": record.traceback if record else None,
        "provenance": provenance(result, run),
        "siblings": [*map(described, same)],
    }
    return json_answer(request, {**result_json(result), **told})


def _npz(library: Library, request: Request) -> Response:
    return _values(library, request, npz_of, "npz", "application/zip")


def _csv(library: Library, request: Request) -> Response:
    return _values(library, request, csv_of, "csv", "text/csv; charset=utf-8")


def _values(
    library: Library,
    request: Request,
    packed: Callable[[Result], bytes],
    suffix: str,
    media_type: str,
) -> Response:
    result = asked_result(library, request)
    data = packed(result)
    saved = f"{result.name}-step{result.step}.{suffix}"
    tag = hashlib.blake2b(data, digest_size=12).hexdigest()
    return file_answer(request, data, media_type, tag, saved)


def _file(library: Library, request: Request) -> Response:
    digest = request.path_params["digest"]
    _, run = asked_run(library, request)
    suffix = run.suffix_of(digest) if _DIGEST.fullmatch(digest) else None
    if suffix is None:
        raise NotFound("The run has no file of this hash.")
    shown = _TYPES.get(suffix)
    saved = request.query_params.get("save")
    if saved is None and shown is None:
        saved = f"{digest}.{suffix}"
    data = read_blob(blob_path(run.dir, digest, suffix), digest)
    return file_answer(
        request,
        data,
        shown or "application/octet-stream",
        digest,
        None if saved is None else re.sub(r"[^A-Za-z0-9._-]", "_", saved)[:120],
    )


async def _events(
    library: Library, ending: Callable[[], bool], _request: Request
) -> Response:
    told = changes(library, ending=ending)
    headers = {"Cache-Control": REVALIDATED}
    return StreamingResponse(told, media_type="text/event-stream", headers=headers)
