"""Each page in a real Chromium: its main action, and what it does with bad ledgers."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.browsing import Site, check_painted, chromium, site
from tests.dashboard.ledger import fill, fill_hostile
from tests.store.ledgers import metrics, run_info
from theseus_track.dashboard import Library
from theseus_track.store import LedgerWriter

# Every test here drives a browser, which takes about a second each.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("root")
    fill(directory)
    return directory


@pytest.fixture(scope="module")
def served(browser: Browser, root: Path) -> Iterator[Site]:
    with site(browser, [root]) as found:
        yield found


@pytest.fixture(scope="module")
def keys(root: Path) -> dict[str, str]:
    return {run.id: key for key, run in Library([root]).runs().items()}


def _compare(keys: dict[str, str], *rest: str) -> str:
    chosen = [f"r={keys['one']}.0", f"r={keys['two']}.1", f"r={keys['plain']}.2"]
    return "?" + "&".join(["page=compare", *chosen, "a=acts", *rest])


def test_runs_are_filtered_and_chosen_and_their_configs_compared(served: Site) -> None:
    with served.page() as page:
        rows = page.locator("tr[data-run]")
        expect(rows).to_have_count(4)
        page.keyboard.press("/")
        page.keyboard.type("tag:base lr<1")
        expect(rows).to_have_count(2)
        page.get_by_label("Choose one").check()
        page.locator("h1").click()
        # The table has the newest first: one, two above it.
        page.keyboard.press("ArrowDown")
        page.keyboard.press("x")
        expect(page.locator(".diff tr.differs")).to_have_count(1)
        expect(page.locator(".diff tr.differs")).to_contain_text("seed")
        page.reload()
        expect(page.locator("tr.chosen")).to_have_count(2)
        page.keyboard.press("Enter")
        expect(page.locator(".row").first).to_be_visible()


def test_the_nearest_earlier_record_is_shown_with_its_step(
    served: Site, keys: dict[str, str]
) -> None:
    with served.page(_compare(keys, "step=20")) as page:
        check_painted(page, f"{keys['one']}@20")
        check_painted(page, f"{keys['two']}@15")
        expect(page.locator(".at.earlier")).to_have_text("step 15 ←")
        expect(page.locator("[data-missing]")).to_contain_text("no data")
        page.keyboard.press("e")
        expect(page.locator("[data-missing]")).to_have_count(2)
        page.keyboard.press("e")
        page.keyboard.press("ArrowRight")
        check_painted(page, f"{keys['one']}@30")
        check_painted(page, f"{keys['two']}@30")
        expect(page.locator("output strong")).to_have_text("30")


def test_a_difference_is_read_cell_by_cell_and_lives_in_the_address(
    served: Site, keys: dict[str, str]
) -> None:
    with served.page(_compare(keys, "step=20")) as page:
        check_painted(page, f"{keys['one']}@20")
        page.keyboard.press("d")
        check_painted(page, "difference@20-15")
        drawing = page.locator("canvas[data-painted='difference@20-15']")
        drawing.focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
            page.keyboard.press(key)
        readouts = page.locator(".readout")
        # One cell in all panels: 100 * row + column + step, and 20 - 15.
        expect(readouts).to_have_text(
            ["121 at 1, 1", "116 at 1, 1", "5 at 1, 1"], use_inner_text=True
        )
        page.reload()
        check_painted(page, "difference@20-15")


def test_mean_and_deviation_say_over_how_many(
    served: Site, keys: dict[str, str]
) -> None:
    with served.page(_compare(keys, "step=30", "stat=std")) as page:
        check_painted(page, "std@2")
        expect(page.get_by_text("N = 2")).to_be_visible()


def test_results_of_another_probe_are_combined_only_when_told(
    served: Site, keys: dict[str, str]
) -> None:
    chosen = f"r={keys['one']}.0&r={keys['other']}.1"
    with served.page(f"?page=compare&{chosen}&a=acts&stat=mean") as page:
        expect(page.locator(".badge.warn")).to_have_text("probe differs")
        page.get_by_text("Combine them anyway").click()
        check_painted(page, "mean@2")


def test_a_click_on_a_curve_moves_the_step(served: Site, keys: dict[str, str]) -> None:
    with served.page(_compare(keys, "m=train/loss")) as page:
        check_painted(page, f"{keys['one']}@30")
        page.locator(".u-over").click(position={"x": 2, "y": 40})
        check_painted(page, f"{keys['one']}@10")
        expect(page).to_have_url(re.compile("step=10"))


def test_runs_align_where_a_metric_falls_below(
    served: Site, keys: dict[str, str]
) -> None:
    query = _compare(keys, "align=metric", "until=train/loss", "until=0.1")
    with served.page(query) as page:
        check_painted(page, f"{keys['one']}@20")


def test_images_lie_over_each_other(served: Site, keys: dict[str, str]) -> None:
    query = _compare(keys, "wipe=1").replace("a=acts", "a=photo")
    with served.page(query) as page:
        expect(page.locator(".wipe img")).to_have_count(2)
        page.get_by_label("How much of the first is seen").fill("80")
        expect(page.locator(".wipe-edge")).to_have_css("left", re.compile(r"\d+px"))


def test_a_film_has_a_frame_for_each_step(served: Site, keys: dict[str, str]) -> None:
    with served.page(f"?page=film&run={keys['one']}&name=acts") as page:
        check_painted(page, "strip:3")
        check_painted(page, "film@30")
        page.locator(".strip canvas").click(position={"x": 10, "y": 10})
        check_painted(page, "film@10")
        with page.expect_download() as saved:
            page.get_by_text("All steps (zip)").click()
        assert saved.value.suggested_filename == "one-acts.zip"


def test_a_result_has_its_files_and_what_it_comes_from(
    served: Site, keys: dict[str, str]
) -> None:
    with served.page(f"?page=result&run={keys['one']}&name=acts&step=20") as page:
        check_painted(page, "result@20")
        for label, name in (
            ("Values CSV", "acts-step20.csv"),
            ("PDF", "acts-step20.pdf"),
        ):
            with page.expect_download() as saved:
                page.get_by_role("link", name=label, exact=True).click()
            assert saved.value.suggested_filename == name
        with page.expect_download() as saved:
            page.get_by_role("button", name=re.compile("as SVG")).click()
        assert Path(saved.value.path()).read_text("utf-8").startswith("<svg ")
        expect(page.locator(".facts")).to_contain_text("blocks_0/attn")


def test_a_failed_result_shows_its_traceback(
    served: Site, keys: dict[str, str]
) -> None:
    with served.page(f"?page=result&run={keys['one']}&name=broken") as page:
        expect(page.locator(".failure")).to_contain_text("line 7 in plot")


def test_help_opens_and_closes_by_keys(served: Site) -> None:
    with served.page() as page:
        page.locator("tr[data-run]").first.wait_for()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()


def test_an_empty_root_says_what_to_run_and_shows_the_first_run(
    browser: Browser, tmp_path: Path
) -> None:
    with site(browser, [tmp_path]) as found, found.page() as page:
        expect(page.locator("pre")).to_contain_text("theseus-track demo")
        with LedgerWriter.create(tmp_path, run_info("new", name="new-run")) as ledger:
            ledger.append(metrics(1, loss=1.0))
            expect(page.get_by_role("link", name="new-run")).to_be_visible()


def test_the_pages_are_accessible_light_and_dark(
    served: Site, keys: dict[str, str]
) -> None:
    one = f"run={keys['one']}&name"
    queries = {
        f"?r={keys['one']}.0": ".diff",
        _compare(keys, "step=20", f"diff={keys['one']}", f"diff={keys['two']}"): (
            "[data-painted^='difference']"
        ),
        f"?page=film&{one}=acts": "[data-painted='strip:3']",
        f"?page=result&{one}=broken": ".failure pre",
    }
    # The policy of the pages would refuse the checker's own script, too.
    with served.page(bypass_csp=True, reduced_motion="reduce") as page:
        for query, ready in queries.items():
            page.goto(served.url + query)
            page.locator(ready).first.wait_for()
            _check_accessible(page)
            page.emulate_media(color_scheme="dark")
            page.locator("[data-theme=dark]").wait_for()
            _check_accessible(page, runOnly=["color-contrast"])
            page.emulate_media(color_scheme="light")


def _check_accessible(page: Page, **options: object) -> None:
    found = Axe().run(page, options=options)
    assert found.violations_count == 0, found.generate_report()


def test_a_phone_needs_no_sideways_scrolling(
    served: Site, keys: dict[str, str]
) -> None:
    phone = {"width": 390, "height": 844}
    with served.page(_compare(keys), viewport=phone) as page:
        check_painted(page, f"{keys['one']}@30")
        for query in ("", f"?page=film&run={keys['one']}", "?page=result"):
            assert _overhang(page) <= 0, page.url
            page.goto(served.url + query)
            page.locator("h1").wait_for()
        assert _overhang(page) <= 0


def _overhang(page: Page) -> int:
    wide: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return wide


def test_a_hostile_ledger_does_nothing(browser: Browser, tmp_path: Path) -> None:
    fill_hostile(tmp_path)
    (key,) = Library([tmp_path]).runs()
    with site(browser, [tmp_path]) as found, found.page(f"?r={key}.0") as page:
        for query, ready in {
            f"?r={key}.0&group=tags": "tr[data-run]",
            f"?page=compare&r={key}.0&wipe=1&stat=mean": ".cell",
            f"?page=film&run={key}&name=evil": ".film, .notice",
            f"?page=result&run={key}&name=evil": ".facts",
            f"?page=result&run={key}&name=failed": ".failure pre",
        }.items():
            page.goto(found.url + query)
            page.locator(ready).first.wait_for()
            assert page.evaluate("window.hit") is None
            assert page.locator("main img:not(.figure):not(.wipe img)").count() == 0
            assert page.locator("main script").count() == 0
