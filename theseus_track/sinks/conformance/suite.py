"""The cases that every sink must pass."""

import abc
import math
from collections.abc import Iterable, Sequence

import numpy as np

from theseus_track.records import Item, JsonItem, RunInfo
from theseus_track.sinks.conformance.faults import (
    BlocksOnClose,
    RaisesAfterWriting,
    RefusesThird,
)
from theseus_track.sinks.conformance.items import Items
from theseus_track.sinks.conformance.shown import Shown, check, check_shown, counted
from theseus_track.sinks.contract import Capabilities, Receipt, Sink
from theseus_track.sinks.delivery import Delivery
from theseus_track.sinks.report import SinkReport
from theseus_track.sinks.retry import RetryPolicy

__all__ = ["SinkConformance"]

# In seconds; a bound against hanging, not an expectation.
_LIMIT = 60.0
_IMPATIENT = RetryPolicy(attempts=2, first_wait=0.0, pause=0.0)
_LONG = "n" * 300


class SinkConformance(abc.ABC):
    """The suite; its `test_*` methods need nothing but `make` and `shown`."""

    @abc.abstractmethod
    def make(self) -> Sink:
        """Return a sink that is not open; all of one test write to one place."""

    @abc.abstractmethod
    def shown(self) -> Iterable[Shown]:
        """Return all that the tracker shows there, by its own reader if it has one."""

    def abandon(self, sink: Sink) -> None:  # noqa: B027 (a hook, not an abstract method)
        """Leave an open sink as the death of its process would.

        Nothing, as a rule: `flush` and `close` do not come any more. Free here what
        the end of a process frees, such as a lock or a file, and nothing more.

        Args:
            sink: One of `make`, which some items were written to.
        """

    def test_a_sink_says_what_it_is(self) -> None:
        """Its name and capabilities can be read before it is open."""
        sink = self.make()
        check(isinstance(sink, Sink), f"{sink!r} lacks a part of the contract")
        check(bool(sink.name), "a sink needs a name")
        check(isinstance(sink.can, Capabilities), "can must be Capabilities")

    def test_every_kind_at_its_step(self) -> None:
        """Figures, JSON values and metrics are shown with their contents."""
        items, steps = Items(), (0, 10, 20)
        self._expect(
            [item for step in steps for item in _one_of_each_kind(items, step)]
        )

    def test_late_steps(self) -> None:
        """A step that comes after higher ones hides nothing and is not hidden."""
        items = Items()
        self._expect([items.figure(step) for step in (10, 20, 30, 40, 15, 25)])

    def test_early_steps(self) -> None:
        """A step far ahead of the others does not swallow those between."""
        items = Items()
        self._expect([items.figure(step) for step in (1000, 1, 2, 3)])

    def test_interleaved_keys(self) -> None:
        """Each key has its own order of steps."""
        items = Items()
        names = ("a", "b", "c")
        self._expect(
            [items.figure(s + i, n) for s in (5, 3) for i, n in enumerate(names)]
        )

    def test_a_repeated_step(self) -> None:
        """A second result of one step leaves nothing else out of place."""
        items = Items()
        first = [items.figure(step) for step in (1, 2, 3)]
        again = items.figure(2)
        self._deliver([*first, again])
        check_shown([*first, again], self.shown())

    def test_a_repeated_item(self) -> None:
        """An item that is delivered twice is shown once."""
        items = [*_one_of_each_kind(Items("w1"), 7), Items("w2").figure(8)]
        self._deliver([*items, *items])
        counts = counted(self.shown())
        twice = {key: count for key, count in counts.items() if count > 1}
        check(not twice, f"shown more than once: {twice}")
        check_shown(self._taken(items), self.shown())

    def test_huge_steps(self) -> None:
        """Steps beyond 32 bits are exact."""
        items = Items()
        self._expect([items.figure(step) for step in (0, 2**31, 2**40 + 1)])

    def test_a_hundred_and_twenty_parts(self) -> None:
        """Many parts of one result are all there."""
        items = Items()
        self._expect([items.figure(1, "heads", f"head {n}") for n in range(120)])

    def test_numbers_that_are_not_finite(self) -> None:
        """NaN and infinities are shown as such and break nothing."""
        items = Items()
        value = {"mean": math.nan, "max": math.inf, "rows": [[1.0, -math.inf]]}
        metrics = {"nan": math.nan, "inf": math.inf, "minus": -math.inf, "one": 1.0}
        self._expect([items.json(1, value), items.metrics(1, metrics)])

    def test_scalars_of_small_floats(self) -> None:
        """Numbers that were bfloat16 on the device are numbers like others."""
        # It makes numpy know the type; no device is touched.
        from jax.numpy import bfloat16

        small = np.asarray([0.1, 256.0, math.nan], bfloat16.dtype)
        items = Items()
        metrics = {"one": float(small[0]), "nan": float(small[2])}
        value = {"mean": small[0], "max": small[1], "rows": small}
        self._expect([items.json(1, value), items.metrics(1, metrics)])

    def test_texts_and_empty_values(self) -> None:
        """Texts, markup, None and empty containers are values like others."""
        items = Items()
        values: Sequence[object] = (
            {"top": ["x", "y"], "note": None, "ok": True, "score": [1.0, 2.0]},
            {"a_b_c": "x*y*z", "<0x0A>": 1, "t": "</pre>```\n", "bar": "a|b"},
            {},
            [],
            "text",
            3,
            None,
        )
        self._expect([items.json(n, value) for n, value in enumerate(values)])

    def test_names_stay_apart(self) -> None:
        """Names that differ in one odd character are not merged."""
        items = Items()
        names = ("my/gpt acts", "my/gpt_acts", "my/gpt:acts", "a.b", "é", _LONG)
        figures = [items.figure(1, name) for name in names]
        parts = [items.figure(1, "a", part) for part in ("b", "../x", "c d", _LONG)]
        metrics = {"a b": 1.0, "a_b": 2.0, "a/b": 3.0, "": 4.0, _LONG: 5.0}
        self._expect([*figures, *parts, items.metrics(1, metrics)])

    def test_one_name_for_every_kind(self) -> None:
        """A figure, a value and its numbers of one name stay apart."""
        items = Items()
        value = {"table": 1.0, "x": 2.0, "deep": {"table": 3.0}}
        self._expect(
            [
                items.figure(1, "x"),
                items.json(1, value, "x"),
                items.metrics(1, {"x": 4.0, "x/table": 5.0}),
            ]
        )

    def test_a_second_writer_of_the_run(self) -> None:
        """A resumed run keeps what is there and adds to it, late steps too."""
        first, second = Items("w1"), Items("w2")
        before = [first.figure(step) for step in (1, 2, 3)]
        after = [second.figure(step) for step in (2, 3, 4, 5)]
        self._deliver(before)
        self._deliver(after)
        check_shown([*before, *after], self.shown())

    def test_two_runs_in_one_process(self) -> None:
        """Runs do not mix, though both have one name."""
        mine, other = Items("w1"), Items("w2")
        one = Delivery(self.make(), _run("r1"), retry=_IMPATIENT)
        two = Delivery(self.make(), _run("r2"), retry=_IMPATIENT)
        items = [mine.figure(1), other.figure(1), mine.figure(2), other.figure(2)]
        for item, delivery in zip(items, (one, two, one, two), strict=True):
            check(delivery.offer(item), "there is room")
        for delivery in (one, two):
            _check_complete(delivery.close(_LIMIT))
        counts = counted(self.shown())
        check(sum(counts.values()) == len(items), f"4 figures, shown: {counts}")

    def test_a_refused_item_costs_nothing_else(self) -> None:
        """When every third item is refused, the others are shown."""
        items = Items()
        figures = [items.figure(step) for step in range(6)]
        delivery = Delivery(RefusesThird(self.make()), _run(), retry=_IMPATIENT)
        for figure in figures:
            delivery.offer(figure)
        report = delivery.close(_LIMIT)
        check((report.delivered, report.failed) == (4, 2), str(report))
        kept = [figure for n, figure in enumerate(figures, 1) if n % 3]
        check_shown(kept, self.shown())

    def test_an_item_whose_write_raised_is_shown_once(self) -> None:
        """A write that raised after its work was done is repeated without harm."""
        items = Items()
        expected = [items.figure(step) for step in range(4)]
        sink = RaisesAfterWriting(self.make())
        self._deliver(expected, sink)
        counts = counted(self.shown())
        check(sum(counts.values()) == len(expected), f"4 figures, shown: {counts}")

    def test_a_crash_between_any_two_writes(self) -> None:
        """A death costs nothing that was answered for, and doubles as little."""
        items = Items()
        given: list[Item] = []
        for count in range(4):
            run = _run(f"r{count}")
            mine = [items.figure(step, f"run {count}") for step in (1, 2)]
            mine.insert(1, items.json(1, {"n": count}, f"run {count}"))
            sink = self.make()
            sink.open(run)
            answered = [sink.write(item).status for item in mine[:count]]
            self.abandon(sink)
            # Marked in the ledger, but for the last one: that mark was not written yet.
            safe = set(answered) <= {"written", "skipped"}
            marked = 0 if hasattr(sink, "keeps") or not safe else max(0, count - 1)
            self._deliver(mine[marked:], run=run)
            given += mine
        shown = list(self.shown())
        check_shown(self._taken(given), shown)
        twice = {key: n for key, n in counted(shown).items() if n > 1}
        check(not (twice and sink.can.read_back), f"shown more than once: {twice}")

    def test_a_sink_that_blocks_on_close(self) -> None:
        """Its close holds nobody, and what it was given is shown."""
        items = Items()
        figures = [items.figure(step) for step in range(3)]
        sink = BlocksOnClose(self.make())
        delivery = Delivery(sink, _run(), retry=_IMPATIENT)
        for figure in figures:
            delivery.offer(figure)
        check(delivery.flush(_LIMIT), "flush must deliver everything")
        report = delivery.close(0.0)
        check(not report.closed and report.delivered == 3, str(report))
        sink.release.set()
        check_shown(figures, self.shown())

    def _expect(self, items: Sequence[Item]) -> None:
        """Deliver items and compare; those the sink skips must not be shown."""
        self._deliver(items)
        check_shown(self._taken(items), self.shown())

    def _deliver(
        self,
        items: Sequence[Item],
        sink: Sink | None = None,
        *,
        run: RunInfo | None = None,
    ) -> None:
        """Deliver one after another, so that they arrive in this very order."""
        receipts: list[Receipt] = []
        delivery = Delivery(
            sink or self.make(),
            run or _run(),
            on_receipt=lambda _sink, _item, receipt: receipts.append(receipt),
            retry=_IMPATIENT,
        )
        for item in items:
            check(delivery.offer(item), "an empty queue takes every item")
            check(delivery.flush(_LIMIT), f"not delivered: {item!r:.200}")
        report = delivery.close(_LIMIT)
        _check_complete(report)
        check(len(receipts) == len(items), f"{len(receipts)} receipts: {report}")

    def _taken(self, items: Sequence[Item]) -> list[Item]:
        tables = self.make().can.tables
        return [item for item in items if tables or not isinstance(item, JsonItem)]


def _run(run_id: str = "r1") -> RunInfo:
    return RunInfo(project="suite", name="gpt", id=run_id, created=0.0)


def _one_of_each_kind(items: Items, step: int) -> list[Item]:
    return [
        items.figure(step),
        items.figure(step, part="left"),
        items.json(step, {"head": [0, 1], "entropy": [0.5, float(step)]}),
        items.metrics(step, {"train/loss": 1.0 / (1 + step)}),
    ]


def _check_complete(report: SinkReport) -> None:
    check(report.complete, f"not everything was delivered: {report}")
