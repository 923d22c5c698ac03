from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from theseus_track.records import FigureItem, Item
from theseus_track.sinks.conformance import Items
from theseus_track.sinks.queueing import ItemQueue, Key, item_bytes, key_of

offers = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50)), max_size=40)


def filled(items: list[Item]) -> ItemQueue:
    queue = ItemQueue(capacity=10**9)
    for item in items:
        assert queue.push(item)
    return queue


@given(offers)
def test_nothing_is_lost_and_the_steps_of_each_key_ascend(
    offered: list[tuple[str, int]],
) -> None:
    items = Items()
    figures = [items.figure(step, name) for name, step in offered]
    queue = filled(figures)
    out = [queue.pop() for _ in range(len(queue))]
    assert len(queue) == 0
    assert {item.ref for item in out} == {item.ref for item in figures}
    steps: dict[Key, list[int]] = defaultdict(list)
    for item in out:
        steps[key_of(item)].append(item.step)
    assert all(found == sorted(found) for found in steps.values())


@given(offers)
def test_keys_take_turns_in_the_order_of_arrival(
    offered: list[tuple[str, int]],
) -> None:
    items = Items()
    queue = filled([items.figure(step, name) for name, step in offered])
    out = [queue.pop() for _ in range(len(queue))]
    assert [key_of(item)[1] for item in out] == [name for name, _ in offered]


def test_items_of_one_step_keep_their_order() -> None:
    items = Items()
    figures = [items.figure(3) for _ in range(5)]
    queue = filled(figures)
    assert [queue.pop() for _ in figures] == figures


def test_what_is_put_back_comes_first_again() -> None:
    items = Items()
    first, second, other = items.figure(2), items.figure(2), items.figure(0, "b")
    queue = filled([first, second, other])
    queue.put_back(queue.pop())
    assert [queue.pop() for _ in range(3)] == [first, second, other]


def test_the_bytes_are_bounded_but_one_item_always_fits() -> None:
    items = Items()
    one = items.figure(1)
    queue = ItemQueue(capacity=2 * item_bytes(one))
    assert [queue.push(items.figure(step)) for step in (1, 2, 3)] == [True, True, False]
    queue.pop()
    assert queue.push(items.figure(4))
    assert ItemQueue(capacity=1).push(one)


@pytest.mark.parametrize("size", [10, 10_000])
def test_the_estimate_of_an_item_grows_with_its_content(size: int) -> None:
    items = Items()
    figure = items.figure(1)
    assert isinstance(figure, FigureItem)
    assert item_bytes(items.json(1, ["x" * size, {"k": [1.5] * size}])) > 9 * size
    assert (
        item_bytes(items.metrics(1, dict.fromkeys(map(str, range(size)), 0.0))) > size
    )
    assert item_bytes(figure) > len(figure.png) + len(figure.pdf)
