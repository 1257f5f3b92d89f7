"""Closed forms on the circle of labels against direct sums and the numbers of theory.md 2."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield import theory

N = 240
RHO = mf.Marginal.circle(N)
ANGLE = 2 * np.pi * np.arange(N) / N


def kernel(beta, offset, shift=0.0, frequency=1.0):
    return mf.Toeplitz(mf.Cosine(frequency, offset), mf.ExpDot(beta, shift))


def latitude(theta, k=1):
    s = np.sin(theta)
    return np.stack([s * np.cos(k * ANGLE), s * np.sin(k * ANGLE), np.full(N, np.cos(theta))], axis=1)


@pytest.mark.parametrize("frequency", [1, 3])
def test_energies_are_the_sums_over_pairs(frequency):
    beta, offset, shift = 2.3, 0.37, 0.4
    h = kernel(beta, offset, shift, float(frequency))
    circle = mf.energy(h, latitude(np.pi / 2, frequency), RHO)
    np.testing.assert_allclose(theory.great_circle_energy(beta, offset, shift), circle, rtol=1e-12)
    tilted = mf.energy(h, latitude(0.7, frequency), RHO)
    np.testing.assert_allclose(theory.latitude_energy(np.sin(0.7) ** 2, beta, offset, shift), tilted, rtol=1e-12)
    np.testing.assert_allclose(theory.dirac_energy(beta, offset, shift), mf.energy(h, latitude(0.0), RHO), rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_arcs_energy_in_the_limit_of_many_labels(k):
    x = latitude(np.pi / 2)
    sector = 2 * np.pi * np.floor(np.arange(N) * k / N) / k
    x = np.stack([np.cos(sector), np.sin(sector)], axis=1)
    direct = mf.energy(kernel(2.0, 0.0), x, RHO)
    np.testing.assert_allclose(theory.arcs_energy(k, 2.0), direct, rtol=6 * (k / N) ** 2)
    np.testing.assert_allclose(theory.arcs_energy(k, 2.0, 1.0), np.exp(-2.0) * theory.arcs_energy(k, 2.0), rtol=1e-12)


def test_three_arcs_win_at_large_beta():
    energies = {k: float(theory.arcs_energy(k, 40.0, 1.0)) for k in (2, 3, 4)}
    assert max(energies, key=energies.get) == 3
    np.testing.assert_allclose(theory.arcs_energy(3, 6.0), 7.67029, rtol=1e-3)  # n = 60 in theory.md


def test_latitude_circle_is_critical_and_bifurcates_at_one_half():
    np.testing.assert_allclose(theory.latitude_circle(2.0, 0.40).sine_squared, 0.1834, atol=5e-5)
    np.testing.assert_allclose(theory.latitude_circle(2.0, 0.45).sine_squared, 0.0955, atol=5e-5)
    assert theory.latitude_circle(2.0, 0.5).sine_squared == 0.0
    assert theory.latitude_circle(2.0, 0.499).sine_squared < 3e-3
    found = theory.latitude_circle(3.0, 0.3, 0.2)
    slope = jax.grad(lambda s: theory.latitude_energy(s, 3.0, 0.3, 0.2))(found.sine_squared)
    np.testing.assert_allclose(slope, 0.0, atol=1e-12)
    np.testing.assert_allclose(found.energy, theory.latitude_energy(found.sine_squared, 3.0, 0.3, 0.2), rtol=1e-14)


def test_great_circle_thresholds():
    modes = {2: 1.7866, 3: 1.8102, 1: 2.4469, 4: 2.4839, 5: 3.3811}
    for mode, beta in modes.items():
        np.testing.assert_allclose(theory.great_circle_threshold(mode), beta, atol=5e-5)


def test_rates_are_second_derivatives_of_the_energy():
    """Along a displacement v of the great circle, d²E = rate·mean v² (for unit labels and ⟨v, v⟩_w)."""
    beta, offset, mode = 2.0, 0.2, 3
    h = kernel(beta, offset)
    shape = np.cos(mode * ANGLE)

    def bent(e):
        a = ANGLE + e * shape
        return mf.energy(h, jnp.stack([jnp.cos(a), jnp.sin(a)], axis=1), RHO)

    def lifted(e):
        x = jnp.concatenate([jnp.asarray(latitude(np.pi / 2)[:, :2]), e * shape[:, None]], axis=1)
        return mf.energy(h, mf.sphere.normalize(x), RHO)

    for fn, rate in ((bent, theory.in_plane_rate), (lifted, theory.out_of_plane_rate)):
        second = jax.grad(jax.grad(fn))(0.0)
        np.testing.assert_allclose(second, rate(mode, beta, offset) * np.mean(shape**2), rtol=1e-8)


def test_lift_threshold_is_where_the_latitude_circle_meets_the_great_circle():
    beta = theory.lift_threshold(0, 0.1)
    assert theory.latitude_circle(beta - 1e-3, 0.1).sine_squared == 1.0
    assert 0.99 < theory.latitude_circle(beta + 1e-3, 0.1).sine_squared < 1.0


def test_boundary_of_equal_energies():
    beta = jnp.array([0.5, 2.0, 5.0])
    offset = theory.dirac_circle_boundary(beta)
    for a, b in zip(offset, beta, strict=True):
        np.testing.assert_allclose(theory.dirac_energy(b, a), theory.great_circle_energy(b, a), rtol=1e-12)
