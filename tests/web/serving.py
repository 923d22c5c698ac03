"""A real server in a thread, and requests as a hostile client may write them."""

import contextlib
import dataclasses
import http.client
import socket
import threading
import time
from collections.abc import Iterator, Sequence

import uvicorn
from starlette.types import ASGIApp


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


@contextlib.contextmanager
def serving(app: ASGIApp, port: int) -> Iterator[None]:
    """Serve the application until the block ends."""
    config = uvicorn.Config(
        app, port=port, log_level="error", ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        thread.join()


def ask(
    port: int,
    target: str,
    headers: Sequence[tuple[str, str]] = (),
    *,
    method: str = "GET",
) -> Answer:
    """Send one request exactly as given; a Host header only if none is given."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    named = any(name.lower() == "host" for name, _ in headers)
    connection.putrequest(method, target, skip_host=named, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    found = {name.lower(): value for name, value in answer.getheaders()}
    result = Answer(status=answer.status, headers=found, body=answer.read())
    connection.close()
    return result
