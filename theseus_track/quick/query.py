"""Query: choose steps of runs by what is known of them, one condition after another."""

import dataclasses
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from theseus_track.errors import BadInput, NotFound
from theseus_track.quick.node import MISSING, Node

if TYPE_CHECKING:
    from theseus_track.quick.session import Quick

__all__ = ["Query"]

Test = Callable[[Node], bool]

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "in": lambda value, allowed: value in allowed,
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Condition:
    """One condition and how it reads, for the message when nothing fits."""

    text: str
    test: Test


@dataclasses.dataclass(frozen=True, slots=True)
class Query:
    """A search among the steps of all runs; made by `Quick.find`.

    Each method returns a new search, so that a part of one can be used again. Nodes
    come by step, then by when their run began, unless `sort` says otherwise.
    """

    _session: "Quick"
    _conditions: tuple[_Condition, ...] = ()
    _order: tuple[str, bool] | None = None
    _newest: bool = False

    def spec(
        self,
        project: str | None = None,
        group: str | None = None,
        run: str | None = None,
    ) -> Self:
        """Keep runs of this project, this group and this name; None fits any."""
        given = {"project": project, "group": group, "name": run}
        wanted = {key: value for key, value in given.items() if value is not None}
        text = ", ".join(f"{key} {value!r}" for key, value in wanted.items())
        return self._and(
            text or "any run",
            lambda node: all(node.get(key) == value for key, value in wanted.items()),
        )

    def name(self, name: str) -> Self:
        """Keep runs of this name."""
        return self._and(f"name {name!r}", lambda node: node.run.name == name)

    def nonce(self, id: str) -> Self:
        """Keep the run of this id, or whose id begins so."""
        return self._and(f"id {id!r}", lambda node: node.run.id.startswith(id))

    def step(self, step: int) -> Self:
        """Keep this step."""
        return self._and(f"step {step}", lambda node: node.step == step)

    def tag(self, tag: str) -> Self:
        """Keep runs that have this tag."""
        return self._and(f"tag {tag!r}", lambda node: tag in node.run.info.tags)

    def has(self, key: str) -> Self:
        """Keep steps at which something is known under a key.

        Args:
            key: A metric, a field `config.FIELD`, or the NAME of an analysis that has
                a result at this step.
        """
        return self._and(
            f"has {key!r}",
            lambda node: key in node.results or node.get(key) is not MISSING,
        )

    def where(self, key: str, op: str, value: object) -> Self:
        """Keep steps whose value compares so.

        Args:
            key: "step", "wall_time", "project", "name", "id", "group", "state",
                "config.FIELD", or a metric, taken as of that step: logged there, else
                at the last step before.
            op: "<", "<=", ">", ">=", "==", "!=" or "in".
            value: What to compare with; a collection for "in". A step without the
                key, or whose value cannot be compared, is left out.

        Raises:
            BadInput: When there is no such operator.
        """
        if op not in OPERATORS:
            allowed = ", ".join(map(repr, OPERATORS))
            raise BadInput(f"The operator {op!r} is not known. Use one of {allowed}.")
        return self._and(f"{key} {op} {value!r}", _comparison(key, op, value))

    def checkpoint(self) -> Self:
        """Keep steps that have a whole checkpoint."""
        return self._and("a checkpoint", lambda node: node.checkpoint is not None)

    def artifact(self, name: str | None = None) -> Self:
        """Keep steps that have a result, of any analysis or of this NAME."""
        return self._and(
            "a result" if name is None else f"a result of {name!r}",
            lambda node: bool(node.results) if name is None else name in node.results,
        )

    def sort(self, key: str, ascending: bool = True) -> Self:
        """Order by a key as in `where`; steps without it come first."""
        return dataclasses.replace(self, _order=(key, ascending))

    def latest(self) -> Self:
        """Keep the one that was written last."""
        return dataclasses.replace(self, _newest=True)

    def all(self) -> list[Node]:
        """Return what fits, in order; empty when nothing does.

        Raises:
            NotFound: When the root does not exist.
        """
        conditions = self._conditions
        nodes = [
            node
            for node in self._session.nodes()
            if all(condition.test(node) for condition in conditions)
        ]
        if self._order is not None:
            nodes = _sorted(nodes, *self._order)
        if self._newest and nodes:
            nodes = [max(nodes, key=lambda node: (node.wall_time, node.step))]
        return nodes

    def select(self, keys: Iterable[str]) -> list[dict[str, object]]:
        """Return one row for each node that fits, None where a key is unknown.

        Args:
            keys: As in `where`; a text is one key.
        """
        wanted = [keys] if isinstance(keys, str) else [*keys]
        return [
            {key: None if (v := node.get(key)) is MISSING else v for key in wanted}
            for node in self.all()
        ]

    def resume(self) -> Node:
        """Let the session's job go on in the last run and step that fits.

        Results attach to that run at that step; a training continues it.

        Returns:
            What was selected.

        Raises:
            NotFound: When nothing fits.
            BadInput: When nothing was built, or the run's saved config does not fit
                the job; the session stays as it was.
            RuntimeError: When the job was created already.
        """
        return self._session.take(self._last(), branch=False)

    def branch(self) -> Node:
        """Let the session's job begin a new run from the last step that fits.

        Returns:
            What was selected.

        Raises:
            NotFound: When nothing fits.
            BadInput: As for `resume`.
            RuntimeError: When the job was created already.
        """
        return self._session.take(self._last(), branch=True)

    def _last(self) -> Node:
        nodes = self.all()
        if nodes:
            return nodes[-1]
        asked = "; ".join(condition.text for condition in self._conditions)
        names = sorted({node.run.name for node in self._session.nodes()})
        shown = ", ".join(map(repr, names[:10])) or "none"
        raise NotFound(
            f"No step fits: {asked or 'anything'}. Runs in {self._session.root}: "
            f"{shown}. `.all()` shows what fits a shorter search."
        )

    def _and(self, text: str, test: Test) -> Self:
        condition = _Condition(text, test)
        return dataclasses.replace(self, _conditions=(*self._conditions, condition))


def _comparison(key: str, op: str, value: object) -> Test:
    def test(node: Node) -> bool:
        found = node.get(key)
        if found is MISSING or found is None:
            return False
        try:
            return bool(OPERATORS[op](found, value))
        except TypeError:
            return False

    return test


def _sorted(nodes: Sequence[Node], key: str, ascending: bool) -> list[Node]:
    def known(node: Node) -> bool:
        return node.get(key) not in (MISSING, None)

    lacking = [node for node in nodes if not known(node)]
    having: list[Any] = [node for node in nodes if known(node)]
    try:
        having.sort(key=lambda node: node.get(key), reverse=not ascending)
    except TypeError as error:
        raise BadInput(
            f"The values of {key!r} cannot be ordered: {error}. Sort by another key."
        ) from error
    return [*lacking, *having]
