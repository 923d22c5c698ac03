"""The hyperparameters that every Trainer has, and their check."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from theseus_track.errors import BadInput
from theseus_track.jobs.settings import check_settings

__all__ = ["TrainerConfig", "make_args"]

_COUNTS = (
    "steps",
    "batch_size",
    "log_every",
    "eval_every",
    "eval_batches",
    "checkpoint_every",
    "keep",
)


@dataclasses.dataclass
class TrainerConfig:
    """Hyperparameters of a Trainer; a subclass' CONFIG adds more or changes defaults.

    Attributes:
        steps: Parameter updates to make, >= 1.
        batch_size: Examples in a batch, >= 1.
        seed: Determines the initial parameters, dropout and the order of the
            data; >= 0.
        learning_rate: Peak learning rate, > 0 and finite.
        log_every: Log the training loss every so many steps, >= 1.
        eval_every: Evaluate every so many steps, >= 1, and at the last one.
        eval_batches: Validation batches in one evaluation, >= 1.
        checkpoint_every: Save every so many steps, >= 1, and at the last one.
        keep: How many checkpoints stay, the newest ones; None: all of them.
    """

    steps: int = 1000
    batch_size: int = 32
    seed: int = 0
    learning_rate: float = 1e-3
    log_every: int = 10
    eval_every: int = 100
    eval_batches: int = 8
    checkpoint_every: int = 500
    keep: int | None = None


def make_args(config: type, settings: Mapping[str, object]) -> Any:
    """Build the hyperparameters of a job from its config class and what was set.

    Args:
        config: A dataclass that has the fields of TrainerConfig and any others.
        settings: Field name -> value; the rest keep their defaults.

    Returns:
        An instance of `config`.

    Raises:
        BadInput: When a setting is unknown, missing or does not fit.
    """
    given = check_settings(config, settings)
    missing = [
        field.name
        for field in dataclasses.fields(config)
        if field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
        and field.name not in given
    ]
    if missing:
        raise BadInput(f"{missing[0]} has no default. Set it, as {missing[0]}=....")
    args = config(**given)
    for name in _COUNTS:
        value = getattr(args, name)
        if value is not None and value < 1:
            raise BadInput(f"{name}={value!r} does not fit: {name} must be >= 1.")
    if args.seed < 0:
        raise BadInput(f"seed={args.seed!r} does not fit: seed must be >= 0.")
    if not 0 < args.learning_rate < math.inf:
        raise BadInput(
            f"learning_rate={args.learning_rate!r} does not fit: it must be > 0 and "
            "finite."
        )
    return args
