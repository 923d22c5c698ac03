"""The demo from start to end, on a tiny configuration."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from theseus_track.cli import main
from theseus_track.demo import GPTWithAnalysis, PretrainGPT, load_text
from theseus_track.store import Store, verify

TINY = {
    "layers": 2,
    "features": 32,
    "heads": 2,
    "context": 32,
    "batch_size": 8,
    "eval_batches": 2,
    "log_every": 1,
}


@pytest.mark.slow  # trains two models
def test_analyses_change_no_bit_of_the_training(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**TINY, "steps": 6, "eval_every": 3, "dropout": 0.3}
    losses = {}
    for trainer in (PretrainGPT, GPTWithAnalysis):
        trainer(**settings)(tmp_path, name=trainer.__name__)
        run = Store(tmp_path).run(trainer.__name__)
        rows = [row.metrics for row in run.metrics()]
        losses[trainer] = [row["train/loss"] for row in rows if "train/loss" in row]
        results = run.results()
        assert [result.error for result in results if result.error] == []
    assert len(losses[PretrainGPT]) == 6
    assert losses[PretrainGPT] == losses[GPTWithAnalysis]


@pytest.mark.slow  # trains until it has learnt something
def test_even_a_tiny_one_falls_below_the_unigram_entropy(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**TINY, "steps": 300, "eval_every": 300}
    metrics = PretrainGPT(**settings)(tmp_path)
    assert metrics["eval/loss"] < load_text().unigram_entropy - 0.5


def test_batches_are_neighbouring_characters_and_the_same_each_time() -> None:
    trainer = PretrainGPT(seed=3)
    one, two = (next(trainer.batches("train")) for _ in range(2))
    np.testing.assert_array_equal(one["tokens"], two["tokens"])
    np.testing.assert_array_equal(one["tokens"][:, 1:], one["targets"][:, :-1])
    assert one["tokens"].shape == (trainer.args.batch_size, trainer.args.context)
    other = next(trainer.batches("val"))
    assert not np.array_equal(one["tokens"], other["tokens"])


@pytest.mark.slow  # trains and draws
def test_the_command_ends_by_saying_where_everything_is(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    words = ["demo", "--root", str(tmp_path), "--steps", "2"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert not recwarn.list

    run = Store(tmp_path).run("train-gpt")
    assert run.state == "finished"
    assert run.analyses == [
        "activations",
        "attention",
        "residual_norms",
        "layer_statistics",
    ]
    entropy = f"{load_text().unigram_entropy:.3f}"
    assert f"unigram entropy {entropy}" in done.stdout
    for name in run.analyses:
        latest = run[name].latest
        assert latest.error is None
        assert latest.files
        assert all(str(file) in done.stdout for file in latest.files)
    assert f"theseus-track show {run.id} activations --root {tmp_path}" in done.stdout
    assert "tensorboard --logdir" in done.stdout
    assert verify(tmp_path) == []
    # Only the plan and the progress: no warning of ours or of a library.
    assert "WARNING" not in done.stderr
    assert "Warning" not in done.stderr
