"""The budgets of the reference set that can be counted; times are only measured."""

import jax
import pytest

from tests.benchmarks.measure import cost
from tests.benchmarks.model import GPT, KINDS, Sizes, make_step, shapes
from tests.benchmarks.questions import asked
from theseus_track.analysis import instrument

# Smaller than what is published, so that the share of the analyses is larger.
SIZES = Sizes(layers=6, features=128, heads=4, context=128, batch=4, vocabulary=128)


@pytest.mark.slow  # compiles a GPT of six layers twice
@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_set_stays_within_flops_and_memory(kind: str) -> None:
    model = GPT(SIZES, kind)
    step, arguments = make_step(model), shapes(model)
    base = cost([jax.jit(step)], arguments)
    questions = asked("reference", layer=SIZES.layers // 2)
    found = cost([instrument(jax.jit(step), questions)], arguments)
    # Of a loop XLA counts the body once, with all that is asked of one layer in it:
    # for a stack the ratio to one turn is a stricter bound than that to all of them.
    assert found.flops <= 1.01 * base.flops
    assert found.temporary <= 1.05 * base.temporary
    assert found.returned > base.returned + 2 * 4 * 64 * 128
