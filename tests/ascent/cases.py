"""One table of kernels, labels and exact maxima; solutions shared by the tests of this folder."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

N, DIM, RESTARTS = 24, 3, 8
RHO = mf.Marginal.circle(N)
UNEVEN = mf.Marginal(jnp.linspace(-1.0, 2.0, N), jnp.arange(1.0, N + 1) / (N * (N + 1) / 2))


def cosine(beta=2.0, offset=0.0, shift=0.0):
    return mf.Toeplitz(mf.Cosine(1.0, offset), mf.ExpDot(beta, shift))


def turn(angle):
    c, s, one, zero = jnp.cos(angle), jnp.sin(angle), jnp.ones_like(angle), jnp.zeros_like(angle)
    return jnp.stack([jnp.stack([one, zero, zero]), jnp.stack([zero, c, -s]), jnp.stack([zero, s, c])])


KERNELS = {
    "cosine": (cosine(), RHO),
    "uneven": (mf.Toeplitz(mf.Cosine(2.0, 0.1), mf.ExpDot(1.5)), UNEVEN),
    "gauge": (mf.Toeplitz(mf.Cosine(), mf.Gauge(mf.ExpDot(1.5), turn)), RHO),
    "sum": (mf.ExpDot(1.0) + -0.7 * mf.RoPE(mf.Zonal(lambda t: t**3), jnp.array([1.0])), RHO),
    "pair": (mf.Pair(lambda x, xi, y, zeta: jnp.cos(xi - zeta) * jnp.dot(x, y) ** 2), RHO),
}


@functools.cache
def solved(beta=2.0, restarts=RESTARTS, seed=0):
    """The certified maximiser of `cosine(beta)`."""
    return mf.ascend(cosine(beta), RHO, DIM, jax.random.key(seed), restarts=restarts)


def random_states(count, n=N, dim=DIM, seed=5):
    """Random, clustered and planar configurations."""
    x = np.random.default_rng(seed).normal(size=(count, n, dim))
    x[1::3] = x[1::3, :1] + 0.3 * x[1::3]
    x[2::3, :, 2:] = 0
    return jnp.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))
