"""Brownian motion on the sphere: exact decay of harmonics, weak order, stationary law with drift, stability threshold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import eval_gegenbauer, ive

import meanfield as mf

SIGMA, COUNT, D = 0.8, 20_000, 3


@jax.jit
def _cloud(keys, x0, ts, pull):
    dynamics = mf.USA(mf.Dot(), prefix=mf.Prefix(x0[None], pull[None]))
    rho = mf.Marginal(jnp.zeros(1))

    def one(key):
        return mf.flow(mf.Noisy(dynamics, SIGMA, key, 0.1), x0[None], rho, ts, save=("x",)).x[:, 0]

    return jax.vmap(one)(keys)


def cloud(x0, seed, ts, pull=0.0):
    """Cosines (COUNT, T) with x0 of independent one-token runs from x0, which is also a prefix token of this strength
    (a single token exerts no force on itself)."""
    keys = jax.random.split(jax.random.key(seed), COUNT)
    return np.asarray(_cloud(keys, x0, jnp.asarray(ts), jnp.asarray(pull))) @ np.asarray(x0)


def harmonic(degree, d, t):
    """The zonal harmonic of this degree, 1 at t = 1 (d ≥ 3)."""
    return eval_gegenbauer(degree, d / 2 - 1, t) / eval_gegenbauer(degree, d / 2 - 1, 1.0)


def test_decay_of_harmonics():
    """E[P_l(⟨x(t), x(0)⟩)] = e^{−σ² l(l+d−2)t/2}, within four standard errors, at every save time."""
    ts = np.array([0.0, 0.13, 0.5])
    cosine = cloud(mf.sphere.sample(jax.random.key(0), (D,)), 1, ts)
    for degree in (1, 2, 3):
        exact = np.exp(-(SIGMA**2) * degree * (degree + D - 2) * ts / 2)
        values = harmonic(degree, D, cosine)
        error = 4 * values.std(0) / np.sqrt(COUNT) + 5e-4
        assert (np.abs(values.mean(0) - exact) <= error).all()


def one_step_mean(degree, d, variance):
    """E[P_l] after one geodesic step of `brownian_step`, by quadrature over the length of the step: no sampling error."""
    m = d - 1
    tau = variance / (1 + variance * (d - 2) / 6)
    r = np.linspace(0, 12, 40_001)
    density = r ** (m - 1) * np.exp(-r * r / 2)
    return np.sum(density * harmonic(degree, d, np.cos(np.sqrt(tau) * r))) / np.sum(density)


@pytest.mark.parametrize("d", [3, 4, 6])
def test_weak_order_two_of_the_noise(d):
    """The law of `brownian_step` after a fixed time misses the exact decay by O(step²): fitted order 2."""
    total, degree = 0.4, 2
    exact = np.exp(-total * degree * (degree + d - 2) / 2)
    errors = [abs(one_step_mean(degree, d, total / k) ** k - exact) for k in (4, 8, 16)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 2, atol=0.25)
    assert errors[-1] < 2e-4


def test_brownian_step_is_what_the_quadrature_assumes():
    """Its sample mean of P_2 at a long step agrees with the quadrature (and differs from exact Brownian motion)."""
    from meanfield.dynamics.noise import brownian_step

    count, d, variance = 200_000, 4, 0.6
    x0 = jnp.broadcast_to(jnp.array([1.0, 0, 0, 0]), (count, d))
    values = harmonic(2, d, np.asarray(brownian_step(jax.random.key(3), x0, jnp.asarray(variance)))[:, 0])
    error = 4 * values.std() / np.sqrt(count)
    assert abs(values.mean() - one_step_mean(2, d, variance)) < error


def test_stationary_law_with_drift():
    """A frozen prefix token p pulls with strength κ: the stationary law is ∝ e^{2κ⟨x,p⟩/σ²}, so E⟨x,p⟩ is known."""
    kappa = 0.9
    cosine = cloud(mf.sphere.sample(jax.random.key(4), (D,)), 5, [0.0, 2.0, 5.0], kappa)[:, -1]
    c = 2 * kappa / SIGMA**2
    exact = ive(D / 2, c) / ive(D / 2 - 1, c)
    assert abs(cosine.mean() - exact) < 4 * cosine.std() / np.sqrt(COUNT) + 1e-3


def test_paths_follow_their_key():
    """Same key, same path; another key or a later leg, another; unit rows; energy along the path; gradients pass."""
    x0, rho = mf.sphere.sample(jax.random.key(6), (5, 3)), mf.Marginal(jnp.zeros(5))
    ts = jnp.array([0.0, 0.33, 1.0])

    def run(key, sigma=0.5):
        return mf.flow(mf.Noisy(mf.SA(mf.ExpDot(2.0)), sigma, key, 0.1), x0, rho, ts)

    a, b, c = run(jax.random.key(7)), run(jax.random.key(7)), run(jax.random.key(8))
    np.testing.assert_array_equal(a.x, b.x)
    assert np.abs(a.x[-1] - c.x[-1]).max() > 1e-2
    np.testing.assert_allclose(np.linalg.norm(a.x, axis=-1), 1, atol=1e-14)
    assert int(a.stats["steps"]) == 4 + 7 and a.energy.shape == (3,)


@pytest.mark.slow
def test_gradient_along_a_path():
    """Reverse mode sees the same noise as the forward pass: it equals a finite difference at a fixed key."""
    x0, rho = mf.sphere.sample(jax.random.key(6), (5, 3)), mf.Marginal(jnp.zeros(5))

    def order(sigma):
        noisy = mf.Noisy(mf.SA(mf.ExpDot(2.0)), sigma, jax.random.key(7), 0.1)
        return mf.flow(noisy, x0, rho, jnp.array([0.0, 1.0])).order[-1]

    slope = (order(0.5 + 1e-5) - order(0.5 - 1e-5)) / 2e-5
    np.testing.assert_allclose(jax.grad(order)(0.5), slope, rtol=1e-5)


def test_refusals():
    with pytest.raises(ValueError, match="sigma"):
        mf.Noisy(mf.SA(mf.Dot()), -0.1, jax.random.key(0))
    with pytest.raises(ValueError, match="step"):
        mf.Noisy(mf.SA(mf.Dot()), 0.1, jax.random.key(0), step=0.0)
