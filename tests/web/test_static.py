"""Files that a package ships, served by name."""

from pathlib import Path

from starlette.applications import Starlette

from tests.web.serving import ask, free_port, serving
from theseus_track.web import static_routes


def test_only_known_kinds_are_served_and_only_by_their_name(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<p>here")
    (tmp_path / "app.js").write_text("1")
    (tmp_path / "secret.txt").write_text("no")
    port = free_port()
    with serving(Starlette(routes=static_routes(tmp_path)), port):
        first = ask(port, "/")
        assert (first.body, first.headers["content-type"]) == (
            b"<p>here",
            "text/html; charset=utf-8",
        )
        assert ask(port, "/app.js").status == 200
        for hidden in ("/secret.txt", "/index.html", "/../secret.txt", "/app.js/"):
            assert ask(port, hidden).status in (307, 404), hidden
