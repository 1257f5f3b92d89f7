"""Pre- and peri-norm tokens: what uniform attention conserves, and the scalar equations of the equiangular case."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield as mf

N = 5
RHO = mf.Marginal(jnp.zeros(N))
TS = np.array([0.0, 1.0, 4.0, 200.0, 400.0])
UNIFORM = 1e-30  # a β at which attention is uniform to rounding, without another compilation


def run(wrapper, v0, beta, ts=TS):
    return mf.flow(wrapper(mf.SA(mf.ExpDot(beta))), v0, RHO, jnp.asarray(ts), rtol=1e-10, atol=1e-12)


def scattered():
    """Tokens whose row norms, the radii at the start, differ."""
    return mf.sphere.sample(jax.random.key(0), (N, N)) * jnp.linspace(0.6, 1.7, N)[:, None]


@pytest.mark.parametrize("wrapper", [mf.PreNorm, mf.PeriNorm])
def test_uniform_attention_keeps_differences(wrapper):
    """Every token has the same drift, so v_i − v_j never changes; peri-norm moves at speed 1."""
    v0 = scattered()
    traj = run(wrapper, v0, UNIFORM)
    v = np.asarray(traj.x) * np.asarray(traj.radius)[:, :, None]
    np.testing.assert_allclose(v - v[:, :1], np.broadcast_to(v0 - v0[:1], v.shape), atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(traj.x, axis=-1), 1, atol=1e-14)
    np.testing.assert_allclose(traj.final, v[-1], atol=1e-10)
    assert traj.to_xarray()["radius"].shape == (len(TS), N)
    if wrapper is mf.PeriNorm:
        # far away all directions agree, and a further Δt adds Δt to every radius
        np.testing.assert_allclose(traj.radius[-1] - traj.radius[-2], 200.0, rtol=1e-4)
    first = run(wrapper, v0, UNIFORM, np.array([0.0, 0.1, 0.2, 0.5, 1.0]))
    again = run(wrapper, first, UNIFORM, TS[1] * np.array([1.0, 2.0, 3.0, 3.5, 4.0]))
    np.testing.assert_allclose(again.x[-1], traj.x[2], atol=1e-8)


def equiangular(t, state, beta, divide):
    """Rates of the radius and of r = ⟨θ_i, θ_j⟩: A_i = aθ_i + bΣ_{j≠i}θ_j, divided by ‖A‖ for peri-norm."""
    radius, r = state
    same, other, m = np.exp(beta), np.exp(beta * r), N - 1
    a, b = same / (same + m * other), other / (same + m * other)
    norm = np.sqrt(a * a + 2 * a * b * m * r + b * b * (m + m * (m - 1) * r)) if divide else 1.0
    return [(a + m * b * r) / norm, 2 * b * (1 - r) * (1 + m * r) / (radius * norm)]


@pytest.mark.parametrize("wrapper", [mf.PreNorm, mf.PeriNorm])
def test_equiangular_case(wrapper):
    """Against the scalar equations; 1 − r decays like t^{−2}, where post-norm decays like e^{−2t}."""
    beta = 1.5
    traj = run(wrapper, jnp.eye(N), beta)
    arguments = (beta, wrapper is mf.PeriNorm)
    exact = solve_ivp(equiangular, (0, TS[-1]), [1.0, 0.0], "DOP853", TS, args=arguments, rtol=1e-11, atol=1e-13)
    r = np.asarray(traj.x[:, 0] * traj.x[:, 3]).sum(-1)
    np.testing.assert_allclose(r, exact.y[1], atol=1e-8)
    np.testing.assert_allclose(traj.radius[:, 2], exact.y[0], rtol=1e-8)
    assert abs(np.log2((1 - r[3]) / (1 - r[4])) - 2) < 0.05


@pytest.mark.slow
def test_stops_on_collapse_of_directions():
    """The order parameter of the stop is that of directions, whatever the radii."""
    ts = jnp.array([0.0, 1e4])
    traj = mf.flow(mf.PreNorm(mf.SA(mf.Dot())), 5 * scattered(), RHO, ts, stop="collapse", stop_tolerance=1e-2)
    assert traj.ok and 0 < traj.t < 1e4
    assert 0.98 < jnp.linalg.norm(mf.sphere.normalize(traj.final).mean(0)) < 0.999


def test_refuses_what_has_no_drift():
    """Wrapping a radial dynamics again, or adding noise to it, is an error that says why."""
    x0 = mf.sphere.normalize(scattered())
    with pytest.raises(ValueError, match="drift"):
        mf.PreNorm(mf.PreNorm(mf.SA(mf.Dot()))).bind(RHO, N, x0.dtype, "auto")
    with pytest.raises(ValueError, match="sphere"):
        mf.Noisy(mf.PreNorm(mf.SA(mf.Dot())), 0.1, jax.random.key(0)).bind(RHO, N, x0.dtype, "auto")
