"""The fit: history, best, stops, checkpoints, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import meanfield as mf

CENTRE = np.array([1.0, -2.0])


def bowl(params):
    return jnp.sum((params["a"] - jnp.asarray(CENTRE, params["a"].dtype)) ** 2) + params["b"] ** 2


def start(dtype=np.float64):
    return {"a": jnp.zeros(2, dtype), "b": jnp.asarray(1.0, dtype), "name": "kept"}


def test_gradient_descent_follows_its_closed_form(precision):
    fit = mf.design.fit(bowl, start(precision), 20, optax.sgd(0.1))
    expected = 6.0 * 0.8 ** (2 * np.arange(21))
    np.testing.assert_allclose(fit.history, expected, rtol=1e-4)
    np.testing.assert_allclose(fit.gradient_norms, 2 * np.sqrt(expected), rtol=1e-4)
    np.testing.assert_allclose(fit.params["a"], CENTRE * (1 - 0.8**20), rtol=1e-5)
    assert fit.status == "steps" and fit.params["name"] == "kept" and fit.params["a"].dtype == precision
    assert fit.best_loss == fit.history[-1] and np.array_equal(fit.best["a"], fit.params["a"])


def test_the_best_is_kept_where_the_last_is_worse():
    fit = mf.design.fit(lambda w: jnp.sum(jnp.cos(w)), jnp.array([0.5]), 12, optax.sgd(3.0))
    assert fit.best_loss == fit.history.min() < fit.history[-1]
    np.testing.assert_allclose(jnp.cos(fit.best[0]), fit.best_loss)


def test_modes_and_line_search_agree():
    reverse = mf.design.fit(bowl, start(), 5, optax.adam(0.1))
    forward = mf.design.fit(bowl, start(), 5, optax.adam(0.1), mode="forward")
    np.testing.assert_allclose(reverse.history, forward.history, rtol=1e-12)
    newton = mf.design.fit(bowl, start(), 5, optax.lbfgs())
    assert newton.best_loss < 1e-20


@pytest.mark.parametrize(
    ("options", "status", "made"),
    [
        ({"gradient_tolerance": 1.0}, "converged", 8),
        ({"patience": 3}, "patience", 3),
        ({"callback": lambda step, loss, params: step == 4}, "callback", 4),
    ],
)
def test_early_stops(options, status, made):
    rate = 0.0 if status == "patience" else 0.1
    fit = mf.design.fit(bowl, start(), 100, optax.sgd(rate), **options)
    assert fit.status == status and len(fit.history) == made + 1


def test_a_fit_that_diverges_returns_the_last_good_parameters():
    fit = mf.design.fit(lambda w: jnp.sum(jnp.log(w)), jnp.array([0.5]), 50, optax.sgd(0.05))
    assert fit.status == "not finite" and np.isfinite(fit.history).all() and float(fit.best[0]) > 0
    assert float(fit.params[0]) == float(fit.best[0])


def test_fresh_keys_make_a_stochastic_loss_reproducible():
    def noisy(w, key):
        return jnp.sum((w - jax.random.normal(key, w.shape, w.dtype)) ** 2)

    runs = [mf.design.fit(noisy, jnp.zeros(2), 6, optax.sgd(0.1), key=jax.random.key(3)) for _ in range(2)]
    assert np.array_equal(runs[0].history, runs[1].history) and len(np.unique(runs[0].history)) == 7


def test_a_resumed_fit_equals_an_undisturbed_one(tmp_path):
    optimizer = optax.adam(0.1)
    whole = mf.design.fit(bowl, start(), 12, optimizer)
    seen = []

    def interrupted(step, loss, params):
        seen.append(step)
        if step == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        mf.design.fit(
            bowl, start(), 12, optimizer, checkpoint=tmp_path / "fit", checkpoint_every=3, callback=interrupted
        )
    assert "7 steps are safe" in caught.value.__notes__[0]
    again = mf.design.fit(
        bowl,
        start(),
        12,
        optimizer,
        checkpoint=tmp_path / "fit",
        checkpoint_every=3,
        callback=lambda s, *_: seen.append(s),
    )
    np.testing.assert_array_equal(again.history, whole.history)
    np.testing.assert_array_equal(again.params["a"], whole.params["a"])
    assert seen == [*range(8), *range(7, 13)]
    done = mf.design.fit(bowl, start(), 12, optimizer, checkpoint=tmp_path / "fit")
    np.testing.assert_array_equal(done.history, whole.history)
    with pytest.raises(ValueError, match="of another fit"):
        mf.design.fit(lambda w: jnp.sum(w**2), jnp.ones(3), 12, optimizer, checkpoint=tmp_path / "fit")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"params": {"a": 1}}, "no floating JAX array"),
        ({"steps": -1}, "steps=-1"),
        ({"mode": "sideways"}, "mode='sideways'"),
        ({"loss": lambda p: p["a"]}, "one floating number"),
        ({"loss": lambda p: jnp.log(p["b"] - 1) + p["a"][0]}, "not finite|-inf"),
    ],
)
def test_bad_input_is_named(change, match):
    arguments = {"loss": bowl, "params": start(), "steps": 3, "optimizer": optax.sgd(0.1)} | change
    with pytest.raises(ValueError, match=match):
        mf.design.fit(**arguments)


@pytest.mark.slow
def test_a_kernel_is_fitted_through_its_flow():
    """β from the energy that a flow reaches; the parameters are a kernel inside another pytree."""
    rho, x0 = mf.Marginal(np.zeros(4)), mf.sphere.sample(jax.random.key(1), (4, 3))

    def order(params):
        kernel = mf.ExpDot(params["beta"], shift=1.0)
        return mf.flow(mf.USA(kernel), x0, rho, jnp.array([0.0, 1.0]), save=("order",), max_steps=64).order[-1]

    target = order({"beta": jnp.array(1.5)})
    fit = mf.design.fit(lambda p: (order(p) - target) ** 2, {"beta": jnp.array(1.0)}, 25, optax.adam(0.1))
    assert abs(float(fit.best["beta"]) - 1.5) < 0.05
