"""The recipe that a user begins with, filled with what their checkpoint says."""

from pathlib import Path

from theseus_track.checkpoints import Checkpoint, describe, find_checkpoints
from theseus_track.errors import TheseusError

__all__ = ["skeleton"]

_SHOWN = 12

_TEXT = '''"""How to run the checkpoints in {directory}."""

import jax
from my_model import Model, loss  # yours

from theseus_track.jobs import Recipe

{contents}
model = Model()
batch = ...  # one validation batch, a pytree of arrays


def eval_step(variables, batch):
    return loss(model.apply(variables, batch["x"]), batch["y"])


variables = jax.eval_shape(model.init, jax.random.key(0), batch["x"])
recipe = Recipe(eval_step=eval_step, variables=variables, batch=batch{item})
'''


def skeleton(directory: Path) -> str:
    """Return the text of a recipe for a directory of checkpoints.

    Args:
        directory: Its newest whole checkpoint is described, if it has one.
    """
    try:
        *_, newest = find_checkpoints(directory).by_step().values()
        contents, item = _contents(newest), _item(newest)
    except TheseusError:
        contents, item = "", ""
    return _TEXT.format(directory=directory, contents=contents, item=item)


def _contents(checkpoint: Checkpoint) -> str:
    leaves = [f"#   {name}: {leaf}" for name, leaf in describe(checkpoint).items()]
    # What the forward pass needs rather than the optimizer's copies of it.
    leaves.sort(key=lambda line: "opt" in line.partition("/")[0])
    shown = leaves[:_SHOWN]
    if len(leaves) > _SHOWN:
        shown.append(f"#   ... {len(leaves)} in all")
    head = f"# {checkpoint.path.name} holds, and `variables` should have what it needs:"
    return "\n".join([head, *shown, ""])


def _item(checkpoint: Checkpoint) -> str:
    items = sorted(checkpoint.items)
    if len(items) < 2:
        return ""
    named = next((name for name in ("params", "state") if name in items), items[0])
    return f", item={named!r}"
