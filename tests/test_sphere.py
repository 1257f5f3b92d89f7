"""Geometry of S^{d-1}: identities, edge cases, gradients at singular points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

sphere = mf.sphere


def test_exp_and_log_are_inverse(precision):
    x, y = sphere.sample(jax.random.key(0), (2, 50, 4), precision)
    tolerance = 50 * np.finfo(precision).eps
    np.testing.assert_allclose(sphere.exp(x, sphere.log(x, y)), y, atol=tolerance)
    np.testing.assert_allclose(jnp.linalg.norm(sphere.log(x, y), axis=-1), sphere.distance(x, y), rtol=1e-3)
    assert sphere.log(x, y).dtype == precision


def test_distance_at_its_ends(precision):
    x = sphere.sample(jax.random.key(1), (2000, 3), precision)
    assert bool(jnp.all(sphere.distance(x, x) == 0))
    np.testing.assert_allclose(sphere.distance(x, -x), np.pi, rtol=1e-6)
    angle = jnp.asarray(1e-4, precision)
    e = jnp.eye(3, dtype=precision)
    y = jnp.cos(angle) * e[0] + jnp.sin(angle) * e[1]
    np.testing.assert_allclose(sphere.distance(e[0], y), 1e-4, rtol=1e-5)


def test_gradients_at_coincident_and_antipodal_points():
    x = sphere.sample(jax.random.key(2), (3,))
    for y in (x, -x):
        assert np.isfinite(jax.grad(sphere.distance)(x, y)).all()
    assert np.isfinite(jax.grad(lambda v: sphere.exp(x, v)[0])(jnp.zeros(3))).all()
    assert np.isfinite(jax.grad(lambda y: sphere.log(x, y)[0])(x)).all()


def test_projection_is_tangent():
    x = sphere.sample(jax.random.key(3), (20, 5))
    v = jax.random.normal(jax.random.key(4), (20, 5))
    p = sphere.project(x, v)
    np.testing.assert_allclose(jnp.sum(p * x, axis=-1), 0, atol=1e-15)
    np.testing.assert_allclose(sphere.project(x, p), p, atol=1e-15)


def test_normalize_handles_any_scale_and_refuses_zero():
    x = sphere.sample(jax.random.key(5), (6, 3))
    for scale in (1e-200, 1e-30, 1e200):
        np.testing.assert_allclose(sphere.normalize(scale * x), x, rtol=1e-14)
    with pytest.raises(ValueError, match="zero rows 2"):
        sphere.normalize(x.at[2].set(0))
    assert bool(jnp.isnan(jax.jit(sphere.normalize)(x.at[2].set(0))[2]).all())


def test_antipodal_log_is_an_error():
    x = sphere.sample(jax.random.key(6), (3,))
    with pytest.raises(ValueError, match="antipodal"):
        sphere.log(x, -x)


def test_samples_are_uniform():
    x = sphere.sample(jax.random.key(7), (40_000, 3))
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(x.T @ x / len(x), np.eye(3) / 3, atol=0.01)


def test_float64_asked_without_x64_is_refused():
    with jax.enable_x64(False):
        with pytest.raises(ValueError, match="jax_enable_x64"):
            sphere.sample(jax.random.key(0), (3, 3), np.float64)
        with pytest.raises(ValueError, match="float32"):
            sphere.normalize(np.ones((2, 3)))
