"""Answers that a browser keeps: JSON and files with a tag, packed where that helps."""

import gzip
import hashlib

from starlette.requests import Request
from starlette.responses import Response

from theseus_track.records import dumps
from theseus_track.records.strict_json import Json

__all__ = ["REVALIDATED", "file_answer", "json_answer"]

REVALIDATED = "private, no-cache"
"""A browser may keep the answer, and asks whether it still holds."""

_FOREVER = "private, max-age=31536000, immutable"
# Smaller answers gain nothing; a level above costs more time than it saves here.
_PACK_ABOVE = 1400
_LEVEL = 1
# Floats in base 64 hardly shrink: not worth the time on a machine of one's own.
_PACK_BELOW = 4 << 20


def json_answer(
    request: Request, value: dict[str, Json], status: int = 200
) -> Response:
    """Return JSON, or only that it is what the browser has."""
    body = dumps(value).encode("ascii")
    if status != 200:
        return Response(body, status, media_type="application/json")
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": REVALIDATED, "Vary": "Accept-Encoding"}
    if _has(request, tag):
        return Response(status_code=304, headers=headers)
    accepted = request.headers.get("accept-encoding", "").lower().split(",")
    packs = any(word.split(";")[0].strip() == "gzip" for word in accepted)
    if packs and _PACK_ABOVE < len(body) < _PACK_BELOW:
        body = gzip.compress(body, _LEVEL, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return Response(body, headers=headers, media_type="application/json")


def file_answer(
    request: Request, data: bytes, media_type: str, tag: str, save: str | None
) -> Response:
    """Return a file that never changes, in a sandbox.

    Args:
        request: The request.
        data: The content.
        media_type: What it is.
        tag: What names its content.
        save: A safe file name to save it under, or None to show it.
    """
    headers = {
        "ETag": f'"{tag}"',
        "Cache-Control": _FOREVER,
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    if save is not None:
        headers["Content-Disposition"] = f'attachment; filename="{save}"'
    if _has(request, f'"{tag}"'):
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers, media_type=media_type)


def _has(request: Request, tag: str) -> bool:
    known = request.headers.get("if-none-match", "")
    return tag in (word.strip().removeprefix("W/") for word in known.split(","))
