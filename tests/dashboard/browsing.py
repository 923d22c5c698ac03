"""A real Chromium that looks at a real server, and everything that it complains of."""

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.web.serving import free_port, serving
from theseus_track.dashboard import Library, create_app
from theseus_track.web import Guard


@dataclasses.dataclass(slots=True)
class Site:
    """A served root, and the browser to see it with."""

    url: str
    browser: Browser

    @contextlib.contextmanager
    def page(self, query: str = "", **context: Any) -> Iterator[Page]:
        """Open a page; nothing may go wrong in it, and nothing leave this machine."""
        context = {"viewport": {"width": 1280, "height": 800}} | context
        opened = self.browser.new_context(**context)
        page = opened.new_page()
        page.set_default_timeout(10_000)
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda m: wrong.extend([m.text] * (m.type == "error")))
        page.on("request", lambda r: self._check_request(r.url, wrong))
        page.goto(self.url + query)
        try:
            yield page
            assert wrong == []
        finally:
            opened.close()

    def _check_request(self, url: str, wrong: list[str]) -> None:
        if not url.startswith((self.url, "data:", f"blob:{self.url}")):
            wrong.append(f"asked {url}")


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium; without one, skip, but not in the CI."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("There is no Chromium; SYSTEM_PACKAGES of the Makefile has it.")
        pytest.skip("There is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        # Root has no sandbox of its own to put it in.
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@contextlib.contextmanager
def site(browser: Browser, roots: Sequence[Path]) -> Iterator[Site]:
    """Serve roots as the command does, behind the guard."""
    port = free_port()
    ending = False
    app = create_app(Library(roots), ending=lambda: ending)
    guard = Guard(app, door=None, hosts={f"127.0.0.1:{port}"}, cookie="theseus")
    with serving(guard, port):
        yield Site(url=f"http://127.0.0.1:{port}/", browser=browser)
        ending = True


def check_painted(page: Page, what: str) -> None:
    """Wait until a drawing shows this."""
    page.locator(f"canvas[data-painted='{what}']").first.wait_for()
