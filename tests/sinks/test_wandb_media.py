"""What W&B is given to show."""

import html
import json

import pytest

from tests.sinks.wandb_place import wandb_dir as wandb_dir
from theseus_track.errors import BadInput
from theseus_track.records import JsonItem
from theseus_track.sinks.conformance import Items, tiny_png
from theseus_track.sinks.wandb.media import html_of, image_of, table_of


def value(content: object) -> JsonItem:
    item = Items().json(7, content)
    assert isinstance(item, JsonItem)
    return item


def test_an_image_has_our_pixels_and_its_caption() -> None:
    image = image_of(tiny_png(5), "name, step 7 \ud800")
    assert image.image.size == (4, 3)
    assert image._caption == "name, step 7 \\ud800"


@pytest.mark.parametrize("png", [b"", b"GIF89a", tiny_png(5)[:40]])
def test_what_is_no_png_file_is_refused(png: bytes) -> None:
    with pytest.raises(BadInput, match="PNG"):
        image_of(png, "")


def test_a_page_shows_a_value_verbatim() -> None:
    given = {"t": "</pre><script>*a*</script>", "nan": float("nan"), "s": "\ud800"}
    page = html_of(value(given), run="r1").html
    assert "<script>" not in page
    text = html.unescape(page.partition("<pre>")[2].partition("</pre>")[0])
    assert json.loads(text) == {**given, "nan": "NaN"}


def test_a_huge_value_is_cut_and_says_how_to_see_it() -> None:
    page = html_of(value(["x" * 100] * 10_000), run="r1").html
    assert len(page) < 600_000
    assert "theseus-track show r1 entropy --step 7" in page


def test_a_column_of_several_types_becomes_text() -> None:
    table = table_of((["a", "b", "c"], [[1, True, "x"], ["x", None, [2]]]))
    assert table.data == [["1", True, "x"], ["x", None, "[2]"]]


def test_numbers_beyond_a_float_become_text() -> None:
    assert table_of((["n"], [[2**70], [1]])).data == [[str(2**70)], ["1"]]


def test_columns_of_one_name_are_told_apart() -> None:
    assert table_of((["a", "a"], [[1, 2]])).columns == ["a", "a (1)"]


def test_a_long_table_is_cut() -> None:
    assert len(table_of((["a"], [[n] for n in range(5000)])).data) == 1000
