"""The results of one analysis over the steps of a run."""

from collections.abc import Iterator, Sequence

from theseus_track.errors import NotFound
from theseus_track.records.strict_json import Json
from theseus_track.store import html
from theseus_track.store.result import Result

__all__ = ["Series"]


class Series:
    """The results of one analysis in a run, by step.

    Attributes:
        name: The NAME of the analysis.
    """

    def __init__(self, name: str, results: Sequence[Result]) -> None:
        self.name = name
        self._results = {result.step: result for result in results}

    @property
    def steps(self) -> list[int]:
        """The steps that have a result, ascending."""
        return [*self._results]

    @property
    def latest(self) -> Result:
        """The result of the highest step."""
        return self._results[max(self._results)]

    def __getitem__(self, step: int) -> Result:
        """Return the result of exactly this step.

        Raises:
            NotFound: When there is none; the message names the nearest steps.
        """
        found = self._results.get(step)
        if found is None:
            raise NotFound(self._unknown(step))
        return found

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results.values())

    def __len__(self) -> int:
        return len(self._results)

    def __contains__(self, step: object) -> bool:
        return step in self._results

    def __repr__(self) -> str:
        return f"Series({self.name!r}, steps={self.steps})"

    def _repr_html_(self) -> str:
        rows: list[list[Json]] = [
            [result.step, ", ".join(result.paths), result.error or ""]
            for result in self
        ]
        table = html.rows_table(("step", "paths", "error"), rows)
        return html.captioned(self.name, table)

    def _unknown(self, step: object) -> str:
        steps = self.steps
        if not isinstance(step, int):
            return f"{step!r} is not a step of {self.name!r}; a step is an integer."
        earlier = [s for s in steps if s < step][-1:]
        later = [s for s in steps if s > step][:1]
        near = " and ".join(str(s) for s in earlier + later)
        return (
            f"{self.name!r} has no result at step {step}. Nearest: {near}; it has "
            f"{len(steps)} steps from {steps[0]} to {steps[-1]}."
        )
