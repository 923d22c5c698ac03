"""Tables are thinned: few of each key, and always the last."""

from collections.abc import Sequence

from theseus_track.sinks.conformance import Items
from theseus_track.sinks.wandb.entry import Entry
from theseus_track.sinks.wandb.keys import RESULTS
from theseus_track.sinks.wandb.versions import MOST, TableVersions


def table(step: int, key: str = "t") -> Entry:
    item = Items().json(step, [[step]])
    return Entry(item=item, steps=RESULTS, values={key: "a table"})


def shown(steps: Sequence[int]) -> list[int]:
    versions = TableVersions()
    now = [step for step in steps if versions.choose(table(step))]
    return [*now, *(entry.step for entry in versions.take_last())]


def test_a_few_tables_are_all_shown() -> None:
    assert shown(range(4)) == [0, 1, 2, 3]


def test_many_tables_are_thinned_and_the_last_is_there() -> None:
    steps = shown(range(100_000))
    assert len(steps) == MOST
    assert steps[:6] == [0, 1, 2, 3, 5, 8]
    assert steps[-1] == 99_999


def test_the_last_is_that_of_the_highest_step() -> None:
    assert shown([*range(100), 50])[-1] == 99


def test_each_key_has_its_own_count() -> None:
    versions = TableVersions()
    assert all(versions.choose(table(1, key)) for key in ("a", "b", "c"))


def test_the_last_is_given_once() -> None:
    versions = TableVersions()
    for step in range(8):
        versions.choose(table(step))
    assert [entry.step for entry in versions.take_last()] == [7]
    assert versions.take_last() == []
