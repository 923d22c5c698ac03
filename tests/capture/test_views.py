"""Analyzing a call leaves the run exactly as it is without analyses."""

import flax.core
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.capture.same import assert_same
from theseus_track.capture import Site, discover, watch

WIDTH = 4


class Noisy(nn.Module):
    """Has everything that a careless second call would change."""

    @nn.compact
    def __call__(self, x, train=True):
        calls = self.variable("stats", "calls", lambda: jnp.float32(0))
        calls.value += 1
        self.sow("intermediates", "sown", x.sum())
        h = nn.Dense(WIDTH)(x)
        h = nn.BatchNorm(use_running_average=not train)(h)
        h = nn.Dropout(0.5, deterministic=not train)(h)
        return h + jax.random.normal(self.make_rng("noise"), h.shape) + calls.value


class SetUp(nn.Module):
    """The same, its parts made in setup; and a method besides __call__."""

    def setup(self):
        self.dense = nn.Dense(WIDTH)
        self.drop = nn.Dropout(0.5, deterministic=False)

    def encode(self, x):
        return self.drop(self.dense(x))

    def __call__(self, x, train=True):
        del train
        return self.encode(x) + jax.random.normal(self.make_rng("noise"), x.shape)


class Given(nn.Module):
    """Uses modules that belong to others."""

    drop: nn.Module
    table: nn.Module
    many: tuple[nn.Module, ...]

    @nn.compact
    def __call__(self, x, train=True):
        del train
        x = self.drop(self.table.attend(x)[:, :WIDTH])
        for one in self.many:
            x = one(x)
        return x


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        shared = Noisy(name="shared")
        x = SetUp(name="ready")(shared(shared(x)))
        drop = nn.Dropout(0.5, deterministic=False)
        given = Given(
            drop,
            nn.Embed(9, WIDTH),
            (shared, nn.Dense(WIDTH, name="own")),
            name="given",
        )
        x = given(drop(x))
        # Their names and randomness depend on how many came before them.
        return nn.Dropout(0.5, deterministic=False)(nn.Dense(WIDTH)(x))


MUTABLE = ["stats", "batch_stats", "intermediates"]
EVERYTHING = (Noisy, SetUp, Given)


def rngs(number):
    key = jax.random.fold_in(jax.random.key(1), number)
    return {"dropout": key, "noise": jax.random.fold_in(key, 7)}


@pytest.fixture(scope="module")
def model_and_variables():
    model, x = Model(), jnp.linspace(-1, 1, 3 * WIDTH).reshape(3, WIDTH)
    init = jax.jit(model.init)
    variables = init({"params": jax.random.key(0), **rngs(0)}, x)
    return model, {k: v for k, v in variables.items() if k != "intermediates"}, x


def step_of(model):
    def step(variables, x, keys):
        return model.apply(variables, x, rngs=keys, mutable=MUTABLE)

    return step


def meddle(layer, inputs):
    """Do to the layer whatever an analysis may think of."""
    outputs = [layer(inputs.x) for _ in range(2)]
    nn.Dense(2).init(jax.random.key(0), inputs.x)
    nn.Dropout(0.5, deterministic=False)
    if isinstance(layer, SetUp):
        layer.encode(inputs.x)
        layer.drop(inputs.x)
    return [abs(y - inputs.output).max() for y in outputs]


@pytest.mark.slow  # Runs every kind of layer three times, eagerly and compiled.
@pytest.mark.parametrize("compiled", [False, True])
def test_calling_the_layer_again_gives_the_real_output(model_and_variables, compiled):
    model, variables, x = model_and_variables
    step = jax.jit(step_of(model)) if compiled else step_of(model)
    site = Site(target=EVERYTHING, select=list, analyze=meddle)

    _, captures = watch(step, {"again": site}, strict=True)(variables, x, rngs(0))

    differences = captures["again"].values
    assert list(differences) == ["shared", "shared#1", "ready", "given", "shared#2"]
    # Not exactly zero: XLA may fuse the two computations in different ways.
    np.testing.assert_allclose(jax.tree.leaves(differences), 0, atol=1e-6)


@pytest.mark.slow  # Compiles a model with every kind of state twice.
def test_outputs_state_and_randomness_are_those_without_analyses(model_and_variables):
    model, variables, x = model_and_variables
    step = jax.jit(step_of(model))
    sites = {
        name: Site(target=EVERYTHING, select=list, analyze=meddle) for name in "ab"
    }
    watched = watch(step, sites, strict=True)

    alone = together = variables
    for number in range(5):
        expected, state = step(alone, x, rngs(number))
        (out, watched_state), _ = watched(together, x, rngs(number))
        # Extra outputs can change a fusion; the state here is bit for bit the same.
        np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)
        assert_same(watched_state["stats"], state["stats"])
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6),
            watched_state,
            state,
        )
        alone = {**alone, **{k: state[k] for k in ("stats", "batch_stats")}}
        together = {
            **together,
            **{k: watched_state[k] for k in ("stats", "batch_stats")},
        }


def test_the_users_own_captures_are_not_touched(model_and_variables):
    model, variables, x = model_and_variables
    site = Site(target=EVERYTHING, select=list, analyze=meddle)

    def step(variables, x, keys):
        return model.apply(
            variables, x, rngs=keys, mutable=MUTABLE, capture_intermediates=True
        )[1]["intermediates"]

    expected = jax.eval_shape(step, variables, x, rngs(0))
    actual = watch(step, {"s": site}, strict=True).trace_abstract(variables, x, rngs(0))

    assert actual.out == expected


def test_parameters_and_variables_of_the_view(model_and_variables):
    model, variables, x = model_and_variables

    def analyze(layer, inputs):
        del inputs
        assert layer.path == ("shared",)
        return {
            "kernel": layer.variables["params"]["Dense_0"]["kernel"],
            "calls": layer.get_variable("stats", "calls"),
        }

    site = Site(target=Noisy, select=lambda _: "shared", analyze=analyze)
    _, captures = watch(step_of(model), {"s": site}, strict=True)(variables, x, rngs(0))

    value = captures["s"].values["shared"]
    assert_same(value["kernel"], variables["params"]["shared"]["Dense_0"]["kernel"])
    assert_same(value["calls"], variables["stats"]["shared"]["calls"])


def fail(layer, inputs):
    meddle(layer, inputs)
    raise Raises


class Raises(Exception):
    pass


ONE = {"a": Site(target=EVERYTHING, select=list, analyze=meddle)}
SEVERAL = {
    "b": Site(target=Noisy, select=list, analyze=lambda layer, _: layer.variables),
    "c": Site(target=SetUp, select=list, analyze=lambda layer, i: layer.encode(i.x)),
    "fault": Site(target=Noisy, select=list, analyze=fail),
}


@pytest.mark.slow  # Compiles a training step and three evaluations.
def test_training_is_the_same_to_the_last_bit(model_and_variables):
    model, variables, x = model_and_variables
    optimizer = optax.chain(optax.trace(0.9), optax.scale(-0.01))

    @jax.jit
    def train(now, x):
        key, own = jax.random.split(now["key"])
        keys = {"dropout": own, "noise": jax.random.fold_in(own, 1)}

        def loss(params):
            y, state = model.apply(
                {**now["state"], "params": params}, x, rngs=keys, mutable=MUTABLE
            )
            return (y**2).mean(), state

        (value, state), grads = jax.value_and_grad(loss, has_aux=True)(now["params"])
        updates, opt = optimizer.update(grads, now["opt"])
        kept = {name: state[name] for name in ("stats", "batch_stats")}
        params = optax.apply_updates(now["params"], updates)
        return {"params": params, "opt": opt, "state": kept, "key": key}, value

    def run(evaluate):
        params = variables["params"]
        state = {name: variables[name] for name in ("stats", "batch_stats")}
        now = {"params": params, "opt": optimizer.init(params), "state": state}
        now["key"], losses = jax.random.key(5), []
        for number in range(30):
            now, value = train(now, x)
            losses.append(value)
            if evaluate is not None and number % 5 == 4:
                evaluate({"params": now["params"], **now["state"]}, x, rngs(99))
        return now, losses

    alone = run(None)
    step = jax.jit(step_of(model))
    for evaluate in (step, watch(step, ONE, strict=True), watch(step, SEVERAL)):
        assert_same(run(evaluate), alone)


def everything():
    """Describe all Linen classes, and who intercepts their methods, as they are."""
    found = [nn.Module]
    for cls in found:
        found += [sub for sub in cls.__subclasses__() if sub not in found]
    # Flax tells nobody which interceptors there are.
    interceptors = len(nn.module._global_interceptor_stack)
    return {cls: dict(vars(cls)) for cls in (*found, flax.core.Scope)}, interceptors


@pytest.mark.slow  # JAX keeps no traces while it checks for leaks.
@pytest.mark.parametrize("sites", [ONE, SEVERAL])
def test_nothing_is_left_on_classes_modules_and_scopes(model_and_variables, sites):
    model, variables, x = model_and_variables
    seen = []

    def step(variables, x, keys):
        def inside(module, x):
            y = module(x)
            scope = module.scope
            seen.append(
                (
                    {k: str(v) for k, v in scope.rng_counters.items()},
                    sorted(map(str, scope.reservations)),
                    jax.tree.structure(scope._variables),
                    sorted(vars(scope)),
                    sorted(vars(module)),
                )
            )
            return y

        return nn.apply(inside, model, mutable=MUTABLE)(variables, x, rngs=keys)

    given = (variables, x, rngs(0))
    fn = jax.jit(step)
    untouched, before, own = fn(*given), everything(), dict(vars(model))
    (plain,) = seen

    with jax.checking_leaks():
        _, captures = watch(fn, sites)(*given)
        assert bool(captures.faults) == ("fault" in sites)

    assert everything() == before
    assert vars(model) == own
    # A scope is the same after each trace, also where an analysis failed.
    assert len(seen) > 1
    assert all(one == plain for one in seen)
    # And nobody who calls the user's own function gets a trace of ours.
    assert_same(fn(*given), untouched)


class Base(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(WIDTH)(x)


class Derived(Base):
    def __call__(self, x):
        return 2 * super().__call__(x)


class Explicit(Base):
    def __call__(self, x):
        return 3 * Base.__call__(self, x)


def test_calling_the_method_of_the_base_class_is_no_second_call():
    x = jnp.ones((1, WIDTH))
    for kind in (Derived, Explicit):
        model = kind()
        variables = model.init(jax.random.key(0), x)
        found = discover(model.apply, variables, x, target=Base)
        assert list(found) == [""]
        assert found[""].cls.endswith(kind.__name__)


def test_missing_randomness_is_the_users_own_error(model_and_variables):
    model, variables, x = model_and_variables
    site = Site(target=Noisy, select=list, analyze=meddle)
    watched = watch(lambda v, x: model.apply(v, x, mutable=MUTABLE), {"s": site})

    with pytest.raises(Exception, match="needs PRNG"):
        watched(variables, x)
