import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable

import pytest

from theseus_track.records import Item, RunInfo
from theseus_track.sinks import Delivery, MemorySink, Receipt, RetryPolicy
from theseus_track.sinks.conformance import Items
from theseus_track.sinks.queueing import item_bytes

# In seconds; a bound against hanging, not an expectation.
LIMIT = 60.0
EAGER = RetryPolicy(attempts=3, first_wait=0.0, pause_after=2, pause=600.0)
INFO = RunInfo(project="tests", name="gpt", id="r1", created=0.0)


class ScriptedSink(MemorySink):
    """A sink whose calls can be held up, or made to raise."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.writing = threading.Event()
        self.threads: set[str] = set()
        self.overlaps = 0
        self.calls: list[str] = []
        self.on_open: Callable[[], None] = lambda: None
        self.on_write: Callable[[Item], None] = lambda _item: None
        self.on_flush: Callable[[], None] = lambda: None
        self._inside = threading.Lock()

    def open(self, info: RunInfo) -> None:
        self._enter("open", self.on_open)
        super().open(info)

    def write(self, item: Item) -> Receipt:
        self.writing.set()
        self._enter("write", lambda: self.on_write(item))
        return super().write(item)

    def flush(self, timeout: float) -> None:
        self._enter("flush", self.on_flush)
        super().flush(timeout)

    def close(self, timeout: float) -> None:
        self._enter("close", lambda: None)
        super().close(timeout)

    @property
    def steps(self) -> list[int]:
        return [item.step for item in self.items]

    def _enter(self, call: str, act: Callable[[], None]) -> None:
        self.threads.add(threading.current_thread().name)
        self.calls.append(call)
        if not self._inside.acquire(blocking=False):
            self.overlaps += 1
            return
        try:
            self.gate.wait(LIMIT)
            act()
        finally:
            self._inside.release()


def fail() -> None:
    raise ConnectionError("no network")


def figures(count: int, items: Items | None = None) -> list[Item]:
    items = items or Items()
    return [items.figure(step) for step in range(count)]


def test_every_call_is_made_on_the_sinks_own_daemon_thread() -> None:
    sink = ScriptedSink()
    delivery = Delivery(sink, INFO)
    offered = figures(20)
    producers = [
        threading.Thread(target=delivery.offer, args=(item,)) for item in offered
    ]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join()
    assert delivery.flush(LIMIT)
    assert delivery.close(LIMIT).complete
    assert sink.threads == {"theseus-sink-memory"}
    assert sink.overlaps == 0
    assert sorted(sink.steps) == list(range(20))
    assert sink.calls[0] == "open"
    assert sink.calls[-2:] == ["flush", "close"]


def test_a_late_item_passes_newer_ones_of_its_key_that_wait() -> None:
    sink, items = ScriptedSink(), Items()
    sink.gate.clear()
    delivery = Delivery(sink, INFO)
    for step in (10, 30, 40, 20):
        delivery.offer(items.figure(step))
    sink.gate.set()
    assert delivery.close(LIMIT).complete
    assert sink.steps == [10, 20, 30, 40]


def test_a_receipt_is_handed_over_for_each_item_on_the_sinks_thread() -> None:
    told: list[tuple[str, int, str, str]] = []

    def on_receipt(sink: str, item: Item, receipt: Receipt) -> None:
        thread = threading.current_thread().name
        told.append((sink, item.step, receipt.status, thread))

    delivery = Delivery(ScriptedSink(), INFO, on_receipt=on_receipt)
    for item in figures(2):
        delivery.offer(item)
    delivery.close(LIMIT)
    thread = "theseus-sink-memory"
    assert told == [("memory", step, "written", thread) for step in (0, 1)]


def test_a_receipt_that_cannot_be_kept_does_not_end_the_delivery(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def on_receipt(_sink: str, _item: Item, _receipt: Receipt) -> None:
        raise OSError("disk full")

    sink = ScriptedSink()
    delivery = Delivery(sink, INFO, on_receipt=on_receipt)
    for item in figures(2):
        delivery.offer(item)
    assert delivery.close(LIMIT).delivered == 2
    assert "disk full" in caplog.text


def test_offering_never_waits_for_a_sink_that_blocks() -> None:
    sink = ScriptedSink()
    delivery = Delivery(sink, INFO)
    assert delivery.flush(LIMIT)
    sink.gate.clear()
    delivery.offer(Items("first").figure(0))
    assert sink.writing.wait(LIMIT)
    # The sink is inside `write` now, and stays there until the gate opens.
    assert all(delivery.offer(item) for item in figures(100))
    report = delivery.report()
    assert report.pending == 101
    assert "has not returned from write" in str(report)
    sink.gate.set()
    assert delivery.close(LIMIT).delivered == 101


def test_what_does_not_fit_is_refused_and_counted() -> None:
    sink, offered = ScriptedSink(), figures(6)
    sink.gate.clear()
    room = sum(item_bytes(item) for item in offered[:3])
    delivery = Delivery(sink, INFO, capacity_bytes=room)
    assert [delivery.offer(item) for item in offered] == [True] * 3 + [False] * 3
    sink.gate.set()
    assert not delivery.flush(LIMIT)
    report = delivery.close(LIMIT)
    assert (report.delivered, report.pending) == (3, 3)
    assert "more was logged" in str(report)


def test_what_was_refused_is_delivered_from_the_ledger_in_step_order() -> None:
    sink, ledger = ScriptedSink(), Items()
    offered = figures(30, ledger)
    acknowledged: set[int] = set()

    def backlog() -> Iterable[Item]:
        # As the ledger does it: all records without a mark of this sink.
        return [item for item in offered if item.step not in acknowledged]

    sink.gate.clear()
    delivery = Delivery(
        sink,
        INFO,
        on_receipt=lambda _sink, item, _receipt: acknowledged.add(item.step),
        backlog=backlog,
        capacity_bytes=3 * item_bytes(offered[0]),
    )
    taken = [delivery.offer(item) for item in offered]
    assert taken == sorted(taken, reverse=True)
    sink.gate.set()
    assert delivery.flush(LIMIT)
    assert sink.steps == list(range(30))
    # It has caught up: what comes now goes through memory again.
    assert delivery.offer(ledger.figure(30))
    assert delivery.close(LIMIT).complete


def test_a_backlog_that_cannot_be_read_leaves_its_items_pending() -> None:
    def backlog() -> Iterable[Item]:
        raise OSError("ledger gone")

    sink, offered = ScriptedSink(), figures(3)
    sink.gate.clear()
    delivery = Delivery(sink, INFO, backlog=backlog, capacity_bytes=1, retry=EAGER)
    for item in offered:
        delivery.offer(item)
    sink.gate.set()
    report = delivery.close(LIMIT)
    assert (report.delivered, report.pending) == (1, 2)
    assert "ledger gone" in str(report)


def test_a_write_that_raises_is_tried_again_in_its_place() -> None:
    sink = ScriptedSink()
    tries: list[int] = []

    def on_write(item: Item) -> None:
        tries.append(item.step)
        if tries.count(item.step) < 3:
            fail()

    sink.on_write = on_write
    delivery = Delivery(sink, INFO, retry=EAGER)
    for item in figures(2):
        delivery.offer(item)
    report = delivery.close(LIMIT)
    assert report.complete
    assert report.reasons == {}
    assert sink.steps == [0, 1]


def test_an_item_that_always_raises_fails_and_the_others_pass(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = ScriptedSink()
    sink.on_write = lambda item: fail() if item.step == 1 else None
    delivery = Delivery(sink, INFO, retry=EAGER)
    for item in figures(4):
        delivery.offer(item)
    report = delivery.close(LIMIT)
    assert (report.delivered, report.failed) == (3, 1)
    assert "no network" in str(report)
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1


def test_a_sink_that_keeps_failing_is_paused_and_its_items_wait() -> None:
    sink = ScriptedSink()
    sink.on_write = lambda _item: fail()
    delivery = Delivery(sink, INFO, retry=EAGER)
    for item in figures(10):
        delivery.offer(item)
    # A flush tries once more and gives up at once instead of waiting for the pause.
    assert not delivery.flush(LIMIT)
    report = delivery.report()
    assert 2 <= report.failed <= 3
    assert report.pending == 10 - report.failed
    sink.on_write = lambda _item: None
    assert delivery.flush(LIMIT)
    report = delivery.close(LIMIT)
    assert report.delivered + report.failed == 10


def test_a_sink_that_cannot_be_opened_loses_nothing_and_is_opened_later() -> None:
    sink = ScriptedSink()
    sink.on_open = fail
    delivery = Delivery(sink, INFO, retry=EAGER)
    for item in figures(3):
        delivery.offer(item)
    assert not delivery.flush(LIMIT)
    assert delivery.report().pending == 3
    sink.on_open = lambda: None
    report = delivery.close(LIMIT)
    assert report.complete
    assert sink.steps == [0, 1, 2]


def test_a_sink_that_never_opens_is_never_written_or_closed() -> None:
    sink = ScriptedSink()
    sink.on_open = fail
    delivery = Delivery(sink, INFO, retry=EAGER)
    delivery.offer(figures(1)[0])
    report = delivery.close(LIMIT)
    assert (report.pending, report.closed) == (1, False)
    assert "no network" in str(report)
    assert set(sink.calls) == {"open"}


class DefersSink(ScriptedSink):
    """Holds what it is given until it is flushed."""

    def write(self, item: Item) -> Receipt:
        super().write(item)
        return Receipt("deferred")


class HoldsTheLast(DefersSink):
    """Writes an item by itself when the next one comes."""

    def holds(self, item: Item) -> bool:
        return item is self.items[-1]


def test_a_deferred_item_is_let_go_of_when_the_sink_holds_it_no_more() -> None:
    receipts: list[int] = []
    delivery = Delivery(
        HoldsTheLast(),
        INFO,
        on_receipt=lambda _sink, item, _receipt: receipts.append(item.step),
    )
    for item in figures(3):
        delivery.offer(item)
    deadline = time.monotonic() + LIMIT
    while len(receipts) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert (receipts, delivery.report().pending) == ([0, 1], 1)
    assert delivery.close(LIMIT).complete
    assert receipts == [0, 1, 2]


def test_deferred_items_are_pending_until_a_flush_shows_them() -> None:
    sink = DefersSink()
    told: list[str] = []
    delivery = Delivery(
        sink, INFO, on_receipt=lambda _sink, _item, receipt: told.append(receipt.status)
    )
    sink.on_flush = fail
    delivery.offer(figures(1)[0])
    assert not delivery.flush(LIMIT)
    assert delivery.report().pending == 1
    assert told == []
    sink.on_flush = lambda: None
    assert delivery.flush(LIMIT)
    assert told == ["written"]
    assert delivery.close(LIMIT).complete


def test_closing_twice_gives_the_same_report_and_nothing_is_taken_after_it() -> None:
    delivery = Delivery(ScriptedSink(), INFO)
    first = delivery.close(LIMIT)
    assert not delivery.offer(figures(1)[0])
    assert first.complete
    assert delivery.close(LIMIT).pending == 1


def test_close_is_bounded_while_tries_go_on() -> None:
    sink = ScriptedSink()
    sink.on_write = lambda _item: fail()
    patient = RetryPolicy(attempts=1000, first_wait=300.0, longest_wait=600.0)
    delivery = Delivery(sink, INFO, retry=patient)
    delivery.offer(figures(1)[0])
    assert sink.writing.wait(LIMIT)
    report = delivery.close(0.05)
    assert report.pending == 1
    assert report.closed
    assert sink.closed


BLOCKED = """
import threading
from theseus_track.records import RunInfo
from theseus_track.sinks import Delivery, MemorySink
from theseus_track.sinks.conformance import Items

class Blocks(MemorySink):
    def {call}(self, *given):
        threading.Event().wait(600.0)

info = RunInfo(project="tests", name="gpt", id="r1", created=0.0)
delivery = Delivery(Blocks(), info)
delivery.offer(Items().figure(1))
print(delivery.close(0.1))
"""


@pytest.mark.parametrize("call", ["open", "write", "close"])
def test_a_sink_that_blocks_ten_minutes_does_not_hold_the_process(call: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED.format(call=call)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    assert "not closed" in done.stdout
    assert f"has not returned from {call}" in done.stdout
    assert done.stderr == ""


def test_what_failed_is_caught_up_with_when_the_sink_is_back() -> None:
    sink = ScriptedSink()
    postponed: list[Item] = []
    away = threading.Event()
    away.set()
    sink.on_write = lambda _item: fail() if away.is_set() else None
    delivery = Delivery(
        sink,
        INFO,
        backlog=lambda: sorted(postponed, key=lambda item: item.step),
        on_postpone=postponed.append,
        retry=RetryPolicy(attempts=2, first_wait=0.0, pause_after=9, pause=600.0),
    )
    items = Items()
    for figure in figures(3, items):
        delivery.offer(figure)
    assert not delivery.flush(LIMIT)
    assert delivery.report().pending == 3
    away.clear()
    delivery.offer(items.figure(3))
    report = delivery.close(LIMIT)
    assert (report.delivered, report.failed, report.pending) == (4, 0, 0)
    assert sorted(sink.steps) == [0, 1, 2, 3]


def test_an_item_that_fails_while_others_pass_fails_for_good() -> None:
    sink = ScriptedSink()
    postponed: list[Item] = []
    sink.on_write = lambda item: fail() if item.step == 1 else None
    delivery = Delivery(
        sink,
        INFO,
        backlog=lambda: list(postponed),
        on_postpone=postponed.append,
        retry=EAGER,
    )
    for figure in figures(4):
        delivery.offer(figure)
    report = delivery.close(LIMIT)
    assert (report.delivered, report.failed, report.pending) == (3, 1, 0)
    assert sink.steps == [0, 2, 3]
    assert "ConnectionError" in str(report)


def test_a_sink_that_stays_away_leaves_everything_pending() -> None:
    sink = ScriptedSink()
    postponed: list[Item] = []
    sink.on_write = lambda _item: fail()
    delivery = Delivery(
        sink,
        INFO,
        backlog=lambda: list(postponed),
        on_postpone=postponed.append,
        retry=EAGER,
    )
    for figure in figures(6):
        delivery.offer(figure)
    report = delivery.close(LIMIT)
    assert (report.delivered, report.failed, report.pending) == (0, 0, 6)
    assert "ConnectionError" in str(report)
