"""The addresses of the dashboard: a page, JSON, files and a stream of changes."""

import functools
import re
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from theseus_track.dashboard.library import Library
from theseus_track.dashboard.page import runs_page
from theseus_track.dashboard.tail import changes
from theseus_track.dashboard.values import described, result_json, summary
from theseus_track.errors import BadInput, LedgerError, NotFound, PayloadPending
from theseus_track.records import dumps
from theseus_track.records.strict_json import Json
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
    paths: dict[str, Answers] = {
        "/": _page,
        "/api/runs": _runs,
        "/api/runs/{run}/metrics": _metrics,
        "/api/runs/{run}/results": _results,
        "/api/runs/{run}/results/{writer}/{seq:int}": _result,
        "/api/runs/{run}/files/{digest}": _file,
    }
    routes = [Route(path, _endpoint(library, ask)) for path, ask in paths.items()]
    routes.append(Route("/api/events", functools.partial(_events, library, ending)))
    return Starlette(routes=routes)


def _endpoint(
    library: Library, answers: Answers
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        # Files are read in a thread: a slow disk must not stop other answers.
        try:
            return await run_in_threadpool(answers, library, request)
        except tuple(_STATUS) as error:
            status = next(s for kind, s in _STATUS.items() if isinstance(error, kind))
            return _json({"error": str(error)}, status)

    return endpoint


def _page(library: Library, _request: Request) -> Response:
    rows = [summary(key, run) for key, run in library.runs().items()]
    return HTMLResponse(runs_page(rows, [str(s.root) for s in library.stores]))


def _runs(library: Library, _request: Request) -> Response:
    rows: list[Json] = [*(summary(key, run) for key, run in library.runs().items())]
    return _json({"runs": rows})


def _metrics(library: Library, request: Request) -> Response:
    rows: list[Json] = [
        {"step": row.step, "wall_time": row.wall_time, "metrics": {**row.metrics}}
        for row in library.run(request.path_params["run"]).metrics()
    ]
    return _json({"metrics": rows})


def _results(library: Library, request: Request) -> Response:
    run = library.run(request.path_params["run"])
    found = run.results(
        request.query_params.get("name"),
        _step(request),
        superseded="superseded" in request.query_params,
    )
    rows: list[Json] = [*map(described, found)]
    return _json({"results": rows})


def _result(library: Library, request: Request) -> Response:
    known = request.path_params
    result = library.result(known["run"], known["writer"], known["seq"])
    return _json(result_json(result))


def _file(library: Library, request: Request) -> Response:
    digest = request.path_params["digest"]
    run = library.run(request.path_params["run"])
    kinds = {
        suffix
        for result in run.results(superseded=True)
        for part in result.parts
        for suffix, found in part.blobs.items()
        if found == digest
    }
    if not kinds or not _DIGEST.fullmatch(digest):
        raise NotFound("The run has no file of this hash.")
    suffix = min(kinds)
    shown = _TYPES.get(suffix)
    headers = {"Content-Security-Policy": "sandbox; default-src 'none'"}
    if shown is None:
        headers["Content-Disposition"] = "attachment"
    data = read_blob(blob_path(run.dir, digest, suffix), digest)
    return Response(
        data, media_type=shown or "application/octet-stream", headers=headers
    )


async def _events(
    library: Library, ending: Callable[[], bool], _request: Request
) -> Response:
    told = changes(library, ending=ending)
    return StreamingResponse(told, media_type="text/event-stream")


def _step(request: Request) -> int | None:
    text = request.query_params.get("step")
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise HTTPException(400, f"A step is an integer >= 0, not {text[:40]!r}.")
    return int(text)


def _json(value: dict[str, Json], status: int = 200) -> Response:
    return Response(dumps(value), status, media_type="application/json")
