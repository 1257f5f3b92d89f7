"""The rule of reverse mode is the derivative of the dense sum: every input, dense and in tiles, masks, factors, softmax."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield.interaction import Tiling, reverse_only
from meanfield.interaction.tiled import Tiled

N, D = 11, 3


class Ramp(eqx.Module):
    """A factor that is not even: g(τ) = 1 + rate tanh τ."""

    rate: jax.Array

    def __call__(self, tau):
        return 1 + self.rate * jnp.tanh(tau)


def ramp(inner):
    return mf.Toeplitz(Ramp(jnp.asarray(0.3)), inner)


CASES = {
    "zonal": lambda k: mf.USA(k),
    "softmax": lambda k: mf.SA(k),
    "factor, causal": lambda k: mf.USA(ramp(k), causal=True),
    "softmax, factor, causal": lambda k: mf.SA(ramp(k), causal=True),
    "gauge, plain values": lambda k: mf.USA(mf.RoPE(k, jnp.ones(1)), rotate_values=False),
    "softmax, gauge, prefix": lambda k: mf.SA(
        mf.RoPE(ramp(k), jnp.ones(1)), prefix=mf.Prefix(np.eye(3)[:1], np.ones(1))
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cotangents_are_those_of_autodiff(name):
    x = mf.sphere.sample(jax.random.key(0), (N, D))
    weights = jnp.where(jnp.arange(N) == 4, 0.0, jnp.arange(1.0, N + 1))
    labels, weights = jnp.sort(jax.random.normal(jax.random.key(1), (N,))), weights / weights.sum()
    g = jax.random.normal(jax.random.key(2), (N, D))

    def pulled(change):
        def value(x, labels, weights, beta):
            field = CASES[name](mf.ExpDot(beta)).bind(mf.Marginal(labels, weights), D, x.dtype, change[0])
            if change[1] is not None:
                field = eqx.tree_at(lambda f: f.summing, field, Tiled(change[1], True))
            return jnp.sum(g * field(x))

        return jax.jit(jax.grad(value, argnums=(0, 1, 2, 3)))(x, labels, weights, jnp.asarray(2.0))

    expected = pulled(("dense", None))
    for change in ((reverse_only("dense"), None), (reverse_only("dense"), Tiling(4, 3))):
        for ours, theirs in zip(pulled(change), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_flow_uses_it_and_keeps_no_square_array():
    """Peak memory of the gradient of a flow of 2048 tokens in tiles stays far below one n×n array."""
    n = 2048
    x, rho = mf.sphere.sample(jax.random.key(0), (n, D), np.float32), mf.Marginal(np.zeros(n, np.float32))

    def order(beta):
        ts = jnp.array([0.0, 1.0])
        return mf.flow(
            mf.USA(mf.ExpDot(beta)), x, rho, ts, rtol=1e-4, method="blocked", save=("order",), throw=False
        ).order[-1]

    compiled = jax.jit(jax.grad(order)).lower(jnp.float32(1.0)).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < n * n * 4
