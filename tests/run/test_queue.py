"""ByteQueue is bounded in bytes, keeps order, and knows when its work is done."""

import threading
import time

from theseus_track.run.queue import ByteQueue


def test_items_come_out_in_order_and_bytes_are_counted() -> None:
    queue: ByteQueue[str] = ByteQueue(100)
    assert queue.put("a", 40, timeout=0)
    assert queue.put("b", 60, timeout=0)
    assert queue.bytes == 100
    assert [queue.get(0), queue.get(0), queue.get(0)] == ["a", "b", None]
    assert queue.bytes == 0


def test_a_full_queue_refuses_after_the_timeout() -> None:
    queue: ByteQueue[str] = ByteQueue(100)
    queue.put("a", 90, timeout=0)
    assert not queue.put("b", 20, timeout=0.01)


def test_an_oversized_item_is_admitted_to_an_empty_queue() -> None:
    queue: ByteQueue[str] = ByteQueue(10)
    assert queue.put("large", 1000, timeout=0)


def test_room_that_appears_lets_the_waiting_item_in() -> None:
    queue: ByteQueue[str] = ByteQueue(10)
    queue.put("a", 10, timeout=0)
    admitted = []
    thread = threading.Thread(
        target=lambda: admitted.append(queue.put("b", 10, timeout=30))
    )
    thread.start()
    assert queue.get(1) == "a"
    thread.join(30)
    assert admitted == [True]


def test_join_waits_for_done_not_for_get() -> None:
    queue: ByteQueue[str] = ByteQueue(None)
    queue.put("a", 1, timeout=0)
    queue.get(0)
    assert not queue.join(time.monotonic() + 0.01)
    queue.done()
    assert queue.join(time.monotonic())


def test_a_closed_queue_gives_what_it_holds_and_takes_nothing() -> None:
    queue: ByteQueue[str] = ByteQueue(None)
    queue.put("a", 1, timeout=0)
    queue.close()
    assert not queue.put("b", 1, timeout=0)
    assert not queue.closed
    assert queue.get(0) == "a"
    assert queue.closed
