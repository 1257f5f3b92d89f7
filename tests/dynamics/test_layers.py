"""Residual layers against the exact equiangular recurrence, the flow they discretise, and propagation's R^(t)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

N, D = 6, 3
RHO = mf.Marginal(jnp.arange(N))


def test_equiangular_recurrence():
    """y_i = c x_i + e Σ_{j≠i} x_j, c = 1 − λ + λa, e = λb: r ← ⟨y_i, y_j⟩/‖y_i‖² in closed form."""
    n, beta = 6, 2.0
    mixing = np.array([0.1, 0.5, 0.3, 0.0, 0.9])
    traj = mf.layers(mf.SA(mf.ExpDot(beta)), jnp.eye(n), mf.Marginal(jnp.zeros(n)), mixing)
    r, expected = 0.0, [0.0]
    m = n - 1
    for rate in mixing:
        z = np.exp(beta) + m * np.exp(beta * r)
        c, e = 1 - rate + rate * np.exp(beta) / z, rate * np.exp(beta * r) / z
        square = c * c + 2 * c * e * m * r + e * e * (m + m * (m - 1) * r)
        inner = c * c * r + 2 * c * e * (1 + (n - 2) * r) + e * e * (n - 2 + (m * m - n + 2) * r)
        r = inner / square
        expected.append(r)
    np.testing.assert_allclose(np.asarray(traj.x[:, 0] * traj.x[:, 4]).sum(-1), expected, atol=1e-13)
    np.testing.assert_allclose(traj.ts, np.concatenate([[0.0], np.cumsum(mixing)]))
    assert traj.ok and int(traj.stats["steps"]) == 5


def test_first_order_in_the_step():
    """Layers of mixing λ approach the flow at Λ = Σλ; halving λ halves the distance."""
    x0 = mf.sphere.sample(jax.random.key(0), (N, D))
    dynamics = mf.USA(mf.ExpDot(1.0), causal=True)
    exact = mf.flow(dynamics, x0, RHO, jnp.array([0.0, 1.0]), rtol=1e-10, atol=1e-12)
    errors = [np.abs(mf.layers(dynamics, x0, RHO, np.full(k, 1 / k)).final - exact.final).max() for k in (40, 80)]
    assert abs(np.log2(errors[0] / errors[1]) - 1) < 0.1


def test_attention_is_the_layer():
    """Before normalising, a layer is R = (1 − λ)I + λA, with gauge, factor, mask and weights in A."""
    x0 = mf.sphere.sample(jax.random.key(1), (N, D))
    w = jnp.array([0.1, 0.3, 0.0, 0.2, 0.15, 0.25])
    rho = mf.Marginal(jnp.arange(N), w)
    dynamics = mf.SA(
        mf.Toeplitz(mf.ExponentialDecay(0.3), mf.RoPE(mf.ExpDot(2.0), jnp.array([0.7]))),
        rotate_values=False,
        causal=True,
    )
    a = mf.attention(dynamics, x0, rho)
    np.testing.assert_allclose(a.sum(1), 1, atol=1e-14)
    assert (np.triu(a, 1) == 0).all() and (a[:, 2] == 0).all()
    layer = mf.sphere.normalize(0.8 * x0 + 0.2 * a @ x0)
    np.testing.assert_allclose(mf.layers(dynamics, x0, rho, np.array([0.2])).final, layer, atol=1e-14)


def test_gradient_through_depth():
    """Reverse mode equals a finite difference."""
    x0 = mf.sphere.sample(jax.random.key(2), (N, D))
    dynamics = mf.SA(mf.ExpDot(1.5))

    def order(mixing):
        return mf.layers(dynamics, x0, RHO, mixing).order[-1]

    mixing = jnp.full(4, 0.2)
    step = jnp.array([0.0, 1e-5, 0.0, 0.0])
    slope = (order(mixing + step) - order(mixing - step)) / 2e-5
    np.testing.assert_allclose(jax.grad(order)(mixing)[1], slope, rtol=1e-7)


def test_refusals():
    x0 = mf.sphere.sample(jax.random.key(3), (N, D))
    with pytest.raises(ValueError, match="mixing"):
        mf.layers(mf.SA(mf.Dot()), x0, RHO, np.array([0.5, 1.5]))
    with pytest.raises(ValueError, match="softmax"):
        mf.attention(mf.USA(mf.Dot()), x0, RHO)
