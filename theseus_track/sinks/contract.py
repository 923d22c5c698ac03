"""The contract that every sink keeps.

A sink projects items into one tracker. `Delivery` is the only caller, and keeps
these promises:

- `open` comes first, then any number of `write` and `flush`, then one `close`.
- All of them are called on one thread, the sink's own, never two at a time. It
  is a daemon thread of rank 0's process, never the training thread.
- Items of one key (kind, NAME, part) come in ascending step order as far as they
  wait together. A step may still be late (a slow figure, a replay), early,
  repeated or 0; steps have no upper limit.

A sink keeps these:

- **The step is true.** An item is shown under its own step and wall time. A
  tracker that cannot take a step at that place gets it at another place, and the
  receipt says where; it never hides what is already shown.
- **Idempotent.** Writing a (record, part) again changes nothing that is shown:
  delivery is at least once, and a `write` that raised is repeated.
- **Raising means "not now".** `write` raises where trying again may help (no
  network, disk full): it is repeated with growing pauses. What will never work
  is a `failed` receipt; what the sink does not take by design is `skipped`.
- A sink that answers `deferred` may have a method `holds(item)`: whether it still
  does. Such an item counts as written from then on; without it, after `flush`.
- A sink whose tracker may forget what it took when this process dies may have a
  method `keeps(item)`: whether it would not. Until then the ledger has no mark.
- A sink may have a method `notice()`: the one call on the training thread, whenever
  something is logged. It returns at once and never raises.
- A sink that is filled from the ledger alone, by `sync`, may have a method
  `prepare(backfill)`, called before `open`: what it shows at a step that comes late
  may be better placed then. One that is shown by a training that goes on with an
  older run may have `go_on(backfill)`, called before `open`: what the newer attempt
  replaces may be taken away when the first replaced step comes. A sink may have
  `changes(info, items)`, called after `prepare` and without `open`: what writing them
  would change, found out without touching anything. It may have
  `notes()`: lines that tell the user, after `close`, where things are; and `settings`,
  a JSON object that `run.json` keeps, so that its maker finds the same place again.
- **No surprise for the user.** It changes no global state, no handler, no
  current figure, and nothing in the tracker that it did not write.
- **`flush(timeout)`** returns when all that was written or deferred can be read
  by others; it raises when it cannot within `timeout`.
- **`close(timeout)`** does the same, releases what `open` took and leaves the
  tracker's files whole. Nothing follows it. A `close` that blocks holds its own
  thread only: the process exits without it.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, Protocol, runtime_checkable

from theseus_track.records import Item, RunInfo

__all__ = ["Backfill", "Capabilities", "Changes", "Receipt", "Sink", "Status"]

Status = Literal["written", "deferred", "skipped", "failed"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a sink can do; the rest of the package asks instead of guessing.

    Attributes:
        past_steps: It shows a step that is lower than one shown before.
        one_writer: Only one process may write a run at a time.
        tables: It shows JSON values.
        pdf: It keeps the PDF of a figure besides its pixels.
        read_back: It can tell what it already shows, so that a delivery after a
            crash is exactly once; else it is at least once.
    """

    past_steps: bool
    one_writer: bool
    tables: bool
    pdf: bool
    read_back: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Receipt:
    """A sink's answer for one item.

    Attributes:
        status: `written`: it can be read in the tracker. `deferred`: the sink
            holds it and writes it by itself, at the latest when `flush` returns.
            `skipped`: the sink does not take such items. `failed`: it never will
            take this one.
        reason: Why, or where else it went; "" when there is nothing to say.
    """

    status: Status
    reason: str = ""

    def __post_init__(self) -> None:
        if self.status not in ("written", "deferred", "skipped", "failed"):
            raise ValueError(
                f"A receipt of status {self.status!r}; "
                "allowed: written, deferred, skipped, failed."
            )
        if self.status in ("skipped", "failed") and not self.reason:
            raise ValueError(f"A receipt {self.status!r} needs a reason.")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """A run as the ledger has it, for a sink that is filled afterwards.

    Attributes:
        state: Whether the run is "finished", "running" or "stopped", by the one judge
            (`theseus_track.store.state`). While it runs, another process may be
            writing to the tracker, on another machine too.
        results: Gives all figures and JSON values that are to be shown, by step,
            those included that the tracker has; read from disk as they are taken.
        values: Gives the JSON values among the results, and reads no figure for it.
        metrics: Gives all rows of metrics, by step.
        companion: Whether what a tracker shows already stays as it is, and the
            results are shown beside it, where the tracker knows such a place.
    """

    state: str
    results: Callable[[], Iterable[Item]]
    values: Callable[[], Iterable[Item]]
    metrics: Callable[[], Iterable[Item]]
    companion: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a delivery would change in a tracker, where nothing is ever deleted.

    Attributes:
        where: The place, in the tracker's words.
        counts: What is done there, such as "rows appended" -> how often.
        notes: What else there is to know beforehand.
    """

    where: str
    counts: Mapping[str, int]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        done = ", ".join(
            f"{count} {what if count != 1 else what.replace('s ', ' ', 1)}"
            for what, count in self.counts.items()
            if count
        )
        return "; ".join([f"{self.where}: {done}, nothing deleted", *self.notes])


@runtime_checkable
class Sink(Protocol):
    """One tracker, as the module's docstring tells; plain attributes will do."""

    @property
    def name(self) -> str:
        """Its short name, such as "tensorboard"; marks its receipts."""

    @property
    def can(self) -> Capabilities:
        """What it can do."""

    def open(self, info: RunInfo, /) -> None:
        """Take hold of the place where this run is shown; called again if it raised."""

    def write(self, item: Item, /) -> Receipt:
        """Show one item at its step and wall time."""

    def flush(self, timeout: float, /) -> None:
        """Return when everything can be read by others, or raise after `timeout` s."""

    def close(self, timeout: float, /) -> None:
        """Flush, then release everything, within about `timeout` seconds."""
