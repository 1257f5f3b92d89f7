"""Coefficients of zonal functions: closed forms, lengths, derivatives, and the guard against too few terms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

import meanfield as mf
from meanfield.interaction.series import degree, differentiate, needed, phi_series, slope_series
from meanfield.kernels import terms


def evaluate(coefficients, t, d):
    c = np.asarray(coefficients, np.float64)
    return (np.polynomial.chebyshev.chebval if d == 2 else np.polynomial.legendre.legval)(np.asarray(t), c)


@pytest.mark.parametrize("beta", [0.3, 7.0, 256.0])
def test_exponential_coefficients_are_bessel_functions(beta):
    circle = slope_series(mf.ExpDot(beta), 2, needed(mf.ExpDot(beta), 2, jnp.float64), jnp.float64)
    order = np.arange(circle.coefficients.shape[0])
    expected = special.ive(order, beta) * np.where(order == 0, 1, 2)
    np.testing.assert_allclose(circle.coefficients, expected, rtol=1e-12, atol=1e-17)
    sphere = slope_series(mf.ExpDot(beta), 3, needed(mf.ExpDot(beta), 3, jnp.float64), jnp.float64)
    order = np.arange(sphere.coefficients.shape[0])
    expected = np.sqrt(np.pi / (2 * beta)) * special.ive(order + 0.5, beta) * (2 * order + 1)
    np.testing.assert_allclose(sphere.coefficients, expected, rtol=1e-12, atol=1e-17)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("zonal", [mf.ExpDot(5.0, shift=0.7), mf.Dot(), mf.Zonal(lambda t: jnp.sin(3 * t) + t**3)])
def test_series_and_its_derivative(d, zonal, precision):
    length = needed(zonal, d, precision)
    t = jnp.linspace(-1, 1, 41, dtype=precision)
    eps = float(jnp.finfo(precision).eps)
    for series, exact in (
        (slope_series(zonal, d, length, precision), jax.vmap(jax.grad(zonal.phi))(t)),
        (phi_series(zonal, d, length, precision), zonal.phi(t)),
    ):
        value = np.exp(series.top) * evaluate(series.coefficients, t, d)
        np.testing.assert_allclose(value, exact, atol=100 * eps * float(jnp.abs(exact).max()))
    derived = np.exp(series.top) * evaluate(differentiate(series.coefficients, d), t, d)
    np.testing.assert_allclose(derived, jax.vmap(jax.grad(zonal.phi))(t), atol=2000 * eps * float(jnp.abs(exact).max()))


def test_few_lengths_for_many_betas():
    """A loop over β compiles a program per length, so lengths are rounded up to a few."""
    lengths = {needed(mf.ExpDot(beta), 2, jnp.float32) for beta in np.linspace(1, 9, 40)}
    assert len(lengths) <= 6


def test_no_length_for_kinks_and_extreme_beta():
    assert needed(mf.Zonal(lambda t: jnp.abs(t - 0.1)), 2, jnp.float64) is None
    assert needed(mf.ExpDot(1e6), 3, jnp.float64) is None
    assert degree(terms(mf.ExpDot(1.0) + mf.Zonal(jnp.abs)), 2, jnp.float64) is None


def test_traced_beta_beyond_the_fixed_length_is_nan():
    good, bad = jax.vmap(lambda beta: slope_series(mf.ExpDot(beta), 3, 40, jnp.float64).coefficients)(
        jnp.array([10.0, 400.0])
    )
    assert jnp.isfinite(good).all() and jnp.isnan(bad).all()
    kinked = mf.Zonal(lambda t: jnp.abs(t - 0.1))
    assert jnp.isnan(slope_series(kinked, 2, 40, jnp.float64).coefficients).all()
