"""How users log to W&B, and what of their runs is theirs."""

from collections.abc import Callable
from typing import Any


def three_unstepped_rows(run: Any, step: int) -> None:
    run.log({"loss": 1.0 / (step + 1)})
    run.log({"lr": 0.1, "train/step": step})
    run.log({"grad": float(step)})


def one_stepped_row(run: Any, step: int) -> None:
    run.log({"loss": 1.0 / (step + 1)}, step=step)
    run.log({"lr": 0.1, "train/step": step}, step=step)
    run.log({"grad": float(step)}, step=step)


def one_row_in_two_calls(run: Any, step: int) -> None:
    run.log({"loss": 1.0 / (step + 1), "lr": 0.1}, commit=False)
    run.log({"grad": float(step), "train/step": step})


STYLES = [three_unstepped_rows, one_stepped_row, one_row_in_two_calls]
Style = Callable[[Any, int], None]


def of_the_user(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the user logged, with W&B's own step, without empty rows."""
    kept = [
        {k: v for k, v in row.items() if not k.startswith(("theseus", "analysis"))}
        for row in rows
    ]
    for row in kept:
        row.pop("_timestamp", None)
        row.pop("_runtime", None)
    return [row for row in kept if set(row) != {"_step"}]
