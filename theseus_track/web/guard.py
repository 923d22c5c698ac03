"""Decides which requests reach an application, and what its answers may do."""

import http.cookies
from collections.abc import Collection
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from theseus_track.web.door import Door

__all__ = ["Guard"]

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' "
        "data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Lets through what a browser that was given the link reads from a known host.

    Everything is decided by what the server was told at its start, never by what a
    request says of itself. There is no CORS: another site gets no answer.

    Args:
        app: The application.
        door: The secrets; None lets everybody in who reaches the port.
        hosts: The values of the Host header that are served, such as
            "127.0.0.1:6007", in lower case.
        cookie: Name of the session's cookie. Cookies ignore the port, so it should
            hold it.
        base: What all paths begin with, such as "/proxy/6007"; "" for none.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        door: Door | None,
        hosts: Collection[str],
        cookie: str,
        base: str = "",
    ) -> None:
        self._app = app
        self._door = door
        self._hosts = frozenset(hosts)
        self._cookie = cookie
        self._base = base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope) or self._login(scope)
        await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = [host.lower() for host in headers.getlist("host")]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            allowed = ", ".join(sorted(self._hosts))
            return _refuse(421, f"This host is not served; served: {allowed}.")
        if scope["method"] not in ("GET", "HEAD"):
            return _refuse(405, "Only GET: nothing can be changed here.", "GET, HEAD")
        origins = headers.getlist("origin")
        if any(urlsplit(o).netloc.lower() not in self._hosts for o in origins):
            return _refuse(403, "Another site may not read this.")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _refuse(403, "Another site may not read this.")
        return None

    def _login(self, scope: Scope) -> Response | None:
        if self._door is None or self._has_session(scope, self._door):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"))
        tokens = [value for name, value in query if name == "token"]
        # HEAD must not use the token up: programs that look at a link send it.
        spends = scope["method"] == "GET" and len(tokens) == 1
        if not spends or not self._door.redeem(tokens[0]):
            return _refuse(
                401, "Open the link that the command printed; it works once."
            )
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        # Always to the first page: a path of the request could name another host.
        answer = RedirectResponse(f"{self._base}/" + (f"?{rest}" if rest else ""), 303)
        answer.set_cookie(
            self._cookie,
            self._door.session,
            path=f"{self._base}/",
            httponly=True,
            samesite="strict",
        )
        return answer

    def _has_session(self, scope: Scope, door: Door) -> bool:
        cookies: http.cookies.SimpleCookie = http.cookies.SimpleCookie()
        try:
            cookies.load(Headers(scope=scope).get("cookie", ""))
        except http.cookies.CookieError:
            return False
        kept = cookies.get(self._cookie)
        return kept is not None and door.knows(kept.value)


def _refuse(status: int, why: str, allow: str = "") -> Response:
    headers = {"Allow": allow} if allow else None
    return PlainTextResponse(f"{why}\n", status, headers)
