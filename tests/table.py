"""One table of kernels and dynamics that drives contract, transform and recompilation tests. Off-centre values throughout."""

import equinox as eqx
import jax
import jax.numpy as jnp

import meanfield as mf

N, D = 7, 4


def turn(angle):
    """A rotation of R^4 built from two generators (a generalised RoPE)."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    c2, s2 = jnp.cos(0.3 * angle), jnp.sin(0.3 * angle)
    a = jnp.eye(4, dtype=angle.dtype).at[0, 0].set(c).at[0, 2].set(-s).at[2, 0].set(s).at[2, 2].set(c)
    b = jnp.eye(4, dtype=angle.dtype).at[1, 1].set(c2).at[1, 3].set(-s2).at[3, 1].set(s2).at[3, 3].set(c2)
    return a @ b


class Ramp(eqx.Module):
    """A user's profile g(τ) = 1/(1 + slope τ²), with a parameter."""

    slope: jax.Array

    def __call__(self, tau):
        return 1 / (1 + self.slope.astype(tau.dtype) * tau**2)


def cubic(t):
    """A user's zonal part."""
    return t + t**3 / 3


def bilinear(x, xi, y, zeta):
    """A user's kernel of one pair, symmetric, without zonal structure."""
    return jnp.dot(x, y) * (x[0] + y[0]) * jnp.cos(xi - zeta)


KERNELS = {
    "dot": lambda: mf.Dot(),
    "exp": lambda: mf.ExpDot(1.7, shift=0.4),
    "zonal": lambda: mf.Zonal(cubic),
    "cosine": lambda: mf.Toeplitz(mf.Cosine(2.0, offset=0.3), mf.ExpDot(1.2)),
    "decay": lambda: mf.Toeplitz(mf.ExponentialDecay(0.8), mf.ExpDot(2.0)),
    "gaussian": lambda: mf.Toeplitz(mf.Gaussian(1.3), mf.ExpDot(0.7)),
    "user profile": lambda: mf.Toeplitz(Ramp(jnp.asarray(0.6)), mf.ExpDot(1.1)),
    "rope": lambda: mf.RoPE(mf.ExpDot(1.3), jnp.array([0.9])),
    "gauge": lambda: mf.Gauge(mf.ExpDot(0.9), turn),
    "rope of decay": lambda: mf.RoPE(mf.Toeplitz(mf.ExponentialDecay(0.4), mf.ExpDot(1.1)), jnp.array([1.1, 0.4])),
    "two gauges": lambda: mf.RoPE(mf.Gauge(mf.ExpDot(1.4), turn), jnp.array([0.7])),
    "sum": lambda: mf.ExpDot(0.8) + 0.5 * mf.RoPE(mf.ExpDot(1.6), jnp.array([1.2])),
    "product": lambda: mf.Dot() * mf.Toeplitz(mf.Gaussian(0.9), mf.ExpDot(0.5)),
    "difference": lambda: mf.ExpDot(1.5) - 2.0 * mf.Dot(),
    "pair": lambda: mf.Pair(bilinear),
    "mixed gauges": lambda: mf.Dot() * mf.RoPE(mf.ExpDot(1.0), jnp.array([1.5])),
}
UNSTRUCTURED = {"pair", "mixed gauges"}
SOFTMAX = {"dot", "exp", "zonal", "decay", "gaussian", "user profile", "rope", "gauge", "rope of decay", "two gauges"}


def tokens(n=N, d=D, dtype=None):
    """Tokens, labels and non-uniform weights."""
    x = mf.sphere.sample(jax.random.key(1), (n, d), dtype)
    labels = jax.random.uniform(jax.random.key(2), (n,), minval=-2.0, maxval=2.0, dtype=x.dtype)
    weights = jax.random.uniform(jax.random.key(3), (n,), minval=0.2, dtype=x.dtype)
    return x, mf.Marginal(labels, weights / weights.sum())
