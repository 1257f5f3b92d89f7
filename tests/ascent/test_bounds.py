"""Upper bounds: above every configuration, exact where theory is, valid with weights, gauges and sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield.ascent import bounds, upper_bound
from meanfield.ascent.bounds.grid import pad, zonal_harmonics
from meanfield.ascent.bounds.problem import profile

from .cases import DIM, KERNELS, RHO, cosine, random_states, solved

METHODS = (bounds.termwise, bounds.parseval, bounds.sdp_dual, bounds.delsarte)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "name", ["cosine", "uneven", *(pytest.param(n, marks=pytest.mark.slow) for n in ("gauge", "sum"))]
)
def test_no_configuration_exceeds_a_bound(method, name):
    kernel, rho = KERNELS[name]
    states = random_states(9)
    energies = jax.vmap(lambda x: mf.energy(kernel, x, rho))(states)
    value = sum(method(part) for part in bounds.problems(kernel, rho, DIM, np.asarray(states[0])))
    assert value >= float(energies.max())


@pytest.mark.parametrize("method", METHODS)
def test_bounds_exceed_the_best_state_known(method):
    best = solved(2.0)
    (part,) = bounds.problems(cosine(2.0), RHO, DIM, np.asarray(best.x))
    assert method(part) >= float(best.energy)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("beta", [1.0, 2.0, 4.0, 6.0])
def test_ratio_to_the_best_energy_known(beta, dim):
    known = {1.0: 0.28257955, 2.0: 0.41122283, 4.0: 1.55818971, 6.0: 7.72317953}[beta]
    rho = mf.Marginal.circle(60)
    bound = upper_bound(cosine(beta), rho, dim, np.asarray(random_states(1, 60, dim)[0]))
    assert bound.method == "delsarte" and known < bound.value < 1.15 * known


def test_labels_rounded_to_single_precision_are_bounded_through_equispaced_ones():
    coarse = mf.Marginal(np.asarray(RHO.labels, np.float32))
    x = np.asarray(random_states(1)[0])
    (part,) = bounds.problems(cosine(2.0), coarse, DIM, x)
    np.testing.assert_allclose(part.positions, RHO.labels, atol=1e-14)
    assert 0 < part.slack < 1e-6 * part.scale
    found, exact = (upper_bound(cosine(2.0), rho, DIM, x).value for rho in (coarse, RHO))
    assert exact < found < exact * (1 + 1e-5)


EXACT = {
    "decay": (mf.Toeplitz(mf.ExponentialDecay(0.5), mf.ExpDot(2.0)), "dirac"),
    "cubic": (mf.Toeplitz(mf.Gaussian(0.5), mf.Zonal(lambda t: t**3)), "dirac"),
    "rope": (mf.RoPE(mf.ExpDot(3.0, 1.0), jnp.array([2.0])), "orbit"),
    "linear": (mf.Toeplitz(mf.Cosine(3.0), mf.Dot()), "circle"),
}


@pytest.mark.parametrize("name", EXACT)
def test_no_gap_where_theory_is_exact(name):
    kernel, state = EXACT[name]
    u = jnp.array([0.6, 0.0, 0.8])
    angle = 3 * RHO.labels
    x = {
        "dirac": jnp.broadcast_to(u, (RHO.n, 3)),
        "orbit": mf.theory.rope_orbit(u, RHO, jnp.array([2.0])),
        "circle": jnp.stack([jnp.cos(angle), jnp.sin(angle), 0 * angle], axis=1),
    }[state]
    energy = float(mf.energy(kernel, x, RHO))
    bound = upper_bound(kernel, RHO, 3, np.asarray(x), effort="cheap")
    assert energy <= bound.value <= energy * (1 + 1e-7)


@pytest.mark.slow
def test_sdp_dual_is_exact_for_weighted_linear_kernels():
    rho = mf.Marginal(jnp.linspace(0.0, 2.0, 12), jnp.arange(1.0, 13) / 78)
    kernel = mf.Toeplitz(mf.Cosine(2.0, 0.1), mf.Dot())
    best = mf.ascend(kernel, rho, 3, jax.random.key(0), restarts=4)
    (part,) = bounds.problems(kernel, rho, 3, np.asarray(best.x))
    np.testing.assert_allclose(bounds.sdp_dual(part), best.energy, rtol=1e-7)
    assert best.gap < 1e-6 * best.energy < bounds.termwise(part) - float(best.energy)


def test_profiles_majorise():
    theta = np.linspace(0, np.pi, 2001)
    for zonal in (mf.ExpDot(3.0, 0.2), mf.Zonal(lambda t: jnp.sin(4 * t)), mf.Dot()):
        shape = profile(zonal)
        values = shape.phi(np.cos(theta))
        second = np.diff(values, 2) / np.diff(theta)[0] ** 2
        assert np.abs(second).max() <= shape.bend * (1 + 1e-3) and np.abs(values).max() <= shape.size * (1 + 1e-12)
        coarse = shape.phi(np.cos(np.linspace(0, np.pi, 33))).max() + pad(shape.bend, 32)
        assert coarse >= values.max()
    assert profile(mf.ExpDot(3.0)).monotone and not profile(mf.Zonal(lambda t: jnp.sin(4 * t))).monotone


@pytest.mark.parametrize("dim", [2, 3, 5])
def test_zonal_harmonics_are_positive_definite(dim):
    x = random_states(1, 12, dim)[0]
    p = zonal_harmonics(6, dim, np.asarray(x @ x.T))
    np.testing.assert_allclose(np.diagonal(p, axis1=1, axis2=2), 1.0, atol=1e-12)
    assert min(np.linalg.eigvalsh(m)[0] for m in p) > -1e-12


def test_what_cannot_be_proved_is_infinite_with_the_reason():
    kernel, rho = KERNELS["pair"]
    bound = upper_bound(kernel, rho, DIM, np.asarray(random_states(1)[0]))
    assert bound.value == np.inf and "not zonal" in bound.reason
    with pytest.raises(ValueError, match="effort='best'"):
        upper_bound(cosine(), RHO, DIM, np.asarray(random_states(1)[0]), effort="best")
