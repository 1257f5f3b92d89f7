"""mf.law: mass, energy, growth rates of theory.md 1.6, gauges, and the limit of tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf


def bump(theta, label):
    return 1 + 0.5 * jnp.cos(theta - label) + 0.2 * jnp.sin(2 * theta)


@pytest.mark.parametrize("make", [mf.USA, mf.SA])
def test_growth_rates_of_the_uniform_law(make):
    """Degree l grows at l² λ_l/β (SA: over λ_0)."""
    beta, rho, ts = 3.0, mf.Marginal(np.zeros(1)), np.linspace(0, 0.3, 4)
    degrees = np.array([1, 2, 3])
    small = 1e-5
    start = lambda theta, label: 1 + small * sum(jnp.cos(k * theta + k) for k in (1, 2, 3))
    found = mf.law(make(mf.ExpDot(beta)), start, rho, ts, grid=128, rtol=1e-9, atol=1e-13)
    hat = np.abs(np.fft.rfft(found.density[:, 0], axis=1))[:, degrees]
    rates = np.log(hat[-1] / hat[0]) / ts[-1]
    np.testing.assert_allclose(rates, mf.theory.growth_rates(beta, 2, degrees, softmax=make is mf.SA), rtol=1e-3)


def test_mass_is_conserved_and_energy_grows():
    kernel = mf.Toeplitz(mf.Cosine(1.0, offset=0.4), mf.ExpDot(2.0)) + 0.3 * mf.RoPE(mf.ExpDot(1.0), jnp.array([1.0]))
    rho = mf.Marginal(np.array([0.2, 1.0, 2.5]), np.array([0.2, 0.5, 0.3]))
    found = mf.law(mf.USA(kernel), bump, rho, np.linspace(0, 0.8, 5))
    assert bool(found.resolved.all())
    mass = found.density.mean(axis=2) * 2 * np.pi
    np.testing.assert_allclose(mass, 1, atol=1e-12)
    assert (np.diff(found.energy) > 0).all()


@pytest.mark.parametrize("make", [mf.USA, mf.SA])
def test_velocity_is_that_of_many_tokens(make):
    """Tokens at equispaced quantiles feel the limit's velocity: the energies agree beyond the sampling error."""
    kernel = mf.Toeplitz(mf.ExponentialDecay(0.5), mf.RoPE(mf.ExpDot(2.0), jnp.array([0.7])))
    labels, per = np.array([0.0, 1.1]), 400
    nodes = mf.Marginal(labels)
    ts = np.array([0.0, 0.5])
    limit = mf.law(make(kernel, causal=True), bump, nodes, ts)
    fine = np.linspace(0, 2 * np.pi, 20001)
    angles = []
    for label in labels:
        cumulative = np.concatenate([[0], np.cumsum((bump(fine, label)[1:] + bump(fine, label)[:-1]) / 2)])
        angles.append(np.interp((np.arange(per) + 0.5) / per, cumulative / cumulative[-1], fine))
    angles = np.concatenate(angles)
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    traj = mf.flow(make(kernel, causal=True), x, mf.Marginal(np.repeat(labels, per)), ts, rtol=1e-8)
    np.testing.assert_allclose(traj.energy, limit.energy, rtol=1e-4)
    np.testing.assert_allclose(traj.order, limit.order, rtol=1e-3)


def test_gauge_conjugation_and_reflections():
    """A reflected frame gives the reflected law."""
    rho, ts = mf.Marginal(np.array([0.4])), np.array([0.0, 0.5])
    flip = mf.Gauge(mf.ExpDot(2.0), lambda label: jnp.array([[1.0, 0.0], [0.0, -1.0]]))
    plain = mf.law(mf.USA(mf.ExpDot(2.0)), bump, rho, ts)
    np.testing.assert_allclose(mf.law(mf.USA(flip), bump, rho, ts).density, plain.density, atol=1e-9)


def test_refusals():
    rho, ts = mf.Marginal(np.zeros(1)), np.array([0.0, 1.0])
    with pytest.raises(ValueError, match="larger grid"):
        mf.law(mf.USA(mf.ExpDot(200.0)), bump, rho, ts, grid=64)
    with pytest.raises(ValueError, match="negative"):
        mf.law(mf.USA(mf.ExpDot(1.0)), lambda theta, label: jnp.cos(theta), rho, ts)
    with pytest.raises(ValueError, match="zonal up to gauges"):
        mf.law(mf.USA(mf.Pair(lambda x, xi, y, zeta: x @ y)), bump, rho, ts)


def test_a_law_sharper_than_the_grid_is_nan():
    found = mf.law(mf.USA(mf.ExpDot(1.0)), bump, mf.Marginal(np.zeros(1)), np.array([0.0, 0.5, 40.0]), grid=64)
    assert bool(found.resolved[0]) and not bool(found.resolved[-1])
    assert np.isnan(found.density[-1]).all() and jax.numpy.isnan(found.energy[-1])
