"""The line under a figure."""

from theseus_track.records.caption import caption_of


def test_a_caption_says_all_that_is_known() -> None:
    said = caption_of(
        "map", "my/map", ("a", "", "c", "d"), 7, run="r1", shown="4 values"
    )
    assert (
        said == "map [my/map] at a, the model, c and 1 more, step 7, run r1: 4 values"
    )


def test_what_is_not_known_is_left_out() -> None:
    assert caption_of("map", None, (), 0) == "map, step 0"
