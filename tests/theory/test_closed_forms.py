"""Harmonics, equiangular tokens, clusters, Fourier dichotomy: theory.md 1 and 2."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gamma, iv

import meanfield as mf
from meanfield import theory


def bessel(l, beta, d):
    return gamma(d / 2) * (2 / beta) ** (d / 2 - 1) * iv(l + d / 2 - 1, beta)


@pytest.mark.parametrize("dim", [2, 3, 6])
def test_funk_hecke_is_accurate_for_every_degree(dim, precision):
    rtol = 1e-12 if precision == np.float64 else 5e-6
    for beta in (0.3, 4.0, 30.0):
        found = [theory.funk_hecke(beta, dim, l) for l in (0, 1, 5, 12)]
        assert found[0].dtype == precision
        np.testing.assert_allclose(found, [bessel(l, beta, dim) for l in (0, 1, 5, 12)], rtol=rtol)


def test_funk_hecke_differentiates():
    slope = jax.grad(lambda b: theory.funk_hecke(b, 3, 2))(2.5)
    h = 1e-5
    np.testing.assert_allclose(slope, (bessel(2, 2.5 + h, 3) - bessel(2, 2.5 - h, 3)) / (2 * h), rtol=1e-8)


@pytest.mark.parametrize("softmax", [False, True])
def test_growth_rates(softmax):
    l = np.array([1, 3, 4])
    expected = l * (l + 2) * bessel(l, 3.0, 4) / 3.0 / (bessel(0, 3.0, 4) if softmax else 1.0)
    np.testing.assert_allclose(theory.growth_rates(3.0, 4, l, softmax), expected, rtol=1e-12)
    rates = theory.label_growth_rates(np.array([0.2, 0.5]), 3.0, 4, l)
    np.testing.assert_allclose(rates, np.outer([0.2, 0.5], theory.growth_rates(3.0, 4, l)), rtol=1e-12)


def test_fastest_degree_and_initial_modes():
    rates = np.asarray(theory.growth_rates(50.0, 2, np.arange(1, 25)))
    assert abs(1 + rates.argmax() - np.sqrt(2 * 50.0)) <= 1
    np.testing.assert_allclose(theory.initial_modes(50.0), np.sqrt(75.0), rtol=0.02)


def test_noise_thresholds():
    expected = {2: 2.4469, 3: 1.8162, 4: 1.5753}
    for dim, beta in expected.items():
        np.testing.assert_allclose(theory.tricritical_beta(dim), beta, atol=5e-5)
    np.testing.assert_allclose(theory.noise_threshold(2.0, 3), 2.0 / (2 * bessel(1, 2.0, 3)), rtol=1e-12)


@pytest.mark.parametrize("softmax", [False, True])
def test_equiangular_rate_is_the_velocity_of_the_flow(softmax):
    n, r, beta = 5, 0.3, 1.7
    gram = np.full((n, n), r) + (1 - r) * np.eye(n)
    x = jnp.asarray(np.linalg.cholesky(gram))
    h = mf.ExpDot(beta)
    v = mf.velocity((mf.SA if softmax else mf.USA)(h), x, mf.Marginal(jnp.zeros(n)))
    rate = jnp.dot(v[0], x[1]) + jnp.dot(x[0], v[1])
    np.testing.assert_allclose(theory.equiangular_rate(r, n, beta, softmax), rate, rtol=1e-12)


def test_equiangular_linear_solves_its_equation():
    t, n = 0.8, 7
    r, slope = jax.jvp(lambda t: theory.equiangular_linear(t, n), (t,), (1.0,))
    np.testing.assert_allclose(slope, 2 / n * (1 - r) * (1 + (n - 1) * r), rtol=1e-12)
    np.testing.assert_allclose(theory.equiangular_linear(0.0, n), 0.0, atol=1e-15)


def test_cross_ratio_is_conserved_by_the_linear_flow():
    x = mf.sphere.sample(jax.random.key(0), (4, 5))
    v = mf.velocity(mf.USA(mf.Dot()), x, mf.Marginal(jnp.zeros(4)))
    value, change = jax.jvp(theory.cross_ratio, (x,), (v,))
    assert value > 0.1 and abs(change) < 1e-14


def test_two_cluster_times():
    times = [theory.two_cluster_time(b, 2.0, 0.5) for b in (2.0, 4.0, 8.0)]
    np.testing.assert_allclose(times, [5.5, 40, 5801], rtol=1.2e-2)
    with pytest.raises(ValueError, match="start=0.2"):
        theory.two_cluster_time(2.0, 0.2, 0.5)


def test_cluster_rates_are_eigenvalues_of_the_hessian():
    k, beta = 4, 1.5

    def energy(angle):
        return mf.energy(mf.ExpDot(beta), jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1), mf.Marginal(jnp.zeros(k)))

    hessian = k * jax.hessian(energy)(jnp.asarray(2 * np.pi * np.arange(k) / k))
    found = np.sort(theory.cluster_rates(k, beta))
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(hessian)), found, atol=1e-12)


def test_plateau_energy():
    axes = jnp.eye(8)[jnp.array([0, 0, 1, 2])]
    energy = mf.energy(mf.ExpDot(12.0), axes, mf.Marginal(jnp.zeros(4)))
    np.testing.assert_allclose(theory.plateau_energy(np.array([0.5, 0.25, 0.25]), 12.0), energy, rtol=1e-4)


def test_fourier_dichotomy():
    g = mf.Cosine(2.0, 0.6)
    coefficients = theory.fourier_coefficients(g, 4)
    np.testing.assert_allclose(coefficients, [0.6, 0, 0.5, 0, 0], atol=1e-14)
    assert theory.dirac_is_stable(coefficients)
    np.testing.assert_allclose(theory.linear_maximum(coefficients), 0.3, rtol=1e-14)
    assert not theory.dirac_is_stable(theory.fourier_coefficients(mf.Cosine(2.0, 0.4), 4))
    spectrum = theory.label_spectrum(g, mf.Marginal.circle(24))
    np.testing.assert_allclose(spectrum[:4], [0.6, 0.5, 0.5, 0.0], atol=1e-12)
    slope = jax.grad(lambda a: theory.fourier_coefficients(mf.Cosine(2.0, a), 0)[0])(0.3)
    np.testing.assert_allclose(slope, 1.0, rtol=1e-14)


def test_dirac_rates_are_growth_rates_of_the_flow():
    rho, beta, a = mf.Marginal.circle(48), 1.3, 0.2
    shape = 1e-5 * jnp.cos(rho.labels)
    x = mf.sphere.normalize(jnp.stack([shape, jnp.ones(48)], axis=1))
    v = mf.velocity(mf.USA(mf.Toeplitz(mf.Cosine(1.0, a), mf.ExpDot(beta))), x, rho)
    rates = theory.dirac_rates(theory.fourier_coefficients(mf.Cosine(1.0, a), 2), np.exp(beta))
    np.testing.assert_allclose(v[0, 0] / shape[0], rates[1], rtol=1e-6)
