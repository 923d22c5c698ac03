"""One of two processes that replay a run as one: host_process.py RANK ADDRESS ROOT."""

import sys

import jax

from tests.replay.test_replay import Means
from theseus_track.replay import backfill, find_target, plan_replay

if __name__ == "__main__":
    rank, address, root = sys.argv[1:]
    jax.distributed.initialize(address, 2, int(rank))
    outcome = backfill(plan_replay(find_target("source", [Means], root=root)))
    print(outcome.done, outcome.exit_code)  # noqa: T201
