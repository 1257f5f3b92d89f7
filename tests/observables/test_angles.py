"""Pairwise-angle statistics against a direct evaluation of all pairs."""

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf
from meanfield import observables as ob


def direct(x, w):
    i, j = np.nonzero(~np.eye(len(x), dtype=bool))
    angle = np.arctan2(np.linalg.norm(np.cross(x[i], x[j]), axis=1), np.sum(x[i] * x[j], axis=1))
    mass = w[i] * w[j] / np.sum(w[i] * w[j])
    return angle, mass


def test_all_pairs_match_the_direct_sum():
    n = 150  # three row blocks, the last one padded
    x = np.array(mf.sphere.sample(jax.random.key(0), (n, 3)))
    w = np.array(jax.nn.softmax(jax.random.normal(jax.random.key(1), (n,))))
    w[5] = 0.0
    w /= w.sum()
    x[5] = [0.0, 0.0, 1.0]
    angle, mass = direct(x, w)
    found = ob.angle_statistics(x, w, bins=16)
    mean = np.dot(mass, angle)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.std, np.sqrt(np.dot(mass, (angle - mean) ** 2)), rtol=1e-10)
    np.testing.assert_allclose(found.minimum, angle[mass > 0].min(), rtol=1e-9)
    np.testing.assert_allclose(found.maximum, angle[mass > 0].max(), rtol=1e-9)
    density = np.histogram(angle, bins=found.edges, weights=mass, density=True)[0]
    np.testing.assert_allclose(found.density, density, rtol=1e-9, atol=1e-12)
    sampled = ob.angle_statistics(x, w, bins=16, pairs=20_000, key=jax.random.key(3))
    np.testing.assert_allclose(sampled.mean, found.mean, atol=4 * float(found.std) / np.sqrt(20_000))


def test_gradient_is_finite_at_coincident_tokens(precision):
    x = jnp.asarray(np.repeat(np.eye(3), 2, axis=0), precision)
    gradient = jax.grad(lambda x: ob.angle_statistics(x, bins=4).mean)(x)
    assert gradient.dtype == precision
    assert bool(jnp.isfinite(gradient).all())
