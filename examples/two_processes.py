"""Two JAX processes, as on two hosts; it starts both, and rank 0 alone writes."""

import socket
import subprocess
import sys

import flax.linen as nn
import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from theseus_track import AnalysisBase, instrument, open_run


class Hidden(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.relu(nn.Dense(16)(x))


class Units(AnalysisBase):
    TARGET = Hidden

    def analyze(self, layer, inputs):
        return inputs.output  # All examples, also those of the other process.

    def plot(self, values):
        return self.heatmap(values, xlabel="Unit", ylabel="Example")


model = nn.Sequential([Hidden(), nn.Dense(1)])


@jax.jit
def eval_step(params, x):
    return ((model.apply(params, x) - x.sum(axis=1, keepdims=True)) ** 2).mean()


@jax.jit
def train_step(params, x):
    loss, grads = jax.value_and_grad(eval_step)(params, x)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


def train(address: str, rank: int) -> None:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    # On a cluster: jax.distributed.initialize(), once, before open_run.
    jax.distributed.initialize(address, num_processes=2, process_id=rank)
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    rows = NamedSharding(mesh, P("data"))
    rng = np.random.default_rng(rank)  # Each process reads its own part of the data.

    def batch():
        own = rng.normal(size=(8, 4)).astype(np.float32)
        return jax.make_array_from_process_local_data(rows, own)

    val, params = batch(), model.init(jax.random.key(0), np.zeros((1, 4), np.float32))
    watched_step = instrument(eval_step, [Units])
    # Every process makes the same calls, with the same id; rank 0 alone writes.
    with open_run(project="examples", id="two-processes") as run:
        for step in range(1, 31):
            params, loss = train_step(params, batch())
            run.log_metrics({"train/loss": loss}, step=step)
            if step % 10 == 0:
                loss, values = watched_step(params, val)
                run.log_metrics({"eval/loss": loss}, step=step)
                run.log(values, step=step)


if sys.argv[1:]:
    train(sys.argv[1], int(sys.argv[2]))
else:
    with socket.create_server(("localhost", 0)) as free:
        address = f"localhost:{free.getsockname()[1]}"
    words = [sys.executable, __file__, address]
    ranks = [subprocess.Popen([*words, str(rank)]) for rank in range(2)]
    sys.exit(any([rank.wait() for rank in ranks]))
