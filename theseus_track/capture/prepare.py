"""From sites and arguments to a program whose taps are the values that are wanted."""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from theseus_track.capture.analyst import Analyst, Mark
from theseus_track.capture.discover import Discoverer, Discovery, Query, Stacks
from theseus_track.capture.paths import Path
from theseus_track.capture.private import private_trace
from theseus_track.capture.program import Arguments, Program, trace
from theseus_track.capture.reap import Reaper
from theseus_track.capture.recent import Recent
from theseus_track.capture.rule import Found, Keep, Kept, Want
from theseus_track.capture.select import Choice, choose, wanted_layers
from theseus_track.capture.sites import Captures, Fault, Site, SiteCapture
from theseus_track.capture.together import enclosed_by
from theseus_track.errors import AnalysisFault, UnreachedCall, UnsupportedProgram

__all__ = ["Plan", "Prepared"]


@dataclass(frozen=True)
class _Slot:
    """One value on its way out, and where it belongs."""

    site: str
    path: str
    found: Found
    want: Want


@dataclass(frozen=True)
class Prepared:
    """A traced function with the values that its sites want.

    Attributes:
        program: The function's program, with taps.
        reaper: Takes the taps out.
        keep: How each of them is wanted.
        discovery: The calls found.
        slots: Where each kept value belongs, in program order.
        bare: By site, everything but the values.
    """

    program: Program
    reaper: Reaper
    keep: Keep
    discovery: Discovery
    slots: tuple[_Slot, ...]
    bare: Mapping[str, SiteCapture]

    def evaluate(self, arrays: list[Any]) -> tuple[list[Any], list[Kept]]:
        """Evaluate the program: its results, and the kept values."""
        closed = self.program.closed
        flags = (None,) * len(self.slots)
        return self.reaper.evaluate(
            closed.jaxpr, closed.consts, arrays, self.keep, flags
        )

    def captures(self, kept: list[Kept]) -> Captures:
        """Sort kept values by site and path."""
        sites = {
            name: replace(site, values={}, axes={}, valid={})
            for name, site in self.bare.items()
        }
        pairs = sorted(
            zip(self.slots, kept, strict=True),
            key=lambda pair: self._order(pair[0]),
        )
        for slot, value in pairs:
            site = sites[slot.site]
            site.values[slot.path] = slot.found.tag.unflatten(value.leaves)
            site.axes[slot.path] = slot.found.axes
            if value.valid is not None:
                site.valid[slot.path] = value.valid
        return Captures(sites)

    def _order(self, slot: _Slot) -> tuple[int, int]:
        """Order by the stacked path, in program order; then as `select` did."""
        site = self.bare[slot.site]
        stacked = str(Path.parse(slot.path).stacked)
        return site.paths.index(stacked), site.selected.index(slot.path)

    def abstract(self) -> Captures:
        """Return the captures as shapes."""
        return self.captures(
            [
                Kept(
                    list(slot.found.leaves),
                    None
                    if slot.found.valid_shape is None
                    else jax.ShapeDtypeStruct(slot.found.valid_shape, bool),
                )
                for slot in self.slots
            ]
        )


class Plan:
    """What is remembered between calls that trace alike.

    Args:
        sites: What is asked for, by name.
    """

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self._sites = sites
        self._discoverer = Discoverer(
            {name: Query(site.target, site.methods) for name, site in sites.items()}
        )
        self._apart = False
        self._owners = Recent[object](16)
        self._compiled = Recent[Any](64)

    def prepare(self, fn: Callable[..., Any], arguments: Arguments) -> Prepared:
        """Find the calls, let the sites choose, and trace with their analyses."""
        discovery = self._discoverer.run(fn, arguments, apart=self._apart)
        self._apart = discovery.apart
        choices = {
            name: choose(name, site, discovery) for name, site in self._sites.items()
        }
        wanted = {
            name: frozenset(
                str(Path.parse(path).stacked.base) for path in choice.selected
            )
            for name, choice in choices.items()
            if choice.fault is None
        }
        # Traces that must be kept apart may not be shared with those of another call.
        apart = discovery.apart
        owner = object() if apart else self._owners.get(tuple(wanted.items()), object)
        with private_trace(owner, Analyst(self._sites, wanted, owner), apart=apart):
            program = trace(fn, arguments)
        reaper = Reaper(owner, self._compiled)
        slots = _numbered(reaper.find(program.closed.jaxpr), choices, discovery)
        bare = {
            name: _checked(name, self._sites[name], choice, discovery, slots)
            for name, choice in choices.items()
        }
        sound = [
            tuple(slot for slot in own if bare[slot.site].fault is None)
            for own in slots
        ]
        keep = tuple(tuple(slot.want for slot in own) for own in sound)
        kept = tuple(itertools.chain(*sound))
        return Prepared(program, reaper, keep, discovery, kept, bare)


def _numbered(
    found: Sequence[Found], choices: Mapping[str, Choice], discovery: Discovery
) -> list[tuple[_Slot, ...]]:
    """Number the calls in program order; return for each what is selected of it."""
    counts: Counter[tuple[str, Path]] = Counter()
    slots = []
    for one in found:
        mark: Mark = one.tag.label
        place = (mark.site, mark.path)
        path = mark.path.numbered(counts[place])
        counts[place] += 1
        stacks = discovery.stacks[mark.site].get(str(path), ())
        slots.append(
            tuple(
                _slot(mark.site, selected, one, stacks)
                for selected in choices[mark.site].selected
                if Path.parse(selected).stacked == path
            )
        )
    return slots


def _slot(site: str, path: str, found: Found, stacks: Stacks) -> _Slot:
    layers = wanted_layers(Path.parse(path), stacks)
    return _Slot(site, path, found.taken(layers), Want(layers))


def _checked(
    name: str,
    site: Site,
    choice: Choice,
    discovery: Discovery,
    slots: Sequence[tuple[_Slot, ...]],
) -> SiteCapture:
    """Look for what is wrong with a site's values before anything is computed."""
    fault = choice.fault
    if fault is None:
        own = {
            slot.path: slot.found
            for slot in itertools.chain(*slots)
            if slot.site == name
        }
        fault = _fault(name, site, choice, discovery, own)
    return SiteCapture(
        paths=choice.paths,
        selected=choice.selected,
        single=choice.single,
        fault=fault,
    )


def _fault(
    name: str,
    site: Site,
    choice: Choice,
    discovery: Discovery,
    own: Mapping[str, Found],
) -> Fault | None:
    for path in choice.selected:
        if path not in own:
            stacked = str(Path.parse(path).stacked)
            cls = discovery.calls[name][stacked].cls.rpartition(".")[2]
            message = (
                f"{name!r}: the call {path!r} ({cls}) does not contribute to the "
                "output of the function; return something that depends on it."
            )
            return Fault("trace", message, error=UnreachedCall)
        mark: Mark = own[path].tag.label
        if mark.fault:
            return mark.fault
        if site.whole and (around := enclosed_by(own[path])):
            message = (
                f"{name!r}: the call {path!r} ({mark.cls}) sits inside {around}, which "
                "its inputs cannot leave whole (TOGETHER); select calls outside of "
                "it, or look at each call alone."
            )
            return Fault("trace", message, error=UnsupportedProgram)
    leaves = [leaf for found in own.values() for leaf in found.leaves]
    actual = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
    if site.max_bytes is not None and actual > site.max_bytes:
        path, found = next(iter(own.items()))
        message = (
            f"{name!r} at {path!r} ({found.tag.label.cls}) would keep {actual} "
            f"bytes, but max_bytes allows {site.max_bytes}; crop or reduce in analyze, "
            "select fewer paths, or raise the limit."
        )
        return Fault("analyze", message, error=AnalysisFault)
    return None
