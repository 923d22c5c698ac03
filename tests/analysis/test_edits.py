"""An analysis with EDITS sees the clean and the edited forward; nothing else does."""

import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.models import Attention, Block, TinyGPT, gpt_and_variables, tokens
from theseus_track.analysis import AnalysisBase, instrument, measure_hash
from theseus_track.capture import Grid, rules
from theseus_track.errors import AnalysisFault, BadInput, PlanError


class Streams(AnalysisBase):
    """What the blocks write, with the first attention gone."""

    TARGET = Block
    EDITS: ClassVar[Any] = {"blocks_0/attn": rules.zero}

    def select(self, paths: list[str]) -> Any:
        return paths

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.output


class Logits(AnalysisBase):
    """The same edit, seen at the root, and compared inside the program."""

    TARGET = TinyGPT
    EDITS: ClassVar[Any] = {"blocks_0/attn": rules.zero}

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.output

    def combine(self, values: Any) -> Any:
        return values["edited"][""] - values["clean"][""]


class Patched(Logits):
    """Corrupted at the embedding; the clean attention brought back at one token."""

    EDITS: ClassVar[Any] = {
        "embed": rules.scale(-1.0),
        "blocks_1": rules.clean.at([], axis=1),
    }


class Restored(Logits):
    """The same, with the whole of the last block brought back."""

    EDITS: ClassVar[Any] = {"embed": rules.scale(-1.0), "blocks_1": rules.clean}


class Ablations(AnalysisBase):
    """Every second unit that an attention writes, ablated: a grid of edits."""

    TARGET = TinyGPT
    EDITS: ClassVar[Any] = Grid(
        {"blocks_*/attn": rules.zero}, np.eye(2, 16, dtype=bool)
    )

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return {"logits": inputs.output}


class Plain(AnalysisBase):
    """An ordinary one beside them."""

    TARGET = Attention

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.output.mean()


class Unknown(Plain):
    """Its edits name no call."""

    EDITS: ClassVar[Any] = {"blocks_9/attn": rules.zero}


class Wrong(Plain):
    """Its rule raises."""

    EDITS: ClassVar[Any] = {"blocks_0/attn": lambda *_: 1 / 0}


ALL = [Streams, Plain, Logits, Patched, Restored, Ablations, Unknown, Wrong]


def without(variables: Any, path: str, unit: Any = slice(None)) -> Any:
    """Take from an attention what it writes: its values are zero then."""
    params = dict(variables["params"])
    v = params[path]["attn"]["v"]
    zeroed = jax.tree.map(lambda leaf: leaf.at[..., unit].set(0), v)
    attn = {**params[path]["attn"], "v": zeroed}
    params[path] = {**params[path], "attn": attn}
    return {"params": params}


def logits(variables: Any) -> Any:
    """Run the model alone."""
    return _apply()(variables, tokens())


@functools.cache
def _apply() -> Any:
    return jax.jit(gpt_and_variables()[0].apply)


@pytest.fixture(scope="module")
def seen() -> tuple[Any, Any]:
    """Run all of them at once, in one jit."""
    variables = gpt_and_variables()[1]
    return instrument(_apply(), ALL)(variables, tokens())


def test_the_functions_own_output_is_that_of_the_clean_forward(seen: Any) -> None:
    plain = logits(gpt_and_variables()[1])
    # More outputs may change a fusion.
    np.testing.assert_allclose(seen[0], plain, rtol=1e-6, atol=1e-6)
    assert "plain" in seen[1]


@pytest.mark.slow  # Compiles the model by Flax's own means, to compare with.
def test_ablation_equals_removing_the_parameters_by_hand(seen: Any) -> None:
    model, variables = gpt_and_variables()
    clean, removed = logits(variables), logits(without(variables, "blocks_0"))

    both = seen[1]["streams"]

    assert list(both) == ["clean", "edited"]
    assert list(both["edited"]) == list(both["clean"]) == ["blocks_0", "blocks_1"]
    np.testing.assert_allclose(seen[1]["logits"], removed - clean, atol=1e-5)
    take = jax.jit(lambda v: model.apply(v, tokens(), capture_intermediates=True)[1])
    for run, own in (
        ("clean", variables),
        ("edited", without(variables, "blocks_0")),
    ):
        inside = take(own)["intermediates"]
        for path, value in both[run].items():
            np.testing.assert_allclose(value, inside[path]["__call__"][0], atol=1e-5)


def test_patching_brings_the_clean_run_back(seen: Any) -> None:
    _, variables = gpt_and_variables()
    params = variables["params"]
    flipped = {**params, "embed": jax.tree.map(lambda x: -x, params["embed"])}
    clean, corrupted = logits(variables), logits({"params": flipped})

    np.testing.assert_allclose(seen[1]["restored"], jnp.zeros_like(clean), atol=1e-5)
    np.testing.assert_allclose(seen[1]["patched"], corrupted - clean, atol=1e-5)


def test_a_grid_gives_each_path_its_masks(seen: Any) -> None:
    _, variables = gpt_and_variables()

    found = seen[1]["ablations"]["edited"]

    assert list(found) == ["blocks_0/attn", "blocks_1/attn"]
    for path, value in found.items():
        assert value["logits"].shape == (2, *seen[0].shape)
        for unit in range(2):
            expected = logits(without(variables, path.partition("/")[0], unit))
            np.testing.assert_allclose(value["logits"][unit], expected, atol=1e-5)
    assert seen[1]["ablations"]["clean"]["logits"].shape == seen[0].shape


@pytest.mark.slow  # Traces three programs.
def test_faults_of_edits_cost_their_own_analysis_alone(seen: Any) -> None:
    faults = seen[1].faults
    assert set(faults) == {"unknown", "wrong"}
    assert {fault.phase for fault in faults.values()} == {"edit"}
    assert "'blocks_0/attn'" in faults["unknown"].message
    assert "ZeroDivisionError" in faults["wrong"].message
    variables = gpt_and_variables()[1]
    step = instrument(_apply(), [Unknown, Wrong, Plain])
    with pytest.raises(PlanError, match="2 of 3"):
        step.plan(variables, tokens())
    with pytest.raises(AnalysisFault, match="blocks_9"):
        instrument(_apply(), [Unknown], strict=True)(variables, tokens())


def test_what_are_no_edits_is_an_error() -> None:
    class Odd(Plain):
        EDITS: ClassVar[Any] = {"blocks_0": 3}

    with pytest.raises(BadInput, match="'blocks_0'"):
        instrument(lambda: None, [Odd])
    with pytest.raises(BadInput, match="no mask"):
        Grid({"a": lambda *_: None})  # type: ignore[dict-item]


@pytest.mark.slow  # Lowers four programs, for their cost.
def test_equal_edits_share_a_forward_and_the_plan_shows_its_cost() -> None:
    applied, variables = _apply(), gpt_and_variables()[1]

    def flops(*analyses: Any) -> float:
        plan = instrument(applied, analyses).plan(variables, tokens())
        assert plan.flops is not None
        assert plan.flops_added is not None
        return plan.flops_added / plan.flops

    assert flops(Plain) < 0.01
    one, two = flops(Streams), flops(Streams, Logits)
    assert 0.5 < one < 1.2  # Another forward, but for what no analysis needs.
    assert two < 1.2
    text = str(instrument(applied, [Streams, Plain]).plan(variables, tokens()))
    assert "one forward pass and 1 edited" in text


def test_the_hash_tells_edits_apart() -> None:
    def hashed(edits: Any) -> str:
        made = type("Streams", (Streams,), {"EDITS": edits})
        return measure_hash(made())

    each = [
        *(rules.zero, rules.mean, rules.scale(1), rules.scale(2), rules.clean),
        *(rules.add(np.ones(2)), rules.add(np.zeros(2)), rules.zero.at(1)),
        rules.zero.on("x"),
        lambda _, __, y: y,
        lambda _, __, y: -y,
    ]
    hashes = [hashed({"a": rule}) for rule in each] + [hashed(Grid({"a": rules.zero}))]

    assert len({*hashes, measure_hash(Plain())}) == len(each) + 2
    assert hashed({"a": rules.scale(2)}) == hashed({"a": rules.scale(2)})


class Noisy(nnx.Module):
    """Dropout and batch statistics, which an edited run must not move."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(4, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.drop(self.norm(self.first(x)))


class Scaled(AnalysisBase):
    """What comes out when the batch statistics see other values."""

    TARGET = Noisy
    EDITS: ClassVar[Any] = {"first": rules.zero, "norm": rules.add(1.0)}

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.output


@pytest.mark.slow  # Eagerly, layer by layer, and compiled.
@pytest.mark.parametrize("compiled", [False, True])
def test_streams_and_state_of_nnx_move_once(compiled: bool) -> None:
    x = jnp.sin(jnp.arange(12.0) ** 2).reshape(3, 4)
    one, two = Noisy(nnx.Rngs(0)), Noisy(nnx.Rngs(0))

    def forward(model: Noisy, x: Any) -> Any:
        return model(x)

    fn = nnx.jit(forward) if compiled else forward
    step = instrument(fn, [Scaled])
    for _ in range(2):
        expected = fn(one, x)
        out, values = step(two, x)
        np.testing.assert_allclose(out, expected, rtol=1e-6)
        # The same units were dropped in both; the others are 2 = 1 / 0.5.
        kept = np.asarray(expected) != 0
        np.testing.assert_allclose(values["scaled"]["edited"], 2.0 * kept, atol=1e-5)
        np.testing.assert_allclose(values["scaled"]["clean"], expected, atol=1e-6)
    for kind in (nnx.BatchStat, nnx.RngCount):
        states = (jax.tree.leaves(nnx.state(model, kind)) for model in (one, two))
        for mine, theirs in zip(*states, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6)
