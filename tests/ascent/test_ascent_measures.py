"""Conditional Diracisation: shown, and where it fails (theory.md 2)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield.ascent import ascend_measures

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_convex_self_term_gives_one_atom_per_label(n):
    kernel = mf.Toeplitz(mf.Cosine(1.0, 0.3), mf.ExpDot(1.5))
    rho = mf.Marginal.circle(n)
    found = ascend_measures(kernel, rho, 3, jax.random.key(0), atoms=3, restarts=6)
    assert float(found.dispersion.max()) < 1e-6
    if n == 1:
        np.testing.assert_allclose(found.energy, 1.3 * np.exp(1.5) / 3, rtol=1e-10)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0, rtol=1e-12)


def test_repulsion_on_one_label_spreads():
    found = ascend_measures(-mf.Dot(), mf.Marginal(jnp.zeros(1)), 3, jax.random.key(0), atoms=3, restarts=4)
    np.testing.assert_allclose(found.energy, 0.0, atol=1e-8)  # any Dirac has −½
    assert float(found.dispersion[0]) > 0.99


@pytest.mark.slow
def test_what_repulsion_gains_falls_like_the_self_term():
    """Labels that feel only themselves: Diracs have −1/(2n), measures 0, a gain of exactly ½ Σ w_i²."""
    n = 4
    kernel = mf.Toeplitz(mf.Gaussian(0.01), -mf.Dot())
    rho = mf.Marginal.positions(n)
    found = ascend_measures(kernel, rho, 2, jax.random.key(0), atoms=3, restarts=6)
    dirac = mf.energy(kernel, jnp.tile(jnp.array([1.0, 0.0]), (n, 1)), rho)
    np.testing.assert_allclose([dirac, found.energy], [-0.5 / n, 0.0], atol=1e-8)
