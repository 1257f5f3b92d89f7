"""The engine under every method: monotone energy, stopping reasons, fixed points."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield.ascent import LBFGS, GradientAscent, Newton, PowerStep, bind, climb
from meanfield.ascent.engine import BUDGET, CONVERGED, stopping

from .cases import DIM, RHO, cosine, random_states

METHODS = {"gradient": GradientAscent(), "power": PowerStep(), "lbfgs": LBFGS(memory=5), "newton": Newton(solves=40)}


@eqx.filter_jit
def run(method, x0, budget, rho=RHO):
    landscape = bind(cosine(), rho, None, DIM, x0.dtype)
    return climb(landscape, x0, method, stopping(x0.dtype, budget)), landscape


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n == "lbfgs" else pytest.mark.slow) for n in METHODS])
def test_energy_never_decreases_and_the_ascent_converges(name):
    x0 = random_states(1, seed=3)[0]
    energies = []
    for budget in (*range(24), 4000):
        ascent, landscape = run(METHODS[name], x0, jnp.asarray(budget))
        energies.append(float(ascent.point.energy))
        np.testing.assert_allclose(jnp.linalg.norm(ascent.point.x, axis=1), 1.0, atol=1e-14)
    assert np.all(np.diff(energies) >= -4e-16) and energies[5] > energies[0]
    assert int(ascent.status) == CONVERGED
    assert landscape.norm(ascent.point.gradient) < 1e-8 * landscape.norm(ascent.point.force)
    assert int(run(METHODS[name], x0, jnp.asarray(3))[0].status) == BUDGET
    again, _ = run(METHODS[name], ascent.point.x, jnp.asarray(100))
    assert int(again.iterations) == 0 and np.array_equal(again.point.x, ascent.point.x)


@pytest.mark.slow
def test_power_step_is_normalise_of_the_force():
    x = random_states(1)[0]
    landscape = bind(mf.ExpDot(1.5), RHO, None, DIM, x.dtype)
    _, force = landscape(x)
    ascent = climb(landscape, x, PowerStep(), stopping(x.dtype, 1))
    radial = jnp.sum(x * force, axis=1) > 0.1 * jnp.linalg.norm(force, axis=1)
    moved = mf.sphere.distance(ascent.point.x, x)
    target = mf.sphere.normalize(x + mf.sphere.project(x, force) / jnp.sum(x * force, axis=1)[:, None])
    along = mf.sphere.distance(target, x)
    assert radial.any() and float(jnp.max(moved)) <= 0.1 + 1e-12  # the first move is short
    ratio = jnp.tan(moved) / jnp.tan(along)
    np.testing.assert_allclose(ratio[radial], ratio[radial][0], rtol=1e-6)


@pytest.mark.slow
def test_tokens_without_weight_stay_and_do_not_count():
    weights = jnp.concatenate([jnp.zeros(4), jnp.full(20, 0.05)])
    x0 = random_states(1, seed=3)[0]
    ascent, _ = run(METHODS["lbfgs"], x0, jnp.asarray(500), mf.Marginal(RHO.labels, weights))
    np.testing.assert_array_equal(ascent.point.x[:4], x0[:4])
    alone = bind(cosine(), mf.Marginal(RHO.labels[4:], weights[4:]), None, DIM, x0.dtype)
    np.testing.assert_allclose(ascent.point.energy, alone(ascent.point.x[4:])[0], rtol=1e-13)
    assert int(ascent.status) == CONVERGED
