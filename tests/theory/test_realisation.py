"""Exact realisation of laws: orbits, gauges, samples, maps (theory.md 2)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield import theory


def test_rope_orbit_is_a_maximiser(precision):
    rho = mf.Marginal.interval(7, -2.0, 3.0)
    u = mf.sphere.sample(jax.random.key(0), (5,))
    x = theory.rope_orbit(u, rho, jnp.array([0.7, 2.0]))
    assert x.dtype == precision
    rope = mf.RoPE(mf.ExpDot(1.5), jnp.array([0.7, 2.0]))
    rtol = 1e-12 if precision == np.float64 else 1e-5
    np.testing.assert_allclose(mf.energy(rope, x, rho), np.exp(1.5) / 3, rtol=rtol)
    np.testing.assert_allclose(x[0], rope.unrotate(rho.labels[0], u), atol=1e-6)


def test_realize_gauge_at_poles_and_near_them():
    u = jnp.array([0.0, 0.6, 0.8])
    near = mf.sphere.normalize(jnp.stack([u, -u, u + 1e-9, -u + 1e-9, jnp.array([1.0, 1e-9, 0.0])]))
    Q = theory.realize_gauge(near, u)
    np.testing.assert_allclose(jnp.einsum("nij,nkj->nik", Q, Q), jnp.broadcast_to(jnp.eye(3), (5, 3, 3)), atol=1e-14)
    np.testing.assert_allclose(jnp.einsum("nij,nj->ni", Q, near), jnp.broadcast_to(u, (5, 3)), atol=1e-14)
    with pytest.raises(ValueError, match="not unit"):
        theory.realize_gauge(2 * near, u)
    with pytest.raises(ValueError, match="2 coordinates"):
        theory.realize_gauge(near, jnp.array([1.0, 0.0]))


def test_samples_become_the_maximiser_and_the_flow_stays():
    samples = mf.sphere.sample(jax.random.key(1), (20, 3))
    made = theory.realize_law(samples)
    np.testing.assert_allclose(mf.energy(made.kernel, made.x, made.rho), np.e / 2, rtol=1e-13)
    start = mf.sphere.normalize(samples + 1e-2 * jax.random.normal(jax.random.key(2), samples.shape))
    traj = mf.flow(mf.USA(made.kernel), start, made.rho, jnp.array([0.0, 40.0]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(traj.energy[-1], np.e / 2, rtol=1e-8)
    assert float(jnp.max(mf.sphere.distance(traj.x[-1], samples))) < 0.02  # near where it started
    random = mf.sphere.sample(jax.random.key(3), (20, 3))
    end = mf.flow(mf.USA(made.kernel), random, made.rho, jnp.array([0.0, 60.0]), rtol=1e-8, atol=1e-10).x[-1]
    frames = jax.vmap(made.kernel.map)(made.rho.labels)
    rotated = jnp.einsum("nij,nj->ni", frames, end)  # one point in the gauged frame: the law up to a rotation there
    np.testing.assert_allclose(rotated, jnp.broadcast_to(rotated[0], rotated.shape), atol=1e-5)


@pytest.mark.slow
def test_in_the_plane_random_starts_reach_the_law_up_to_one_rotation():
    samples = mf.sphere.normalize(jnp.array([1.0, 0.3]) + mf.sphere.sample(jax.random.key(1), (12, 2)))
    made = theory.realize_law(samples)
    start = mf.sphere.sample(jax.random.key(3), (12, 2))
    end = mf.flow(mf.USA(made.kernel), start, made.rho, jnp.array([0.0, 80.0]), rtol=1e-8, atol=1e-10).final
    left, _, right = np.linalg.svd(end.T @ samples)
    turn = left @ right
    np.testing.assert_allclose(end, samples @ turn.T, atol=1e-5)
    np.testing.assert_allclose(np.linalg.det(turn), 1.0, rtol=1e-12)
    assert np.abs(turn - np.eye(2)).max() > 0.1


@pytest.mark.slow
def test_an_anchored_law_is_reached_itself():
    samples = mf.sphere.sample(jax.random.key(1), (12, 3))
    made = theory.anchored(theory.realize_law(samples), 0.2)
    np.testing.assert_allclose(mf.energy(made.kernel, made.x, made.rho), np.e / 2 + 0.4, rtol=1e-13)
    start = mf.sphere.sample(jax.random.key(3), (12, 3))
    end = mf.flow(mf.USA(made.kernel), start, made.rho, jnp.array([0.0, 60.0]), rtol=1e-8, atol=1e-10).final
    np.testing.assert_allclose(end, samples, atol=1e-6)
    with pytest.raises(ValueError, match="no TargetGauge"):
        theory.anchored(made)


def test_a_map_of_prompts_is_realised_and_keeps_its_parameters():
    prompts = jnp.linspace(-1, 1, 9)

    def curve(a, p):
        return jnp.stack([jnp.cos(a * p), jnp.sin(a * p), p])

    made = theory.realize_law(jax.tree_util.Partial(curve, jnp.array(2.0)), prompts)
    np.testing.assert_allclose(made.x[3], mf.sphere.normalize(curve(2.0, prompts[3])), rtol=1e-14)
    np.testing.assert_allclose(mf.energy(made.kernel, made.x, made.rho), np.e / 2, rtol=1e-13)
    assert any(np.array_equal(leaf, 2.0) for leaf in jax.tree.leaves(made.kernel))
    with pytest.raises(ValueError, match="prompts is None"):
        theory.realize_law(lambda p: p)


def test_orbit_density_is_realised():
    u = jnp.array([0.6, 0.0, 0.8])
    made = theory.realize_orbit(lambda a: jnp.exp(2 * jnp.cos(a - 1)), u, n=100, frequency=0.5)
    np.testing.assert_allclose(mf.energy(made.kernel, made.x, made.rho), np.e / 2, rtol=1e-12)
    angles = -np.arctan2(made.x[:, 1], made.x[:, 0])  # Rᵀ turns clockwise
    np.testing.assert_allclose(np.mean(np.cos(angles - 1)), 0.697775, atol=2e-3)  # I_1(2)/I_0(2)
    assert 0 < made.distance < 2 * np.pi / 100
    with pytest.raises(ValueError, match="not a density"):
        theory.realize_orbit(lambda a: jnp.cos(a), u)


def test_circle_distance():
    a = np.array([0.1, 6.2])
    np.testing.assert_allclose(theory.circle_distance(a, a + 2 * np.pi), 0.0, atol=1e-12)
    np.testing.assert_allclose(theory.circle_distance(a, a + 0.3), 0.3, rtol=1e-12)
    np.testing.assert_allclose(theory.circle_distance(np.array([0.0]), np.array([np.pi])), np.pi, rtol=1e-12)
