"""An analysis that inherits from a Trainer: base order, and binding to the live one."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import pytest

from tests.jobs.small import Hidden, Outputs, Small, the_run
from theseus_track.analysis import AnalysisBase
from theseus_track.errors import BadInput


class Bound(AnalysisBase, Small):
    """An analysis with a Trainer base."""

    TARGET = Hidden
    NAME = "bound"

    def analyze(self, layer: Any, inputs: Any) -> jax.Array:
        """Return the output."""
        output: jax.Array = inputs.output
        return output


def test_the_trainer_comes_after_the_analysis_base() -> None:
    with pytest.raises(TypeError, match=r"Wrong\(AnalysisBase, Small\)"):

        class Wrong(Small, AnalysisBase):
            pass


def test_a_bound_analysis_reads_the_live_trainer() -> None:
    trainer = Small(steps=77)
    trainer.setup()
    analysis = Bound()
    trainer.bind(analysis)
    assert analysis.args.steps == 77
    assert analysis.model is trainer.model
    assert analysis.state is trainer.state
    trainer.state = trainer.state.replace(step=trainer.state.step + 1)
    assert analysis.state is trainer.state
    assert (analysis.batch()["x"] == trainer.batch()["x"]).all()


@pytest.mark.parametrize("name", ["state", "model", "args"])
def test_a_bound_analysis_cannot_write_to_the_live_trainer(name: str) -> None:
    analysis = Bound()
    Small().bind(analysis)
    with pytest.raises(RuntimeError, match=f"Bound runs inside Small.*set {name}"):
        setattr(analysis, name, None)


def test_a_bound_analysis_can_neither_set_up_nor_train(tmp_path: Path) -> None:
    analysis = Bound()
    Small().bind(analysis)
    with pytest.raises(RuntimeError, match="cannot set itself up"):
        analysis.setup()
    with pytest.raises(RuntimeError, match="cannot train"):
        analysis(tmp_path)


def test_a_bound_analysis_may_keep_things_of_its_own() -> None:
    analysis: Any = Bound()
    Small().bind(analysis)
    analysis.cache = 1
    assert analysis.cache == 1


def test_an_analysis_alone_is_no_training(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Bound is an analysis"):
        Bound()(tmp_path)


@pytest.mark.slow  # trains
def test_it_runs_inline_and_sees_what_the_trainer_was_given(tmp_path: Path) -> None:
    seen = []

    class Curious(Bound):
        NAME = "curious"

        def plot(self, values: Any) -> dict[str, int]:
            seen.append(int(self.state.step))
            return {"steps": self.args.steps}

    class Training(Small):
        ANALYSIS = (Curious,)

    Training(steps=2)(tmp_path)
    assert the_run(tmp_path)["curious"].latest.table == {"steps": 2}
    assert seen == [2]


def test_the_configs_of_analyses_join_the_trainers() -> None:
    @dataclasses.dataclass
    class Crop:
        tokens: int = 64

    class Cropped(Outputs):
        CONFIG = Crop

    class Training(Small):
        ANALYSIS = (Cropped,)

    assert Training(tokens=3).args.tokens == 3
    assert Training().args.steps == Small().args.steps


def test_a_trainer_may_change_a_default_that_its_analysis_inherits_too() -> None:
    @dataclasses.dataclass
    class Shorter:
        steps: int = 1

    class Training(Small):
        CONFIG = Shorter
        ANALYSIS = (Bound,)

    assert Training().args.steps == 1
