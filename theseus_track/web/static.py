"""Serves the files that a package ships, by the names that they had at the start."""

import hashlib
from collections.abc import Awaitable, Callable
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["static_routes"]

# A browser may show these only; a file of another kind is a mistake of the build.
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}


def static_routes(directory: Traversable) -> list[Route]:
    """Return a route for each file of a directory; `index.html` is at `/`.

    All are read now: no address is ever looked up on the disk. A browser keeps
    them, and asks each time whether they still hold.

    Args:
        directory: Where the files are, such as `importlib.resources.files` says.

    Raises:
        FileNotFoundError: When there is no such directory.
    """
    found = sorted(directory.iterdir(), key=lambda file: file.name)
    return [
        Route(
            "/" if file.name == "index.html" else f"/{file.name}",
            _answering(file.read_bytes(), kind),
        )
        for file in found
        if (kind := _TYPES.get(f".{file.name.rpartition('.')[2]}"))
    ]


def _answering(data: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    tag = f'"{hashlib.blake2b(data, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers, media_type=kind)

    return answer
