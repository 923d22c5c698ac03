"""The command that serves the dashboard, as a process of its own."""

import http.client
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click.testing
import pytest

from tests.store.ledgers import evaluate, writer
from tests.web.serving import ask
from theseus_track.cli import main

PROJECT = Path(__file__).parents[2]
# Ends with a complaint when the server, once asked, had loaded JAX.
PROGRAM = """
import sys
from theseus_track.cli import main
try:
    main()
finally:
    heavy = sorted({"jax", "flax", "matplotlib", "wandb"} & set(sys.modules))
    print("loaded:", heavy, flush=True)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    with writer(tmp_path) as ledger:
        evaluate(ledger, 1)
    words = ["dashboard", str(tmp_path), "--port", "0", "--no-open"]
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "SSH_CONNECTION": "1 2 3"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    with process:
        yield process
        process.kill()


def test_the_link_opens_the_runs_without_jax(
    server: "subprocess.Popen[str]",
) -> None:
    assert server.stdout is not None
    assert server.stderr is not None
    link = server.stdout.readline()
    match = re.search(r"http://127\.0\.0\.1:(\d+)(/\?token=\S+)", link)
    assert match is not None, link
    port = int(match[1])
    assert f"ssh -L {port}:127.0.0.1:{port}" in server.stdout.readline()
    assert ask(port, "/").status == 401
    opened = ask(port, match[2])
    assert opened.status == 303
    assert "?token=" in server.stdout.readline()
    cookie = opened.headers["set-cookie"].split(";")[0]
    assert ask(port, "/", [("Cookie", cookie)]).status == 200
    assert b"train-gpt" in ask(port, "/api/runs", [("Cookie", cookie)]).body
    # A page that follows the runs does not disturb the end.
    stream = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    stream.request("GET", "/api/events", headers={"Cookie": cookie})
    assert stream.getresponse().readline().startswith(b'data: {"runs":["')
    server.send_signal(signal.SIGINT)
    assert "loaded: []" in server.stdout.read()
    assert server.stderr.read().split() == ["Interrupted."]
    stream.close()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--no-token", "--host", "0.0.0.0"], ["0.0.0.0", "--no-token"]),
        (["--base-path", "proxy"], ["'proxy'", "slash"]),
        (["--host", "203.0.113.1"], ["203.0.113.1", "--port"]),
    ],
)
def test_what_cannot_be_served_is_one_line(words: list[str], named: list[str]) -> None:
    done = click.testing.CliRunner().invoke(main, ["dashboard", *words])
    assert done.exit_code == 2
    assert all(name in done.output for name in named)
    assert len(done.output.strip().splitlines()) == 1
