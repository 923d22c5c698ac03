"""Hostile requests are refused before any application sees them."""

import contextlib
from collections.abc import Callable, Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.web.serving import Answer, ask, free_port, serving
from theseus_track.web import Door, Guard

Ask = Callable[..., Answer]


async def _hello(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("secret")


@contextlib.contextmanager
def _guarded(door: Door | None) -> Iterator[Ask]:
    port = free_port()
    app = Starlette(routes=[Route("/{path:path}", _hello)])
    hosts = {f"127.0.0.1:{port}"}
    guard = Guard(app, door=door, hosts=hosts, cookie="session", base="/base")
    with serving(guard, port):
        yield lambda target, *headers, method="GET": ask(
            port,
            target,
            [(n, v.replace("HERE", f"127.0.0.1:{port}")) for n, v in headers],
            method=method,
        )


@pytest.fixture(scope="module")
def door() -> Door:
    return Door()


@pytest.fixture(scope="module")
def guarded(door: Door) -> Iterator[Ask]:
    with _guarded(door) as asking:
        yield asking


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", [("Host", "evil.example")], 421),
        ("GET", [("Host", "127.0.0.1")], 421),
        ("GET", [("Host", "HERE@evil.example")], 421),
        ("GET", [("Host", "HERE.evil.example")], 421),
        ("GET", [("Host", "")], 421),
        ("GET", [("Host", "HERE,evil.example")], 421),
        ("GET", [("Host", "localhost:1")], 421),
        ("GET", [("Host", "evil.example"), ("X-Forwarded-Host", "HERE")], 421),
        ("GET", [("Origin", "http://evil.example")], 403),
        ("GET", [("Origin", "null")], 403),
        ("GET", [("Origin", "HERE")], 403),
        ("GET", [("Origin", "http://HERE"), ("Origin", "http://evil.example")], 403),
        ("GET", [("Origin", "http://HERE.evil.example")], 403),
        ("GET", [("Sec-Fetch-Site", "cross-site")], 403),
        ("GET", [("Sec-Fetch-Site", "same-site")], 403),
        ("GET", [("Sec-Fetch-Site", "anything")], 403),
        ("HEAD", [("Sec-Fetch-Site", "cross-site")], 403),
        ("POST", [], 405),
        ("PUT", [], 405),
        ("PATCH", [], 405),
        ("DELETE", [], 405),
        ("CONNECT", [], 405),
        ("GEET", [], 405),
        ("OPTIONS", [("Access-Control-Request-Method", "GET")], 405),
        ("TRACE", [], 405),
    ],
)
def test_a_hostile_request_is_refused_also_with_the_session(
    door: Door, guarded: Ask, method: str, headers: list[tuple[str, str]], status: int
) -> None:
    cookie = ("Cookie", f"session={door.session}")
    answer = guarded("/a", cookie, *headers, method=method)
    assert answer.status == status
    assert b"secret" not in answer.body
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("cookie", ["", "session=", "session=wrong", 'session="; \\'])
def test_without_the_session_nothing_is_read(guarded: Ask, cookie: str) -> None:
    answer = guarded("/a", ("Cookie", cookie))
    assert answer.status == 401
    assert b"secret" not in answer.body


@pytest.mark.parametrize(
    "query",
    [
        "token=",
        "token=wrong",
        "token=wrong&token=TOKEN",
        "token=TOKEN&token=TOKEN",
        "token=TOKEN%00",
        "token=%F0%9F%94%91",
        "Token=TOKEN",
        "token=" + "A" * 4000,
    ],
)
def test_a_wrong_token_opens_nothing_and_spends_nothing(
    door: Door, guarded: Ask, query: str
) -> None:
    token = door.token
    answer = guarded(f"/?{query.replace('TOKEN', token)}")
    assert answer.status == 401
    assert "set-cookie" not in answer.headers
    assert door.token == token


def test_the_session_reads(door: Door, guarded: Ask) -> None:
    own = [("Origin", "http://HERE"), ("Sec-Fetch-Site", "same-origin")]
    answer = guarded("/a", ("Cookie", f"session={door.session}"), *own)
    assert (answer.status, answer.body) == (200, b"secret")


def test_the_link_works_once_and_leads_to_our_page_only(
    door: Door, guarded: Ask
) -> None:
    link = f"//evil.example/?token={door.token}&step=3"
    answer = guarded(link)
    assert (answer.status, answer.headers["location"]) == (303, "/base/?step=3")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"session={door.session};")
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert guarded(link).status == 401


def test_looking_at_the_link_does_not_use_it_up(door: Door, guarded: Ask) -> None:
    link = f"/?token={door.token}"
    assert guarded(link, method="HEAD").status == 401
    assert guarded(link).status == 303


def test_a_second_host_header_is_refused(door: Door, guarded: Ask) -> None:
    cookie = ("Cookie", f"session={door.session}")
    answer = guarded("/", cookie, ("Host", "HERE"), ("Host", "evil.example"))
    assert answer.status in (400, 421)


def test_every_answer_is_kept_from_running_anything(door: Door, guarded: Ask) -> None:
    for cookie in ("session=wrong", f"session={door.session}"):
        headers = guarded("/", ("Cookie", cookie)).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


def test_without_a_door_the_host_is_still_checked() -> None:
    with _guarded(None) as asking:
        assert asking("/").body == b"secret"
        assert asking("/", ("Host", "evil.example")).status == 421
