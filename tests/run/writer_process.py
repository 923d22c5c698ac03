"""A training without a model: logs host results and metrics until it is killed.

Prints the step after each flush, so that the test knows what was acknowledged.
"""

import sys

from theseus_track import open_run

if __name__ == "__main__":
    with open_run(
        sys.argv[1], id="killed", sinks=[f"tensorboard:{sys.argv[2]}"]
    ) as run:
        for step in range(10_000):
            run.log_metrics({"loss": 1.0 / (step + 1)}, step=step)
            run.log_result("table", {"step": step}, step=step)
            if step % 5 == 4:
                run.flush(60)
                print(step, flush=True)  # noqa: T201
