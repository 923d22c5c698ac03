"""The command `inspect`: what a saved call holds, and how it refuses."""

import json

import flax.linen as nn
import jax
import jax.numpy as jnp
from click.testing import CliRunner

from theseus_track.capture import isolate
from theseus_track.cli import main


def test_it_shows_what_is_inside(tmp_path):
    model, x = nn.Dense(3), jnp.ones((2, 4))
    call = isolate(model.apply, "")(model.init(jax.random.key(0), x), x)
    place = call.save(tmp_path / "call")

    shown = CliRunner().invoke(main, ["inspect", str(place)])
    as_json = CliRunner().invoke(main, ["inspect", str(place), "--json"])

    assert shown.exit_code == 0, shown.output
    for text in ("Dense", "['kernel']", "float32[4, 3]", "60", jax.__version__):
        assert text in shown.output
    assert json.loads(as_json.output)["sizes"]["params"] == 60


def test_what_is_no_call_costs_one_line(tmp_path):
    refused = CliRunner().invoke(main, ["inspect", str(tmp_path)])
    assert refused.exit_code == 2
    assert "isolated.json" in refused.output
