"""method="expansion" against the dense sum: values, derivatives of every order and mode, masks, ties, refusals."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield.interaction import Expansion

N = 600  # three blocks of an ordered sum, the last one short


def turn(label):
    return jnp.array([[jnp.cos(label), jnp.sin(label)], [-jnp.sin(label), jnp.cos(label)]])


CASES = {
    "rotated, one cosine": (2, mf.USA(mf.RoPE(mf.Toeplitz(mf.Cosine(2.0, offset=0.3), mf.ExpDot(2.0)), jnp.ones(1)))),
    "plain values": (3, mf.USA(mf.RoPE(mf.ExpDot(3.0), jnp.array([0.7])), rotate_values=False)),
    "causal with ties": (3, mf.SA(mf.ExpDot(4.0), causal=True)),
    "decay": (2, mf.SA(mf.Toeplitz(mf.ExponentialDecay(1.5), mf.ExpDot(4.0)))),
    "decay, causal, two cosines": (
        3,
        mf.USA(
            mf.Toeplitz(
                mf.ExponentialDecay(0.7),
                mf.Toeplitz(mf.Cosine(3.0, 0.2), mf.Toeplitz(mf.Cosine(1.0, 1.5), mf.Zonal(lambda t: t**3 - t))),
            ),
            causal=True,
        ),
    ),
    "prefix, gauge": (
        2,
        mf.SA(
            mf.Gauge(mf.ExpDot(2.0), turn), prefix=mf.Prefix(np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([0.3, 0.1]))
        ),
    ),
    "sum": (3, mf.USA(mf.ExpDot(1.0) + 0.5 * mf.Toeplitz(mf.Cosine(2.0), mf.ExpDot(3.0, shift=1.0)))),
}


def tokens(d, dtype=None):
    """Poles, antipodes and coincident tokens among random ones; labels with ties that run across blocks."""
    x = mf.sphere.sample(jax.random.key(0), (N, d), dtype)
    axis = jnp.eye(d, dtype=x.dtype)[-1]
    x = x.at[:4].set(jnp.stack([axis, -axis, axis, jnp.eye(d, dtype=x.dtype)[0]]))
    labels = jnp.round(jax.random.uniform(jax.random.key(1), (N,), x.dtype, maxval=3.0), 1).at[:150].set(1.2)
    weights = jax.random.dirichlet(jax.random.key(2), jnp.ones(N, x.dtype))
    return x, mf.Marginal(labels, weights / weights.sum())


@pytest.mark.parametrize("name", sorted(CASES))
def test_velocity_is_the_dense_one(name):
    d, dynamics = CASES[name]
    x, rho = tokens(d)
    dense = mf.velocity(dynamics, x, rho, method="dense")
    value = mf.velocity(dynamics, x, rho, method="expansion")
    np.testing.assert_allclose(
        value, dense, atol=2e-13 * float(jnp.abs(dense).max()) * (1 + float(jnp.abs(dense).max()))
    )


def test_single_precision(precision):
    d, dynamics = CASES["decay, causal, two cosines"]
    x, rho = tokens(d, precision)
    dense = mf.velocity(dynamics, x, rho, method="dense")
    value = mf.velocity(dynamics, x, rho, method="expansion")
    assert value.dtype == precision
    np.testing.assert_allclose(value, dense, atol=50 * float(jnp.finfo(precision).eps) * float(jnp.abs(dense).max()))


def test_large_beta_in_single_precision():
    """The velocity is a torque turned: no radial part, √β times larger, cancels, and no softmax overflows."""
    x, rho = tokens(2)
    uniform = mf.Marginal(rho.labels)
    sharp = mf.USA(mf.ExpDot(256.0, shift=1.0))
    exact = mf.velocity(sharp, x, uniform, method="dense")
    t = x @ x.T
    size = jnp.exp(256 * (t - 1)) * jnp.sqrt(jnp.maximum(1 - t * t, 0))
    found = np.float64(mf.velocity(sharp, x.astype(jnp.float32), uniform, method="expansion"))
    assert float(jnp.abs(found - exact).max() / size.mean(axis=1).max()) <= 1e-6
    soft = mf.velocity(mf.SA(mf.ExpDot(200.0)), x.astype(jnp.float32), uniform, method="expansion")
    expected = mf.velocity(mf.SA(mf.ExpDot(200.0)), x, uniform, method="dense")
    np.testing.assert_allclose(soft, expected, atol=3e-5 * float(jnp.abs(expected).max()))


@pytest.mark.parametrize("d", [2, 3])
def test_energy(d):
    kernel = mf.Toeplitz(mf.ExponentialDecay(0.4), mf.RoPE(mf.ExpDot(3.0), jnp.array([0.5])))
    x, rho = tokens(d)
    expected = mf.energy(kernel, x, rho, method="dense")
    np.testing.assert_allclose(mf.energy(kernel, x, rho, method="expansion"), expected, rtol=1e-13)


def loss(parameters, x, rho, method):
    beta, rate = parameters
    kernel = mf.Toeplitz(mf.ExponentialDecay(rate), mf.ExpDot(beta))
    return jnp.sum(jnp.cos(3 * mf.velocity(mf.USA(kernel), x, rho, method=method)))


@pytest.mark.parametrize("d", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_gradients_and_mixed_second_derivatives(d):
    """Tokens, β and the decay; reverse, forward and forward over reverse; poles and off-sphere directions included."""
    x, rho = tokens(d)
    parameters = (jnp.array(2.0), jnp.array(0.8))
    direction = jax.random.normal(jax.random.key(5), x.shape)

    @functools.partial(jax.jit, static_argnums=0)
    def derivatives(method):
        grad = jax.grad(lambda x: loss(parameters, x, rho, method))
        return (
            jax.grad(lambda p: loss(p, x, rho, method))(parameters),
            jax.jvp(grad, (x,), (direction,)),
        )

    for a, b in zip(*(jax.tree.leaves(derivatives(m)) for m in ("expansion", "dense")), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10 * float(jnp.abs(b).max()))


def test_maps_over_parameters_and_tokens():
    x, rho = tokens(2)
    betas = jnp.array([0.5, 2.0])

    def run(method):
        return jax.vmap(lambda b, x: mf.velocity(mf.USA(mf.ExpDot(b)), x, rho, method=method))

    several = jnp.stack([x, x[::-1]])
    np.testing.assert_allclose(run("expansion")(betas, several), run("dense")(betas, several), atol=1e-13)


def test_refusals_name_reason_and_remedy():
    x, rho = tokens(2)

    def go(kernel, x=x):
        return mf.velocity(mf.USA(kernel), x, rho, method="expansion")

    with pytest.raises(ValueError, match="Gaussian is neither trigonometric.*blocked"):
        go(mf.Toeplitz(mf.Gaussian(1.0), mf.ExpDot(1.0)))
    with pytest.raises(ValueError, match="d = 4"):
        go(mf.ExpDot(1.0), mf.sphere.sample(jax.random.key(0), (N, 4)))
    with pytest.raises(ValueError, match="more than 1024 terms"):
        go(mf.Zonal(jnp.abs))
    with pytest.raises(ValueError, match="zonal up to gauges"):
        go(mf.Pair(lambda x, xi, y, zeta: x @ y))


def test_auto_says_why():
    labels = mf.Marginal(np.zeros(40_000))

    def bind(kernel, d):
        return mf.USA(kernel).bind(labels, d, jnp.float32, "auto")

    near_linear = bind(mf.ExpDot(4.0), 2)
    assert isinstance(near_linear.summing, Expansion) and near_linear.method.startswith("expansion: n = 40000")
    assert "d = 5" in bind(mf.ExpDot(4.0), 5).method
    assert "Gaussian" in bind(mf.Toeplitz(mf.Gaussian(1.0), mf.ExpDot(1.0)), 2).method
    assert "parameters are traced" in jax.eval_shape(lambda b: bind(mf.ExpDot(b), 2), 4.0).method
