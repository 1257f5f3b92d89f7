"""Distances between laws against SciPy and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import wasserstein_distance

import meanfield as mf
from meanfield import observables as ob

KEY = jax.random.key(0)


def laws():
    x = mf.sphere.sample(jax.random.key(1), (9, 3))
    y = mf.sphere.sample(jax.random.key(2), (14, 3))
    a = jax.nn.softmax(jax.random.normal(jax.random.key(3), (9,)))
    b = jax.nn.softmax(jax.random.normal(jax.random.key(4), (14,)))
    return x, y, a, b


def test_sliced_wasserstein_is_scipys_on_every_line():
    x, y, a, b = laws()
    theta = np.asarray(mf.sphere.sample(KEY, (20, 3)))
    lines = [wasserstein_distance(np.asarray(x) @ t, np.asarray(y) @ t, np.asarray(a), np.asarray(b)) for t in theta]
    np.testing.assert_allclose(ob.sliced_wasserstein(x, y, KEY, a, b, 20, order=1), np.mean(lines), rtol=1e-12)


def test_sliced_wasserstein_closed_forms(precision):
    """A translation by v costs ‖v‖/√d in quadratic mean over directions; splitting a token's weight changes nothing."""
    x = mf.sphere.sample(jax.random.key(5), (200, 2), precision)
    moved = ob.sliced_wasserstein(x, x + jnp.asarray([0.3, 0.4], precision), KEY, projections=1000)
    np.testing.assert_allclose(moved, 0.5 / np.sqrt(2), rtol=0.05)
    twice = jnp.concatenate([x, x])
    assert ob.sliced_wasserstein(x, twice, KEY, projections=8) < 2e-4
    assert ob.sliced_wasserstein(x, x[::-1], KEY, projections=8) == 0


def test_sliced_wasserstein_gradients():
    x, y, a, b = laws()

    def loss(x, a):
        return ob.sliced_wasserstein(x, y, KEY, a / a.sum(), b, 16)

    gx, ga = jax.grad(loss, (0, 1))(x, a)
    h, e, u = 1e-6, jnp.ones((9, 3)) / 3, jnp.arange(9) / 9
    np.testing.assert_allclose(jnp.sum(gx * e), (loss(x + h * e, a) - loss(x - h * e, a)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(jnp.dot(ga, u), (loss(x, a + h * u) - loss(x, a - h * u)) / (2 * h), rtol=1e-5)
    same = jax.grad(lambda x: ob.sliced_wasserstein(x, y, KEY, projections=4))(y)
    assert bool((same == 0).all())


def test_sinkhorn_divergence():
    pytest.importorskip("ott", reason="ott-jax is in the extra `design`")
    x, y, a, b = laws()
    assert abs(ob.sinkhorn_divergence(x, x, a, a)) < 1e-6
    shift = 0.3 * jnp.ones(3)
    np.testing.assert_allclose(ob.sinkhorn_divergence(x, x + shift, a, a, epsilon=0.005), jnp.sum(shift**2), rtol=0.02)
    gradient = jax.grad(lambda x: ob.sinkhorn_divergence(x, y, a, b, epsilon=0.1))(x)
    assert bool(jnp.isfinite(gradient).all()) and bool((gradient != 0).any())


def test_laws_in_different_spaces_are_refused():
    with pytest.raises(ValueError, match="one dimension"):
        ob.sliced_wasserstein(np.eye(3), np.eye(2), KEY)
