"""Learnable gauges stay orthogonal, profiles keep their shape, marginals stay on the simplex; all have finite gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import meanfield as mf
from meanfield import design
from meanfield.design.gauges import generator

GAUGES = {
    "mlp": (design.MLPGauge(3, width=8, depth=1), 0.7),
    "mlp cayley harmonics": (design.MLPGauge(4, width=8, depth=2, harmonics=2, map="cayley"), 0.7),
    "table": (design.TableGauge(5, 3, scale=2.0), 3),
    "rope": (design.MultiRoPE(5, (1.0, 2.5), scale=1.0), 0.7),
}


@pytest.mark.parametrize("name", GAUGES)
def test_gauges_are_special_orthogonal_with_finite_gradients(name, precision):
    module, label = GAUGES[name]
    label = jnp.asarray(label, precision if isinstance(label, float) else jnp.int32)
    variables = module.init(jax.random.key(0), label)
    q = module.apply(variables, label)
    tolerance = 100 * jnp.finfo(precision).eps
    assert q.dtype == precision and abs(float(jnp.linalg.det(q)) - 1) < tolerance
    np.testing.assert_allclose(q @ q.T, np.eye(module.dim), atol=tolerance)
    gradient = jax.grad(lambda v: module.apply(v, label)[0, 1])(variables)
    leaves = jax.tree.leaves(gradient)
    assert all(np.isfinite(g).all() for g in leaves) and any(np.abs(g).max() > 1e-6 for g in leaves)


def test_rotations_are_those_of_scipy_and_cayley_agrees_to_second_order():
    entries = np.array([0.3, -1.2, 2.0])
    skew = generator(jnp.asarray(entries), 3)
    np.testing.assert_array_equal(skew, [[0, 0.3, -1.2], [-0.3, 0, 2.0], [1.2, -2.0, 0]])
    np.testing.assert_allclose(design.rotation(skew), scipy.linalg.expm(np.asarray(skew)), atol=1e-12)
    gap = [np.abs(design.rotation(skew * h) - design.rotation(skew * h, "cayley")).max() for h in (1e-2, 5e-3)]
    assert gap[0] / gap[1] == pytest.approx(8.0, rel=0.01)
    with pytest.raises(ValueError, match="map='qr'"):
        design.rotation(skew, "qr")


def test_multirope_without_change_of_basis_is_rope():
    module = design.MultiRoPE(5, (1.0, 2.5), scale=0.0)
    x, y = mf.sphere.sample(jax.random.key(1), (2, 5))
    learned = mf.Gauge(mf.ExpDot(1.3), module.bind(module.init(jax.random.key(0), 0.0)))
    fixed = mf.RoPE(mf.ExpDot(1.3), jnp.array([1.0, 2.5]))
    args = (x, jnp.asarray(0.4), y, jnp.asarray(-1.1))
    np.testing.assert_allclose(learned(*args), fixed(*args), rtol=1e-12)
    with pytest.raises(ValueError, match="frequencies has 3 entries for dim=5"):
        design.MultiRoPE(5, (1.0, 2.0, 3.0)).init(jax.random.key(0), 0.0)


def test_a_learned_gauge_has_the_energy_of_its_orbit():
    """theory.md 2: x_i = Q_iᵀu has energy φ(1)/2, whatever the parameters."""
    module = design.MLPGauge(3, width=8, harmonics=1)
    rho, u = mf.Marginal.circle(6), jnp.array([0.0, 0.6, 0.8])
    variables = module.init(jax.random.key(0), rho.labels[0])
    q = jax.vmap(lambda xi: module.apply(variables, xi))(rho.labels)
    energy = mf.energy(mf.Gauge(mf.ExpDot(2.0), module.bind(variables)), jnp.einsum("nij,i->nj", q, u), rho)
    np.testing.assert_allclose(energy, np.exp(2.0) / 4, rtol=1e-12)


def test_a_fourier_profile_is_its_series(precision):
    profile = design.FourierProfile(jnp.array([0.5, -1.0, 0.25], precision), frequency=1.5)
    tau = np.array([0.7, -0.7, 2.0], precision)
    expected = 0.5 - np.cos(1.5 * tau) + 0.25 * np.cos(3.0 * tau)
    assert profile(tau).dtype == precision
    np.testing.assert_allclose(profile(tau), expected, rtol=1e-5)


def test_a_monotone_spline_falls_smoothly_to_its_floor(precision):
    profile = design.MonotoneSpline(jnp.array([-1.0, 2.0, 0.3, -4.0], precision), reach=3.0, floor=0.2)
    tau = np.linspace(0, 4, 401).astype(precision)
    g = np.asarray(profile(tau))
    assert np.all(np.diff(g) <= 1e-6) and g[tau >= 3.0] == pytest.approx(0.2, abs=1e-6)
    assert g[0] == pytest.approx(0.2 + np.log1p(np.exp([-1.0, 2.0, 0.3, -4.0])).sum(), rel=1e-5)
    np.testing.assert_array_equal(profile(-tau), g)
    bend = np.diff(g, 2) / 1e-4  # bounded and continuous: a kink would be of size 1/step
    assert np.abs(bend).max() < 20 * 8


def test_equal_coefficients_give_a_straight_line_inside():
    profile = design.MonotoneSpline(jnp.zeros(8), reach=5.0)
    tau = jnp.linspace(1.0, 4.0, 31)  # three supports overlap on [1, 4]
    np.testing.assert_allclose(jax.vmap(jax.grad(profile))(tau), -np.log(2.0) * 2, rtol=1e-10)


def test_profiles_enter_a_kernel_as_parameters():
    rho, x = mf.Marginal.circle(5), mf.sphere.sample(jax.random.key(2), (5, 3))
    for profile in (design.FourierProfile([0.1, 1.0]), design.MonotoneSpline([0.0, 1.0], reach=6.0)):
        gradient = jax.grad(lambda p: mf.energy(mf.Toeplitz(p, mf.ExpDot(1.0)), x, rho))(profile)
        assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradient))
        assert np.abs(jax.tree.leaves(gradient)[0]).max() > 1e-3


def test_a_free_marginal_stays_a_probability():
    free = design.FreeMarginal(jnp.array([0.0, 1.0, 3.0]), jnp.array([0.2, 0.3, 0.5]))
    np.testing.assert_allclose(free().weights, [0.2, 0.3, 0.5], rtol=1e-12)
    gradient = jax.grad(lambda f: f().weights @ f().labels ** 2)(free)
    np.testing.assert_allclose(gradient.logits.sum(), 0.0, atol=1e-12)
    np.testing.assert_allclose(gradient.labels, 2 * np.array([0.0, 0.3, 1.5]))
    with pytest.raises(ValueError, match="positive at the start"):
        design.FreeMarginal(jnp.zeros(2), jnp.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: design.FourierProfile(jnp.ones((1, 1))), "coefficients"),
        (lambda: design.MonotoneSpline(jnp.zeros(0), 1.0), "slopes"),
        (lambda: design.MonotoneSpline([1.0], -1.0), "reach=-1"),
    ],
)
def test_bad_profiles_are_named(make, match, as_user):
    with pytest.raises(ValueError, match=match):
        make()
