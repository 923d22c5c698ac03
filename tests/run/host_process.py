"""One of the processes of a training: host_process.py RANK COUNT ADDRESS ROOT PARTS...

Two devices in all: with several in a process, JAX's CPU backend may run collectives in
another order in each, and hang without us. Prints one line of JSON at its end. What a
process cannot do alone waits for the others, so that a test needs a time limit.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

RANK, COUNT = int(sys.argv[1]), int(sys.argv[2])
ADDRESS, ROOT, PARTS = sys.argv[3], Path(sys.argv[4]), sys.argv[5:]
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={2 // COUNT}"

import flax.linen as nn  # noqa: E402 - the devices are counted before
import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from tests.jobs.small import Outputs, Small  # noqa: E402
from theseus_track.analysis import AnalysisBase, instrument  # noqa: E402
from theseus_track.errors import BadInput  # noqa: E402
from theseus_track.run import open_run  # noqa: E402
from theseus_track.sinks import MemorySink, Receipt  # noqa: E402

ROWS, STEPS, EVERY = 16, 6, 2
EVALUATIONS = 50


class Hidden(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.relu(nn.Dense(8)(x))


class Whole(AnalysisBase):
    """The whole batch, which is spread over all processes."""

    TARGET = Hidden

    def analyze(self, layer, inputs):
        return {"x": inputs.x, "w": layer.variables["params"]["Dense_0"]["kernel"]}

    def plot(self, values):
        return {"rows": len(values["x"])}


class Mean(AnalysisBase):
    TARGET = Hidden

    def analyze(self, layer, inputs):
        return inputs.output.mean(axis=0)

    def plot(self, values):
        return {"mean": values.tolist()}


class Slow(MemorySink):
    name = "slow"

    def write(self, item):
        time.sleep(0.1)
        return super().write(item)


class Failing(MemorySink):
    name = "failing"

    def write(self, item):
        return Receipt("failed", "it takes nothing")


class Raising(MemorySink):
    name = "raising"

    def write(self, item):
        raise OSError("no way there")


SINKS = (MemorySink, Slow, Failing, Raising)
TOLD: dict[str, object] = {}


def refused(call):
    """Return what a call says when it is refused."""
    try:
        call()
    except BadInput as error:
        return str(error)
    raise AssertionError("it was not refused")


def everywhere(mesh, rows):
    """Give the processes' own parts of a batch as one array."""
    own = np.array_split(rows, COUNT)[RANK]
    return jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), own)


def batch(mesh, seed):
    rows = np.random.default_rng(seed).normal(size=(ROWS, 3)).astype(np.float32)
    return everywhere(mesh, rows)


MODEL: Any = nn.Sequential([Hidden(), nn.Dense(1)])


@jax.jit
def train_step(params, x):
    def loss(params):
        return ((MODEL.apply(params, x) - x.sum(axis=1, keepdims=True)) ** 2).mean()

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), value


def evaluate(params, seen, x):
    out = MODEL.apply(params, x)
    return {"mean": out.mean(), "out": out}, seen + 1


def training(mesh, watched, run=None):
    """Train and evaluate; return what is the same with any run and any sink."""
    params = MODEL.init(jax.random.key(0), np.zeros((1, 3), np.float32))
    seen = jax.device_put(np.float32(0), NamedSharding(mesh, P()))
    losses = []
    for step in range(1, STEPS + 1):
        params, loss = train_step(params, batch(mesh, step))
        losses.append(float(loss))
        if run is not None:
            run.log_metrics({"loss": loss}, step=step)
        if step % EVERY == 0:
            before = seen
            (metrics, seen), values = watched(params, seen, batch(mesh, 0))
            assert before.is_deleted()  # The step donates it.
            if run is not None:
                run.log(values, step=step, wait=step == STEPS)
                run.log_metrics({"mean": metrics["mean"]}, step=step)
    weights = [np.asarray(leaf).ravel().tolist() for leaf in jax.tree.leaves(params)]
    return {"losses": losses, "weights": weights, "seen": int(seen)}


def hosts(mesh):
    """Log to sinks of every kind, and to none."""
    watched = instrument(jax.jit(evaluate, donate_argnums=1), [Whole, Mean])
    TOLD["plain"] = training(mesh, watched)
    for kind in SINKS:
        sink = kind()
        run = open_run(ROOT, id=sink.name, sinks=[sink])
        TOLD[sink.name] = training(mesh, watched, run)
        TOLD["threads"] = sum("theseus" in t.name for t in threading.enumerate())
        report = run.close(timeout=1 if kind is Raising else 30)
        TOLD[f"{sink.name} report"] = (report.recorded, report.lost, report.drawn)
        TOLD[f"{sink.name} shows"] = (sink.info is not None, len(sink.items))
    # One process alone reads what came out of the step.
    params = MODEL.init(jax.random.key(0), np.zeros((1, 3), np.float32))
    seen = jax.device_put(np.float32(0), NamedSharding(mesh, P()))
    _, values = watched(params, seen, batch(mesh, 0))
    leaves = jax.tree.leaves(values)
    assert all(leaf.is_fully_replicated for leaf in leaves)
    if RANK == 0:
        TOLD["values"] = [np.asarray(leaf).tolist() for leaf in leaves]


def spread(mesh):
    """Log arrays of which no process holds more than a part, between train steps."""
    rows = NamedSharding(mesh, P("data"))
    # What the caller wants for all of it, the values included.
    step = jax.jit(instrument(MODEL.apply, [Whole]), out_shardings=rows)
    params = MODEL.init(jax.random.key(0), np.zeros((1, 4), np.float32))
    x = everywhere(mesh, np.arange(ROWS * 4, dtype=np.float32).reshape(ROWS, 4))
    run = open_run(ROOT, id="spread")
    probed = run.probe("val", {"x": x})
    assert probed["x"] is x
    for number in range(1, EVALUATIONS + 1):
        params, _ = train_step(params, x)
        _, values = step(params, x * number)
        assert not any(leaf.is_fully_replicated for leaf in jax.tree.leaves(values))
        run.log(values, step=number, probe="val")
    if COUNT > 1:
        # An array of which rank 0 holds nothing.
        there = NamedSharding(jax.sharding.Mesh(jax.devices()[1:], "d"), P())
        own = [jax.device_put(1.0, d) for d in there.addressable_devices]
        alone = jax.make_array_from_single_device_arrays(
            (), there, own, dtype=np.float32
        )
        run.log_metrics({"alone": alone}, step=2)
    run.log_metrics({"rows": ROWS}, step=3)
    TOLD["lost"] = run.close().lost


def trainer(mesh):
    """Train by a Trainer, whose id rank 0 makes, and go on with it by its name."""

    class Wide(Small):
        ANALYSIS = (Outputs,)

        def batches(self, split):
            for one in super().batches(split):
                yield jax.tree.map(lambda part: everywhere(mesh, part), one)

    # The checkpoints are written by all processes, to one place.
    root = ROOT.parent / "trained"
    open_run(root, id="taken").close()
    short = {"eval_batches": 1, "eval_every": 1}
    TOLD["first"] = Wide(steps=1, **short)(root=root, name="wide")
    TOLD["second"] = Wide(steps=2, **short)(root=root, name="wide", resume=True)
    TOLD["taken"] = refused(lambda: Wide(**short)(root=root, id="taken"))


if __name__ == "__main__":
    if COUNT > 1:
        os.environ["JAX_NUM_PROCESSES"] = str(COUNT)
        TOLD["early"] = refused(lambda: open_run(ROOT, id="early"))
        del os.environ["JAX_NUM_PROCESSES"]
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(ADDRESS, COUNT, RANK)
        TOLD["nameless"] = refused(lambda: open_run(ROOT))
    whole = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
    for part in PARTS:
        {"hosts": hosts, "spread": spread, "trainer": trainer}[part](whole)
    print(json.dumps(TOLD))  # noqa: T201
