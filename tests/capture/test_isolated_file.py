"""A saved call comes back whole, in a process that has only the layer's class."""

import json
import subprocess
import sys
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.capture.same import assert_same
from tests.capture.test_isolate import taken
from tests.capture.test_isolate_nnx import Model, Restless
from theseus_track.capture import isolate, load
from theseus_track.capture.isolated_file import _canonical, _digest, describe
from theseus_track.errors import BadInput, NotFound

FOREIGN = """
import sys
from typing import Any
import jax
from theseus_track.capture import load
call = load(sys.argv[1])
print(bytes(jax.numpy.asarray(call()).tobytes()).hex())
"""


@pytest.fixture
def dense(tmp_path):
    model = nn.Dense(3, dtype=jnp.bfloat16, kernel_init=nn.initializers.normal(0.1))
    x = jnp.linspace(-1, 1, 4).reshape(2, 2)
    variables = model.init(jax.random.key(0), x)
    call = isolate(model.apply, "")(variables, x)
    return call, call.save(tmp_path / "dense")


@pytest.mark.slow  # Compiles a model with all kinds of state.
def test_all_of_a_linen_call_comes_back(tmp_path):
    for number, call in enumerate(
        (taken(compiled=True)[0][1], taken(compiled=True)[1][0])
    ):
        back = load(call.save(tmp_path / str(number)))

        assert back.origin == call.origin
        assert_same(back.content, call.content)
        output, state = jax.jit(lambda call: call.run())(back)
        assert_same(output, call.output)
        assert_same(state, call.state_after)


@pytest.mark.slow  # Eagerly, layer by layer.
def test_all_of_an_nnx_call_comes_back(tmp_path):
    call = isolate(lambda model, x: model(x), "rest")(
        Model(nnx.Rngs(0)), jnp.ones((2, 4))
    )[1]

    back = load(call.save(tmp_path / "rest"), cls=Restless)

    assert_same(back.content, call.content)
    for _ in range(2):
        output, state = back.run()
        assert_same(output, call.output)
        assert_same(state, call.state_after)


@pytest.mark.slow  # Starts a Python process with JAX.
def test_another_process_needs_only_the_class(dense):
    call, place = dense

    found = subprocess.run(
        [sys.executable, "-c", FOREIGN, str(place)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert found.stdout.strip() == np.asarray(call.output).tobytes().hex()


def test_it_is_small_and_says_what_it_holds(dense):
    call, place = dense

    found = describe(place)

    assert found.origin == call.origin
    assert found.sizes == {
        "params": 4 * (2 * 3 + 3),
        "state": 0,
        "inputs": 4 * 4,
        "output": 2 * 6,
        "after": 0,
    }
    assert found.parts["output"] == {"": "bfloat16[2, 3]"}
    assert found.versions["jax"] == jax.__version__


def test_a_big_layer_costs_little_more_than_its_arrays(tmp_path):
    model, x = nn.Dense(64), jnp.ones((8, 64))
    call = isolate(model.apply, "")(model.init(jax.random.key(0), x), x)

    found = describe(call.save(tmp_path / "big"))

    arrays = sum(leaf.nbytes for leaf in jax.tree.leaves(call.content))
    assert found.file_bytes < 2 * arrays


@pytest.mark.parametrize("name", ["isolated.json", "arrays.npz"])
def test_a_changed_file_is_refused(dense, name):
    _, place = dense
    data = bytearray((place / name).read_bytes())
    at = data.index(b"Dense") if name == "isolated.json" else len(data) // 2
    data[at] ^= 1
    (place / name).write_bytes(data)

    with pytest.raises(BadInput, match=f"{name}.*was changed"):
        load(place)
    with pytest.raises(BadInput, match="was changed"):
        describe(place)


@pytest.mark.parametrize(
    "wanted", ["os:system", "builtins:eval", "jax._src.config:os.system"]
)
def test_a_forged_file_imports_nothing_else(dense, wanted):
    _, place = dense
    whole = json.loads((place / "isolated.json").read_text())
    module = whole["body"]["frame"]["modules"][0]
    module["fields"]["dot_general"] = {"import": wanted}
    whole["digest"] = _digest(_canonical(whole["body"]))
    (place / "isolated.json").write_text(json.dumps(whole))

    with pytest.raises(BadInput, match=wanted):
        load(place)


def test_what_is_not_ours_is_refused(tmp_path, dense):
    with pytest.raises(NotFound, match=r"isolated.json"):
        load(tmp_path / "nowhere")
    for text in ("[]", "not json", '{"body": {"format": "x"}, "digest": ""}'):
        (dense[1] / "isolated.json").write_text(text)
        with pytest.raises(BadInput, match="isolated"):
            load(dense[1])


def test_what_cannot_be_written_is_named(tmp_path, dense):
    call, place = dense
    with pytest.raises(BadInput, match="not empty"):
        call.save(place)
    with pytest.raises(BadInput, match="not a Conv"):
        load(place, cls=nn.Conv)

    class Local(nn.Module):
        act: Any = None

        def __call__(self, x):
            return self.act(x)

    local = isolate(Local(lambda x: x + 1).apply, "")({}, jnp.ones(2))
    with pytest.raises(BadInput, match=r"Local.*top level"):
        local.save(tmp_path / "local")
    assert not (tmp_path / "local").exists()
