"""Losses vanish where the laws agree, follow their closed forms, and have finite gradients at coincident tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield import design

X, Y = mf.sphere.sample(jax.random.key(0), (6, 3)), mf.sphere.sample(jax.random.key(1), (4, 3))
LOSSES = {
    "sinkhorn": lambda x, y: design.sinkhorn(x, y, epsilon=0.1),
    "sliced": lambda x, y: design.sliced(x, y, jax.random.key(2), projections=8),
    "mmd": design.maximum_mean_discrepancy,
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_distances_with_finite_gradients(name):
    loss = jax.jit(LOSSES[name])
    tolerance = 1e-3 if name == "sinkhorn" else 1e-12  # Sinkhorn's iterations end at a marginal error of 1e-3
    assert float(loss(X, Y)) > 1e-2 and abs(float(loss(X, X[::-1]))) < tolerance
    gradient = jax.jit(jax.grad(LOSSES[name]))
    assert np.isfinite(gradient(X, Y)).all() and np.abs(gradient(X, X)).max() < 10 * tolerance
    same = jnp.tile(X[:1], (6, 1))
    assert np.isfinite(gradient(same, Y)).all()


def test_mean_discrepancy_is_its_double_sum():
    a, b = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1]), np.full(4, 0.25)

    def mean(u, v, wu, wv):
        squares = ((np.asarray(u)[:, None] - np.asarray(v)[None]) ** 2).sum(-1)
        return wu @ np.mean([np.exp(-squares / (2 * s**2)) for s in (0.2, 0.9)], axis=0) @ wv

    expected = mean(X, X, a, a) - 2 * mean(X, Y, a, b) + mean(Y, Y, b, b)
    np.testing.assert_allclose(design.maximum_mean_discrepancy(X, Y, a, widths=(0.2, 0.9)), expected, rtol=1e-10)


def test_margins_are_zero_inside_and_quadratic_outside():
    assert float(design.order_margin(jnp.array([0.1, 0.3]), 0.3)) == 0.0
    np.testing.assert_allclose(design.order_margin(jnp.array([0.1, 0.7]), 0.3), 0.08)
    square = jnp.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    assert float(design.pair_margin(square, 0.0)) == 0.0
    close = jnp.array([[1.0, 0.0], [0.8, 0.6]])
    np.testing.assert_allclose(design.pair_margin(close, 0.5), 2 * 0.25 * 0.3**2, rtol=1e-12)


def test_soft_collapse_time_tends_to_the_sharp_one():
    """Equiangular start at β = 0 (theory.md 1, check 2): R² = (1 + (n − 1) r)/n crosses 0.9 at a known time."""
    n, ts = 8, jnp.linspace(0.0, 4.0, 801)
    r = (jnp.exp(2 * ts) - 1) / (jnp.exp(2 * ts) + n - 1)
    order = jnp.sqrt((1 + (n - 1) * r) / n)
    level = 0.9
    rate = (n * level**2 - 1) / (n - 1)
    exact = 0.5 * np.log((1 + (n - 1) * rate) / (1 - rate))
    np.testing.assert_allclose(design.soft_collapse_time(order, ts, level, 400.0), exact, rtol=2e-3)
    assert float(design.soft_collapse_time(0.5 * order, ts, level, 400.0)) == pytest.approx(4.0, abs=1e-3)


def test_more_memory_means_more_checkpoints():
    small, large = (design.adjoint_for(100, 4, memory, jnp.float64) for memory in (1e4, 1e6))
    assert (small.checkpoints, large.checkpoints) == (2, 156)
    assert design.adjoint_for(2, 2, 1e9, max_steps=50).checkpoints == 50
    with pytest.raises(ValueError, match="memory=0"):
        design.adjoint_for(2, 2, 0.0)


@pytest.mark.slow
def test_gradients_do_not_depend_on_the_checkpoints():
    rho, x0 = mf.Marginal(np.zeros(4)), X[:4]

    def order(beta, memory):
        adjoint = design.adjoint_for(4, 3, memory, jnp.float64, max_steps=64)
        return mf.flow(mf.USA(mf.ExpDot(beta)), x0, rho, jnp.array([0.0, 1.0]), adjoint=adjoint, max_steps=64).order[-1]

    few, many = (jax.grad(order)(jnp.array(1.2), memory) for memory in (1.0, 1e6))
    np.testing.assert_allclose(few, many, rtol=1e-12)
