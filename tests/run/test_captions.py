"""A figure says step, run, path, shape, dtype and range, live and read back."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from tests.models import Attention, gpt_and_variables, tokens
from theseus_track import open_run
from theseus_track.analysis import AnalysisBase, instrument
from theseus_track.records import ResultRecord
from theseus_track.sinks import MemorySink
from theseus_track.sinks.items import items_of
from theseus_track.store import Store


class Small(AnalysisBase):
    """A crop in bfloat16, which numpy does not know."""

    TARGET = Attention

    def analyze(self, layer: Any, inputs: Any) -> Any:
        return inputs.x[0, :4, :5].astype(jnp.bfloat16)

    def plot(self, values: Any) -> Any:
        return self.heatmap(values)


@pytest.mark.slow
def test_a_caption_says_what_is_shown(tmp_path: Path) -> None:
    # Compiles a model, and starts the render process.
    model, variables = gpt_and_variables()
    _, values = instrument(jax.jit(model.apply), [Small])(variables, tokens())
    sink = MemorySink()
    with open_run(tmp_path, sinks=[sink]) as run:
        run.log(values, step=7)
        assert run.flush(60)
        item: Any
        (item,) = sink.items
        drawn = values["small"]
        for said in (
            "small",
            "blocks_0/attn",
            "step 7",
            f"run {run.id}",
            "4×5 float32",  # noqa: RUF001 (the sign of shapes)
            f"{drawn.min():.4g} to {drawn.max():.4g}",
            "bfloat16 on the device",
        ):
            assert said in item.caption, said
        stored = Store(tmp_path).run(run.id)
        (ref, record), *_ = [
            pair for pair in stored.records() if isinstance(pair[1], ResultRecord)
        ]
        again: Any
        (again,) = items_of(stored.dir, ref, record)
        assert again.caption == item.caption
