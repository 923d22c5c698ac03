"""Each fault names path, class and fix: as a fault, by `plan` and under `strict`."""

from typing import Any, ClassVar

import jax
import numpy as np
import pytest

from tests.capture.test_faults import Solving
from tests.capture.twins import Attn, Block, batch, transformed
from theseus_track.analysis import AnalysisBase, glob, instrument
from theseus_track.errors import (
    AnalysisFault,
    PlanError,
    UnreachedCall,
    UnsupportedProgram,
)


class Base(AnalysisBase):
    TARGET: ClassVar[Any] = Attn

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.output


class Never(Base):
    METHODS = ("encode",)


class Unknown(Base):
    def select(self, paths: list[str]) -> Any:
        return "blocks/block/atn"


class Ambiguous(Base):
    def select(self, paths: list[str]) -> Any:
        return "blocks/block[1]/attn"


class Elsewhere(Base):
    select = glob("stages_*/attn")


class TooFar(Base):
    def select(self, paths: list[str]) -> Any:
        return "blocks[3]/block/attn"


class Text(Base):
    def analyze(self, layer: Any, inputs: Any) -> Any:
        return {"label": "text"}


class Complex(Base):
    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.output * 1j


class Large(Base):
    MAX_BYTES = 95


class Bug(Base):
    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.hidden


class Combines(Base):
    def select(self, paths: list[str]) -> Any:
        return paths

    def combine(self, values: Any) -> Any:
        raise ZeroDivisionError("by design")


class Fine(Base):
    pass


PATH = "'blocks/block/attn'"
# What each must name: where, the class, what is wrong, and what to do.
FAULTS: dict[type[AnalysisBase], tuple[type[Exception], list[str]]] = {
    Never: (UnreachedCall, ["encode", "Attn", "called: ", "TARGET and METHODS"]),
    Unknown: (
        AnalysisFault,
        ["Attn", "'blocks/block/atn'", f"Did you mean {PATH}?", "Known"],
    ),
    Ambiguous: (AnalysisFault, ["Attn", "'blocks/block'", "scanned stack", "blocks"]),
    Elsewhere: (AnalysisFault, ["Attn", "stages_*/attn", PATH]),
    TooFar: (AnalysisFault, ["Attn", "layer 3", "'blocks' has 3", "0 to 2"]),
    Text: (AnalysisFault, [PATH, "Attn", "str", "'label'", "return arrays"]),
    Complex: (AnalysisFault, [PATH, "Attn", "complex64", "abs, real and imag"]),
    Large: (AnalysisFault, [PATH, "Attn", "96 bytes", "95", "raise MAX_BYTES"]),
    Bug: (AnalysisFault, [PATH, "Attn", "'hidden'", "x, scale"]),
    Combines: (AnalysisFault, [PATH, "Attn", "ZeroDivisionError: by design"]),
}


def check_told(text: str, analysis: type[AnalysisBase]) -> None:
    assert analysis.NAME in text
    for said in FAULTS[analysis][1]:
        assert said in text, (analysis.NAME, said, text)


@pytest.mark.slow  # Compiles a step with a dozen analyses.
def test_a_fault_drops_its_analysis_and_the_step_is_as_before() -> None:
    model, variables = transformed("scan")
    step = jax.jit(model.apply)

    out, values = instrument(step, [*FAULTS, Fine])(variables, batch())

    np.testing.assert_array_equal(out, step(variables, batch()))
    assert list(values) == ["fine"]
    for analysis in FAULTS:
        check_told(values.faults[analysis.NAME].message, analysis)


def test_plan_tells_all_of_them_together() -> None:
    model, variables = transformed("scan")
    with pytest.raises(PlanError) as caught:
        instrument(model.apply, [*FAULTS, Fine]).plan(variables, batch())
    text = str(caught.value)
    assert f"{len(FAULTS)} of {len(FAULTS) + 1}" in text
    lines = text.split("\n")[1:]
    assert len(lines) == len(FAULTS)
    for analysis, line in zip(FAULTS, lines, strict=True):
        check_told(line, analysis)


@pytest.mark.parametrize("analysis", FAULTS)
def test_strict_raises_it_at_trace(analysis: type[AnalysisBase]) -> None:
    model, variables = transformed("scan")
    step = instrument(jax.jit(model.apply), [Fine, analysis], strict=True)
    with pytest.raises(FAULTS[analysis][0]) as caught:
        step(variables, batch())
    check_told(str(caught.value), analysis)


class Inner(Base):
    def select(self, paths: list[str]) -> Any:
        return paths[1]


class Unreached(Base):
    TARGET = Block


@pytest.mark.slow  # Compiles two models, with and without strict.
def test_what_no_value_can_leave_and_what_reaches_no_output() -> None:
    model = Solving()
    variables = model.init(jax.random.key(0), batch())
    step = instrument(jax.jit(model.apply), [Inner, Fine])
    said = [r"'inner'|'outer'", "Attn", "custom_linear_solve", "select another"]
    message = step(variables, batch())[1].faults["inner"].message
    with pytest.raises(PlanError) as planned:
        step.plan(variables, batch())
    strict = instrument(jax.jit(model.apply), [Inner], strict=True)
    with pytest.raises(UnsupportedProgram) as raised:
        strict(variables, batch())
    for text in (message, str(planned.value), str(raised.value)):
        for word in said[1:]:
            assert word in text

    stacked, stack = transformed("scan")

    def unused(variables: Any, x: Any) -> Any:
        # JAX drops from the body what its gradient does not need, the call with it.
        loss = jax.checkpoint(lambda v: (stacked.apply(v, x), x.sum())[1])
        return jax.grad(loss)(variables)

    lost = instrument(jax.jit(unused), [Unreached])
    message = lost(stack, batch())[1].faults["unreached"].message
    assert "Block" in message
    with pytest.raises(PlanError, match="Block"):
        lost.plan(stack, batch())
    with pytest.raises(UnreachedCall, match="Block"):
        instrument(jax.jit(unused), [Unreached], strict=True)(stack, batch())
