"""The edited runs of a watched function, beside its plain one."""

import functools
import itertools
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from theseus_track.capture.discover import Discoverer, Query
from theseus_track.capture.edit import edit
from theseus_track.capture.edits import Edits, identity, of_plain, rules_of, with_rules
from theseus_track.capture.grid import Grid
from theseus_track.capture.paths import Path
from theseus_track.capture.prepare import Plan, Prepared
from theseus_track.capture.program import Arguments
from theseus_track.capture.recent import Recent
from theseus_track.capture.select import one_line, trace_text
from theseus_track.capture.sites import Captures, Fault, Site, SiteCapture
from theseus_track.errors import BadInput, UnreachedCall, describe_unknown

__all__ = ["EditedRuns"]


class _Way(NamedTuple):
    """How a prepared run is gone through: with arrays, or with shapes."""

    take: Callable[[Prepared, list[Any]], Captures]
    apply: Callable[..., Any]


_COMPUTED = _Way(lambda p, x: p.captures(p.evaluate(x)[1]), lambda f, *x: f(*x))
_ABSTRACT = _Way(lambda p, _: p.abstract(), jax.eval_shape)


class EditedRuns:
    """Runs a function once more for each set of edits that sites ask for.

    The runs start from the same arguments as the plain one, random streams and state
    included, and nothing of them is kept but what the sites take out.

    Args:
        sites: All sites, by name.

    Attributes:
        sources: Further sites for the plain run: what `rules.clean` brings.
    """

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self._names = tuple(sites)
        groups: dict[Hashable, dict[str, Site]] = {}
        for name, site in sites.items():
            if site.edits:
                groups.setdefault(identity(site.edits), {})[name] = site
        self._groups = [_Group(*group) for group in enumerate(groups.values())]
        self.sources: dict[str, Site] = {}
        for group in self._groups:
            self.sources |= group.sources

    def run(
        self, fn: Callable[..., Any], arguments: Arguments, plain: Captures
    ) -> Captures:
        """Run the function with edits; add what the sites took out of that.

        Args:
            fn: The function.
            arguments: Of the call.
            plain: What was taken out of the plain run, of `sources` too.

        Returns:
            The captures of the sites alone, whole.
        """
        return self._added(fn, arguments, plain, _COMPUTED)

    def abstract(
        self, fn: Callable[..., Any], arguments: Arguments, plain: Captures
    ) -> Captures:
        """As `run`, from shapes alone."""
        return self._added(fn, arguments, plain, _ABSTRACT)

    def _added(
        self, fn: Callable[..., Any], arguments: Arguments, plain: Captures, way: _Way
    ) -> Captures:
        sites = {name: plain[name] for name in self._names}
        for group in self._groups:
            for name, found in group.run(fn, arguments, plain, way).items():
                if isinstance(found, Fault):
                    sites[name] = SiteCapture(fault=found)
                else:
                    sites[name] = replace(sites[name], edited=found)
        return Captures(sites)


class _Group:
    """Sites with the same edits: one run serves them all."""

    def __init__(self, number: int, sites: Mapping[str, Site]) -> None:
        self._sites = dict(sites)
        edits: Edits = next(iter(sites.values())).edits or {}
        self._edits = with_rules(edits, _apart(rules_of(edits)))
        self._exact: Edits | None = None
        self._made: Callable[..., Any] | None = None
        self._plans = Recent[Plan](16)
        rules = rules_of(self._edits)
        self.sources = {
            # No NAME of an analysis has a colon.
            f"{number}:{path}": _source(path, rule)
            for path, rule in rules.items()
            if of_plain(rule)
        }

    def run(
        self, fn: Callable[..., Any], arguments: Arguments, plain: Captures, way: _Way
    ) -> Mapping[str, "SiteCapture | Captures | Fault"]:
        """Run the function with the edits, for those sites that have no fault yet."""
        chosen = {
            name: plain[name].selected
            for name in self._sites
            if plain[name].fault is None
        }
        if not chosen:
            return {}
        try:
            edits = self._expanded(fn, arguments)
            make = self._making(fn, edits)
            rows = edits.rows(fn, arguments) if isinstance(edits, Grid) else None
            inner = _beside(arguments, self._brought(edits, plain))
            run = functools.partial(_edited, make, arguments, edits, rows)
            plan = self._plans.get(tuple(chosen.items()), lambda: self._plan(chosen))
            found = way.take(plan.prepare(run, inner), inner.arrays)
        except Exception as error:  # noqa: BLE001 - edits of an analysis must not stop the rest
            return {name: _fault(name, error) for name in chosen}
        paths = tuple(rules_of(edits))
        edited: dict[str, SiteCapture | Captures | Fault] = {}
        for name, site in found.items():
            if site.fault is not None:
                message = f"{site.fault.message} This is of the edited run."
                edited[name] = replace(site.fault, message=message)
            elif rows is None:
                edited[name] = replace(site, single=plain[name].single)
            else:
                split = functools.partial(_by_path, paths=paths, masks=len(rows))
                edited[name] = way.apply(split, site, plain[name])
        return edited

    def _plan(self, chosen: Mapping[str, tuple[str, ...]]) -> Plan:
        # What is selected was said of the plain run: here some calls may be gone.
        return Plan(
            {
                name: replace(self._sites[name], select=_constantly(own), edits=None)
                for name, own in chosen.items()
            }
        )

    def _expanded(self, fn: Callable[..., Any], arguments: Arguments) -> Edits:
        """Put in the place of a pattern the paths that fit it, in program order."""
        rules = rules_of(self._edits)
        parsed = {text: Path.parse(text) for text in rules}
        if self._exact is None and not any(one.is_pattern for one in parsed.values()):
            self._exact = self._edits
        if self._exact is not None:
            return self._exact
        methods = tuple({path.method for path in parsed.values()})
        known = Discoverer({"": Query(None, methods)}).run(fn, arguments).calls[""]
        expanded: dict[str, Any] = {}
        for text, path in parsed.items():
            fits = _fitting(path, known) if path.is_pattern else [text]
            if not fits:
                raise UnreachedCall(describe_unknown("call", text, known))
            expanded.update(dict.fromkeys(fits, rules[text]))
        self._exact = with_rules(self._edits, expanded)
        return self._exact

    def _making(
        self, fn: Callable[..., Any], edits: Edits
    ) -> Callable[[Mapping[str, Any]], Callable[..., Any]]:
        """Return what makes the edited function of rules."""
        if isinstance(edits, Grid) or self.sources:
            return functools.partial(edit, fn)
        # Always the same one: it remembers what it found out about the function.
        self._made = self._made or edit(fn, edits)
        return _constantly(self._made)

    def _brought(self, edits: Edits, plain: Captures) -> dict[str, Any]:
        """Return what is there in the plain run, where a rule brings that."""
        found: dict[str, Any] = {}
        for source in self.sources:
            if fault := plain[source].fault:
                raise BadInput(f"rules.clean cannot be had: {fault.message}")
            found |= plain[source].values
        return {path: found[path] for path in rules_of(edits) if path in found}


def _fitting(pattern: Path, known: Iterable[str]) -> list[str]:
    """List the paths that a pattern stands for, with its layers."""
    fits = [path for path in map(Path.parse, known) if pattern.fits(path)]
    return [str(replace(path, layers=pattern.layers)) for path in fits]


def _apart(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Split a slice of layers into its layers, where each gets what is its own."""
    split: dict[str, Any] = {}
    for text, rule in rules.items():
        path = Path.parse(text)
        each = [
            one if isinstance(one, range) and of_plain(rule) else [one]
            for one in path.layers
        ]
        for layers in itertools.product(*each):
            split[str(replace(path, layers=layers))] = rule
    return split


def _source(text: str, rule: Any) -> Site:
    """Ask for what is at a path, or at all that fit it."""
    path = Path.parse(text)

    def select(paths: list[str]) -> str | list[str]:
        if not path.is_pattern:
            return text
        return _fitting(path, paths)

    return Site(
        target=lambda _: True,
        methods=(path.method,),
        select=select,
        analyze=lambda _, inputs: (
            inputs.output if rule.name is None else inputs[rule.name]
        ),
    )


def _constantly(value: Any) -> Callable[..., Any]:
    return lambda *_: value


def _beside(arguments: Arguments, brought: Mapping[str, Any]) -> Arguments:
    """Make the arguments of `_edited`: the arrays of a call, and what rules bring."""
    leaves, tree = jax.tree.flatten((arguments.arrays, dict(brought)))
    return replace(
        arguments,
        arrays=leaves,
        restore=lambda arrays: (jax.tree.unflatten(tree, arrays), {}),
        leave=lambda _args, _kwargs, out: out,
    )


def _edited(
    make: Callable[[Mapping[str, Any]], Callable[..., Any]],
    arguments: Arguments,
    edits: Edits,
    rows: Any,
    arrays: list[Any],
    brought: Mapping[str, Any],
) -> Any:
    """Call the function with edits; return the arrays of its output."""
    rules = {
        path: replace(rule, value=brought[path]) if of_plain(rule) else rule
        for path, rule in rules_of(edits).items()
    }

    def once(rules: Mapping[str, Any]) -> list[Any]:
        args, kwargs = arguments.restore(list(arrays))
        out = make(rules)(*args, **kwargs)
        leaves = jax.tree.leaves(arguments.leave(args, kwargs, out))
        return [leaf for leaf in leaves if isinstance(leaf, jax.Array)]

    if not isinstance(edits, Grid):
        return once(rules)
    grid = edits.of(rules)
    return jax.vmap(lambda point: once(grid.at(point)))(grid.points(rows))


def _by_path(
    edited: SiteCapture, plain: SiteCapture, *, paths: tuple[str, ...], masks: int
) -> Captures:
    """Split what the runs of a grid gave: by the edited path, [mask, ...]."""
    runs = len(paths) * masks

    def first(path: str, leaf: Any) -> Any:
        if len(edited.axes[path]) == len(plain.axes[path]):
            # No edit reaches it: it is the same in all runs.
            return jnp.broadcast_to(leaf, (runs, *leaf.shape))
        # Loops put their axes in front of ours.
        return jnp.moveaxis(leaf, edited.axes[path].index(f"vmap{runs}"), 0)

    whole = {
        path: jax.tree.map(functools.partial(first, path), value)
        for path, value in edited.values.items()
    }
    parts = {}
    for number, place in enumerate(paths):
        own = slice(number * masks, (number + 1) * masks)
        values = {
            path: jax.tree.map(operator.itemgetter(own), value)
            for path, value in whole.items()
        }
        parts[place] = replace(plain, values=values, valid={})
    return Captures(parts)


def _fault(name: str, error: Exception) -> Fault:
    known = isinstance(error, BadInput)
    return Fault(
        "edit",
        f"{name!r}: its edits cannot be made: {one_line(error)}",
        "" if known else trace_text(error),
    )
