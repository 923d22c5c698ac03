"""`theseus-track dashboard [ROOT ...]`: runs and results in a browser."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import socket

    import uvicorn

    from theseus_track.web import Guard

__all__ = ["command"]

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@click.command()
@click.argument("roots", nargs=-1, type=click.Path(file_okay=False), metavar="[ROOT]..")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6007,
    show_default=True,
    help="Port to listen on; 0 for any free one.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on."
)
@click.option(
    "--allowed-host",
    "allowed",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Another name that browsers reach it by, as behind a proxy; may repeat.",
)
@click.option(
    "--base-path",
    default="",
    metavar="PATH",
    help="What a proxy puts before every path and strips, such as /proxy/6007.",
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option(
    "--no-token",
    is_flag=True,
    help="Let everybody in who reaches the port; on this machine's addresses only.",
)
def command(
    roots: tuple[str, ...],
    port: int,
    host: str,
    allowed: tuple[str, ...],
    base_path: str,
    no_open: bool,
    no_token: bool,
) -> None:
    """Show the runs of one or more ledgers in a browser, read-only.

    ROOT is the directory of a ledger; else $THESEUS_ROOT, else ./results. The link
    that is printed works once; using it prints the next one.
    """
    import os
    import socket
    import webbrowser

    from theseus_track.dashboard import Library, create_app
    from theseus_track.errors import BadInput
    from theseus_track.web import Door, Guard

    if no_token and host not in _LOOPBACK:
        raise BadInput(
            f"--no-token with --host {host} would let the whole network in. "
            f"Leave --no-token out, or use one of {', '.join(_LOOPBACK)}."
        )
    if base_path and not base_path.startswith("/"):
        raise BadInput(f"The base path {base_path!r} must begin with a slash.")
    base = base_path.rstrip("/")
    listening = _listen(host, port)
    number: int = listening.getsockname()[1]
    name = f"[{host}]" if listening.family == socket.AF_INET6 else host
    origin = f"http://{allowed[0] if allowed else f'{name}:{number}'}{base}/"

    def show(token: str) -> None:
        click.echo(f"For another browser: {origin}?token={token}")

    door = None if no_token else Door(show)
    link = origin if door is None else f"{origin}?token={door.token}"
    hosts = {f"{n}:{number}".lower() for n in (name, "127.0.0.1", "localhost")}
    library = Library(roots or [None])
    app = create_app(library, ending=lambda: server.should_exit)
    guard = Guard(
        app,
        door=door,
        hosts=hosts | {text.lower() for text in allowed},
        cookie=f"theseus-{number}",
        base=base,
    )
    click.echo(f"Dashboard: {link}")
    remote = "SSH_CONNECTION" in os.environ
    if remote:
        click.echo(
            f"On your own machine first: ssh -L {number}:127.0.0.1:{number} "
            f"{socket.gethostname()}"
        )
    server = _server(guard)
    if not (no_open or remote):
        webbrowser.open(link)
    server.run(sockets=[listening])


def _listen(host: str, port: int) -> "socket.socket":
    import socket

    from theseus_track.errors import BadInput

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # Before the link is printed: whoever is quick waits instead of failing.
        listening.listen()
    except OSError as error:
        listening.close()
        raise BadInput(
            f"Cannot listen on {host} port {port}: {error.strerror}. "
            "Choose another --port; 0 takes any free one."
        ) from error
    return listening


def _server(guard: "Guard") -> "uvicorn.Server":
    import uvicorn

    config = uvicorn.Config(
        guard,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws="none",
        # Streams of events end by themselves sooner than this, in seconds.
        timeout_graceful_shutdown=3,
    )
    return uvicorn.Server(config)
