"""What a run's close found: what is in the ledger, what the sinks did not take."""

import dataclasses

from theseus_track.sinks import SinkReport

__all__ = ["CloseReport"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CloseReport:
    """What is safe and what is not, when a run was closed; print it.

    Attributes:
        run: The id of the run.
        recorded: Whether everything that was logged is in the ledger.
        lost: How many evaluations or rows of metrics never reached the ledger.
        drawn: Whether everything was drawn in time; the values of what was not are
            in the ledger.
        sinks: One report for each sink.
        faults: Each fault once, with how often it came.
    """

    run: str
    recorded: bool
    lost: int
    drawn: bool
    sinks: tuple[SinkReport, ...]
    faults: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing anywhere and nothing failed."""
        shown = all(report.complete for report in self.sinks)
        whole = self.recorded and self.drawn and not self.lost
        return whole and shown and not self.faults

    def __str__(self) -> str:
        lines = [f"Run {self.run}: all recorded"]
        if self.lost:
            lines = [f"Run {self.run}: {self.lost} logged entries were lost"]
        if not self.recorded:
            lines.append("not all of what was logged reached the ledger in time")
        if not self.drawn:
            lines.append("not everything was drawn in time; the values are kept")
        lines += [str(report) for report in self.sinks]
        if not all(report.complete for report in self.sinks):
            lines.append(f"Deliver the rest later: theseus-track sync {self.run}")
        lines += self.faults
        return "\n  ".join(lines)
