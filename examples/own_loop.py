"""A training loop of your own: only open_run, instrument and the analysis are ours."""

from pydoc_data.topics import topics

import flax.linen as nn
import jax
import numpy as np
import optax

from theseus_track import AnalysisBase, instrument, open_run


class SelfAttention(nn.Module):
    @nn.compact
    def __call__(self, x):
        mask = nn.make_causal_mask(x[..., 0])
        return x + nn.MultiHeadDotProductAttention(num_heads=4)(x, mask=mask)


class Activations(AnalysisBase):
    TARGET = SelfAttention
    NAME = "activations"

    def select(self, paths):
        return paths[0]  # First discovered attention module.

    def analyze(self, layer, inputs):
        return inputs.x[0, :64, :128]  # First sample; crop tokens/features.

    def plot(self, values):
        return self.heatmap(values, xlabel="Feature", ylabel="Token")


@jax.jit
def eval_step(params, batch):
    logits = model.apply(params, batch[:, :-1])
    return cross_entropy(logits, batch[:, 1:]).mean()


cross_entropy = optax.softmax_cross_entropy_with_integer_labels
text = np.frombuffer("\n".join(topics.values()).encode(), np.uint8)[: 65 * 8 * 500]
val, *batches = text.astype(np.int32).reshape(500, 8, 65)
model = nn.Sequential([nn.Embed(256, 128), SelfAttention(), nn.Dense(256)])
params, optimizer = model.init(jax.random.key(0), val), optax.adam(1e-2)
opt_state = optimizer.init(params)
watched_step = instrument(eval_step, [Activations])
print(watched_step.plan(params, val))

with open_run(project="examples", name="own-loop", sinks=["tensorboard"]) as run:
    for step, batch in enumerate(batches[:60], start=1):
        loss, grads = jax.value_and_grad(eval_step)(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state)
        params = optax.apply_updates(params, updates)
        run.log_metrics({"train/loss": loss}, step=step)
        if step % 20 == 0:
            loss, values = watched_step(params, val)
            run.log_metrics({"eval/loss": loss}, step=step)
            run.log(values, step=step)
print(f"Loss {loss:.3f}. Look inside: theseus-track show own-loop activations")
