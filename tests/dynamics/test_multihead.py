"""Multi-head attention against SA where the heads are trivial, and against a direct sum where they are not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

N, D = 7, 4
velocity = eqx.filter_jit(mf.velocity)


@pytest.fixture(scope="module")
def x():
    return mf.sphere.sample(jax.random.key(0), (N, D))


RHO = mf.Marginal(jnp.arange(N), weights=jnp.arange(1.0, N + 1) / jnp.arange(1.0, N + 1).sum())


def test_identity_heads_are_sa(x):
    """Heads with Q = K = R orthogonal and values that sum to I are SA, with weights and mask."""
    r = jnp.linalg.qr(jax.random.normal(jax.random.key(1), (D, D)))[0]
    heads = jnp.stack([r, jnp.eye(D)])
    split = jnp.stack([0.3 * jnp.eye(D), 0.7 * jnp.eye(D)])
    for causal in (False, True):
        multi = velocity(mf.MultiHead(heads, heads, split, 1.7, causal), x, RHO)
        single = velocity(mf.SA(mf.ExpDot(1.7), causal=causal), x, RHO)
        np.testing.assert_allclose(multi, single, atol=1e-14)


def test_against_the_formula(x):
    """Σ_h V_h softmax(β Q_h x · K_h x) x, projected, with a head dimension below d."""
    dynamics = mf.MultiHead.random(jax.random.key(2), 3, D, 2, beta=2.5)
    q, k, v = (np.asarray(m) for m in (dynamics.queries, dynamics.keys, dynamics.values))
    y = np.asarray(x)
    drift = np.zeros((N, D))
    for h in range(3):
        a = np.asarray(RHO.weights) * np.exp(2.5 * (y @ q[h].T) @ (y @ k[h].T).T)
        drift += (a / a.sum(1, keepdims=True)) @ y @ v[h].T
    expected = drift - (drift * y).sum(1, keepdims=True) * y
    np.testing.assert_allclose(velocity(dynamics, x, RHO), expected, atol=1e-14)
    np.testing.assert_allclose(velocity(dynamics, x, RHO, "blocked"), expected, atol=1e-14)


def test_flows_and_differentiates(x):
    """A flow has no energy; the gradient with respect to the matrices equals a finite difference."""
    dynamics = mf.MultiHead.random(jax.random.key(3), 2, D, 2)
    traj = mf.flow(dynamics, x, RHO, jnp.array([0.0, 0.5]))
    assert traj.ok and traj.energy is None

    @jax.jit
    def first(scale):
        return mf.velocity(mf.MultiHead(scale * dynamics.queries, dynamics.keys, dynamics.values, 2.0), x, RHO)[0, 0]

    slope = (first(1.0 + 1e-5) - first(1.0 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.grad(first)(1.0), slope, rtol=1e-6)


def test_float32(x):
    with jax.enable_x64(False):
        dynamics = mf.MultiHead.random(jax.random.key(2), 3, D, 2)
        y = mf.sphere.sample(jax.random.key(0), (N, D))
        rho = mf.Marginal(jnp.zeros(N))
        assert velocity(dynamics, y, rho).dtype == jnp.float32


def test_refuses_shapes(x):
    q = jnp.ones((2, 3, D))
    with pytest.raises((ValueError, TypeError)):
        mf.MultiHead(q, q, jnp.ones((2, 3, D)))
    with pytest.raises(ValueError, match="R\\^4"):
        mf.velocity(mf.MultiHead(q, q, jnp.ones((2, D, D))), x[:, :3], RHO)
