"""The engine under every method: monotone energy, stopping reasons, fixed points."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield.ascent import LBFGS, GradientAscent, Newton, PowerStep, bind, climb, search
from meanfield.ascent.engine import BUDGET, CONVERGED, evaluate, stopping
from meanfield.ascent.methods import Trial

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


def two_loops(pairs, g, inner):
    """The recursion that the compact form equals: pairs (s, y), oldest first."""
    q, coefficients = g, []
    for s, y in reversed(pairs):
        coefficients.append(inner(s, q) / inner(s, y))
        q = q - coefficients[-1] * y
    s, y = pairs[-1]
    r = inner(s, y) / inner(y, y) * q
    for (s, y), a in zip(pairs, reversed(coefficients), strict=True):
        r = r + s * (a - inner(y, r) / inner(s, y))
    return r


def test_quasi_newton_direction_is_the_two_loop_recursion():
    """Also where the ring has come round, and after trials that were not accepted; a restart forgets the pairs."""
    landscape = bind(mf.Dot(), RHO, None, DIM, jnp.float64)
    points = [evaluate(landscape, x) for x in random_states(8, seed=1)]
    method, pairs, memory = LBFGS(memory=3), [], LBFGS(memory=3).init(points[0])
    np.testing.assert_allclose(
        method.direction(landscape, points[0], memory), points[0].gradient / landscape.norm(points[0].force), rtol=1e-12
    )

    @jax.jit
    def step(trial, memory):
        memory = method.update(landscape, trial, memory)
        return memory, method.direction(landscape, trial.new, memory)

    for number, (old, new) in enumerate(zip(points, points[1:], strict=False)):
        change = landscape.gradient(new.x, old.gradient) - new.gradient
        move = change + 0.1 * landscape.gradient(new.x, random_states(1, seed=20 + number)[0])  # positive curvature
        accepted = number != 2
        memory, direction = step(Trial(old, new, move, jnp.asarray(accepted)), memory)
        pairs = [*pairs, (landscape.gradient(new.x, move), change)][-3:] if accepted else pairs
        expected = landscape.gradient(new.x, two_loops(pairs, new.gradient, landscape.inner))
        np.testing.assert_allclose(direction, expected, atol=1e-10 * jnp.abs(expected).max())
    forgotten = method.restart(new, memory, jnp.asarray(True))
    plain = new.gradient / landscape.norm(new.force)
    np.testing.assert_allclose(method.direction(landscape, new, forgotten), plain, rtol=1e-12)


def test_threads_change_nothing(monkeypatch):
    """Five restarts in groups of two, the last filled up, under a local setting: those of one program."""
    x0 = random_states(5, seed=2).astype(jnp.float32)
    run = lambda: search.ascend_starts(
        mf.ExpDot(1.5), mf.Marginal.circle(24), None, x0, *search.schedule(5, False, 40, x0.dtype), LBFGS(), None
    )
    with jax.enable_x64(False):
        monkeypatch.setattr(search, "_threads", lambda x0: 1)
        together = run()
        monkeypatch.setattr(search, "_threads", lambda x0: 3)
        apart = run()
    for one, other in zip(together, apart, strict=True):
        assert one.shape[0] == 5 and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
