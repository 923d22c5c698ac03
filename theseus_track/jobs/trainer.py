"""Trainer: a training as a class: model, data, optimizer, loss and analyses."""

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, overload

import flax.linen as nn
import jax
import optax
from flax import nnx

from theseus_track.analysis import AnalysisBase, Configured, compose_config
from theseus_track.errors import BadInput
from theseus_track.jobs.config import TrainerConfig, make_args
from theseus_track.jobs.debug import (
    Debugged,
    DebuggedLayers,
    PathLike,
    PathList,
    debug,
    find,
)
from theseus_track.jobs.models import Model
from theseus_track.jobs.place import Place
from theseus_track.jobs.state import TrainState, Variables
from theseus_track.jobs.steps import Batch, Metrics, initial_state, make_eval_step
from theseus_track.jobs.training import train

__all__ = ["Trainer"]


class Trainer(Configured):
    """A training that evaluates, analyses, saves and logs itself.

    A subclass sets `MODEL` and writes `batches` and `loss`. Constructing one
    allocates nothing; `setup()` draws the parameters; calling it trains.

    A class that inherits from AnalysisBase and from a Trainer is an analysis. In the
    ANALYSIS of a running Trainer it is bound to that one: `state`, `model`, `args`
    and `batch()` are the running Trainer's, and it can change none of them.

    Example:
        ```python
        import flax.linen as nn, jax, jax.numpy as jnp, numpy as np
        from theseus_track.jobs import Trainer


        class Regression(Trainer):
            MODEL = lambda: nn.Dense(1)

            def batches(self, split):
                rng = np.random.default_rng(self.args.seed)
                while True:
                    x = rng.normal(size=(self.args.batch_size, 3)).astype(np.float32)
                    yield {"x": x, "y": x.sum(axis=1, keepdims=True)}

            def loss(self, model, batch, *, train):
                return jnp.mean((model(batch["x"]) - batch["y"]) ** 2)


        metrics = Regression(steps=20)(root="results")
        assert metrics["eval/loss"] < 10
        ```

    Attributes:
        MODEL: Makes the model: a Linen module class or any callable without
            arguments, or an NNX module class that takes `rngs` alone. Override
            `build` when it needs `self.args`.
        CONFIG: A dataclass of hyperparameters; those of the base classes and of
            the analyses compose with it into `self.args`.
        ANALYSIS: The analyses that run during evaluation.
        STREAMS: Names of the random streams that the model draws from in training.
    """

    # What AnalysisBase looks for to refuse `class X(Trainer, AnalysisBase)`.
    THESEUS_TRAINER: ClassVar[bool] = True

    MODEL: ClassVar[Callable[..., nn.Module | nnx.Module]]
    CONFIG: ClassVar[type | None] = TrainerConfig
    ANALYSIS: ClassVar[Sequence[type[AnalysisBase] | AnalysisBase]] = ()
    STREAMS: ClassVar[tuple[str, ...]] = ("dropout",)

    _owner: "Trainer | None" = None
    _place: Place | None = None
    _ticks: int = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # After the check, so that its message names the base that the user wrote.
        cls.THESEUS_TRAINER = True

    def __init__(self, **settings: Any) -> None:
        """Take hyperparameters; the rest keep the defaults of CONFIG.

        Args:
            **settings: Field of CONFIG -> value.

        Raises:
            BadInput: When there is no such field or its value does not fit.
        """
        config = self.config_class()
        self._args = make_args(config, settings)
        self._state: TrainState | None = None

    @classmethod
    def config_class(cls) -> type:
        """Return the dataclass of all hyperparameters, those of analyses included."""
        kinds = [a if isinstance(a, type) else type(a) for a in cls.ANALYSIS]
        return compose_config(cls, extra=kinds)

    # What a subclass writes.

    def build(self) -> Model:
        """Make the unbound model; called once, allocates nothing.

        Returns:
            A Linen module; or, for NNX, a function of `nnx.Rngs` that makes the module
            and is called while tracing, such as `lambda rngs: Net(width, rngs=rngs)`.
        """
        make: Any = type(self).MODEL
        of_nnx = isinstance(make, type) and issubclass(make, nnx.Module)
        model: Model = (lambda rngs: make(rngs=rngs)) if of_nnx else make()
        return model

    def batches(self, split: str) -> Iterator[Batch]:
        """Yield batches, the same ones in the same order at every call.

        Args:
            split: "train", which must be endless, or "val", which must yield at
                least one batch. Their shapes should not change: each new shape
                is compiled anew.

        Yields:
            Pytrees of arrays, on host or device. They follow from `self.args.seed`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no batches(self, split). Write one that yields "
            "batches for split 'train', endlessly, and for 'val'."
        )

    def loss(
        self, model: Any, batch: Batch, *, train: bool
    ) -> jax.Array | tuple[jax.Array, Mapping[str, jax.Array]]:
        """Compute the loss of one batch; runs under jit.

        Args:
            model: The model, bound to its variables and random streams: call it. What
                it changes (BatchNorm statistics) is kept when `train` is True. Of NNX,
                `model.train()` or `model.eval()` was called before.
            batch: What `batches` yielded.
            train: Whether this is a training step; turns dropout on.

        Returns:
            The scalar to minimise, alone or with a dict of more scalars to log.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no loss(self, model, batch, *, train). Write "
            "one that calls model and returns a scalar."
        )

    def optimizer(self) -> optax.GradientTransformation:
        """Make the optimizer; the default is Adam at `args.learning_rate`."""
        return optax.adam(self.args.learning_rate)

    # What a Trainer has.

    @property
    def state(self) -> TrainState:
        """Parameters, optimizer and step as they are now; set by `setup`."""
        if self._owner is not None:
            return self._owner.state
        if self._state is None:
            raise RuntimeError(
                f"{type(self).__name__} has no state yet. Call setup() first."
            )
        return self._state

    @state.setter
    def state(self, state: TrainState) -> None:
        self._state = state

    @property
    def model(self) -> Model:
        """What `build` made."""
        return self._built if self._owner is None else self._owner.model

    @functools.cached_property
    def eval_step(self) -> Callable[[Variables, Batch], Metrics]:
        """The jitted `(variables, batch) -> metrics`, without analyses."""
        return jax.jit(make_eval_step(self.model, self.loss))

    def batch(self, split: str = "val") -> Batch:
        """Return one batch, always the same until `tick`.

        Args:
            split: "val" gives the first validation batch, which analyses look at;
                "train" the one that the next update takes.

        Returns:
            What `batches` yields.

        Raises:
            BadInput: When the split has no batch left.
        """
        if self._owner is not None:
            return self._owner.batch(split)
        index = self._ticks
        if split == "train" and self._state is not None:
            index += int(self._state.step)
        for batch in itertools.islice(self.batches(split), index, None):
            return batch
        raise BadInput(
            f"{type(self).__name__}.batches({split!r}) yields no batch of index "
            f"{index}. Tick less often, or let it yield more."
        )

    def find(self, cls: type) -> list[tuple[str, ...]]:
        """Find the modules of a class that the model calls, from shapes alone.

        Args:
            cls: A Linen or NNX module class; subclasses count.

        Returns:
            Their paths as tuples of names, each once, in the order of their calls.

        Raises:
            TypeError: When it is no module class.
        """
        variables = self.abstract_state().variables
        return find(self.model, self.loss, variables, self.batch(), cls)

    @overload
    def debug(self, path: PathLike) -> Debugged: ...
    @overload
    def debug(self, path: PathList) -> DebuggedLayers: ...
    def debug(self, path: PathLike | PathList) -> Debugged | DebuggedLayers:
        """Stop at a layer's call in an evaluation of `batch()`.

        Args:
            path: "blocks_0/attn" or ("blocks_0", "attn"); "" or () is the model. A
                list of them stops at all, in one forward pass.

        Returns:
            What unpacks into layer and inputs, with `with` or without; of a list, a
            sequence of these, which close together.

        Raises:
            BadInput: When the path is malformed.
            UnreachedCall: When there is no such call.

        Example:
            ```python
            from theseus_track.demo import PretrainGPT, SelfAttention

            trainer = PretrainGPT(layers=1, features=16, heads=2)
            trainer.setup()
            path = trainer.find(SelfAttention)[0]
            with trainer.debug(path) as (layer, inputs):
                assert layer(inputs.x).shape == inputs.output.shape
            ```
        """
        variables = self.state.variables
        return debug(self.model, self.loss, variables, self.batch(), path)

    def tick(self) -> None:
        """Let `batch` give the next batch of each split."""
        self._refuse_when_bound("tick")
        self._ticks += 1

    def keys(self) -> tuple[jax.Array, jax.Array]:
        """Return the random keys of the initial parameters and of the steps."""
        first, second = jax.random.split(jax.random.key(self.args.seed))
        return first, second

    def setup(self) -> None:
        """Draw the initial parameters, unless there is a state already."""
        self._refuse_when_bound("set itself up")
        if self._state is not None:
            return
        self._state = jax.jit(self._initial)(self.keys()[0])

    def abstract_state(self) -> TrainState:
        """Return shapes and dtypes of the state; no parameter is allocated.

        Returns:
            A TrainState whose leaves are `jax.ShapeDtypeStruct`.
        """
        state: TrainState = jax.eval_shape(self._initial, self.keys()[0])
        return state

    def __call__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        project: str = "default",
        name: str | None = None,
        id: str | None = None,
        group: str | None = None,
        tags: Sequence[str] = (),
        sinks: Sequence[str] = (),
        tensorboard: str | os.PathLike[str] | None = None,
        resume: bool = False,
        strict: bool = False,
    ) -> dict[str, float]:
        """Train, evaluate, analyse, save and log.

        A Trainer that `quick` made knows its run; it takes only `sinks`,
        `tensorboard` and `strict`.

        Args:
            root: The ledger's root; `$THESEUS_ROOT`, else `./results`, when None.
                Checkpoints go to `checkpoints/<id>` below it.
            project: The project that the run belongs to.
            name: What people call the run; default: the class name.
            id: The run's identity; default: a fresh one.
            group: Runs that belong together.
            tags: Labels to filter by.
            sinks: Trackers, such as "tensorboard" or "tensorboard:logs".
            tensorboard: A log directory of the user's own.
            resume: Go on from the latest checkpoint of the run `id`, or of the
                newest run called `name`. The result is what an uninterrupted
                training gives, to the last bit on the same machine.
            strict: Raise what goes wrong in an analysis instead of reporting it.

        Returns:
            The last metrics, such as "train/loss" and "eval/loss".

        Raises:
            BadInput: When an argument cannot be used; nothing was written.
            LedgerError: When the root cannot be written; nothing was written.
            NotFound: When there is nothing to resume.
            PlanError: Under `strict`, when an analysis has a fault.
        """
        self._refuse_when_bound("train")
        if isinstance(self, AnalysisBase):
            raise BadInput(
                f"{type(self).__name__} is an analysis, not a training. Put it in the "
                "ANALYSIS of a Trainer, or run it on a checkpoint with "
                "theseus_track.quick."
            )
        place = Place(
            root=root,
            project=project,
            name=name or type(self).__name__,
            id=id,
            group=group,
            tags=tuple(tags),
            sinks=tuple(sinks),
            tensorboard=tensorboard,
            resume=resume,
            strict=strict,
        )
        if self._place is not None:
            place = self._place.shown_in(place)
        return train(self, place)

    def go_on(self, state: TrainState, place: Place) -> None:
        """Take a saved state, and the place where calling this Trainer goes on.

        Args:
            state: As it was after `place.at` steps.
            place: The run; only its trackers may still change.
        """
        self._refuse_when_bound("go on from another state")
        self.state = state
        self._place = place

    def bind(self, analysis: AnalysisBase) -> AnalysisBase:
        """Let an analysis see this Trainer's `args`, and all of it if it is a Trainer.

        Args:
            analysis: An instance; bound for good.

        Returns:
            The same instance.
        """
        # Past the setters, which do not exist: nobody else may rebind it.
        vars(analysis)["_args"] = self.args
        if isinstance(analysis, Trainer):
            vars(analysis)["_owner"] = self
        return analysis

    def _initial(self, key: jax.Array) -> TrainState:
        return initial_state(
            self.model,
            self.loss,
            self.optimizer(),
            next(iter(self.batches("train"))),
            key=key,
            streams=self.STREAMS,
        )

    @functools.cached_property
    def _built(self) -> Model:
        return self.build()

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse what would change the training that a bound analysis sees."""
        if name in ("state", "model", "args"):
            self._refuse_when_bound(f"set {name}")
        super().__setattr__(name, value)

    def _refuse_when_bound(self, act: str) -> None:
        if self._owner is not None:
            raise RuntimeError(
                f"{type(self).__name__} runs inside {type(self._owner).__name__} and "
                f"cannot {act}: an analysis changes nothing. Return what you need from "
                "analyze."
            )
