"""Cluster counts against SciPy's single linkage and planted clusters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

import meanfield as mf
from meanfield import observables as ob


def cloud(seed, n, d, spread=0.2, centres=5):
    key, other = jax.random.split(jax.random.key(seed))
    points = mf.sphere.sample(key, (centres, d))[jnp.arange(n) % centres]
    return np.asarray(mf.sphere.normalize(points + spread * jax.random.normal(other, (n, d))))


@pytest.mark.parametrize(("n", "d"), [(2, 2), (40, 2), (97, 3), (64, 8)])
def test_merge_angles_are_single_linkage(n, d):
    x = cloud(n, n, d)
    chords = np.sort(linkage(x, "single")[:, 2])
    np.testing.assert_allclose(ob.merge_angles(x), 2 * np.arcsin(chords / 2), rtol=1e-12, atol=1e-14)


def test_ties_and_coincident_tokens():
    square = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    x = np.repeat(square, 9, axis=0)
    heights = ob.merge_angles(x)
    np.testing.assert_allclose(heights, [0.0] * 32 + [np.pi / 2] * 3, atol=1e-12)
    np.testing.assert_array_equal(ob.count_clusters(x, (1e-6, 1.0, 1.6)), [4, 4, 1])
    labels = ob.cluster_labels(x, 0.1)
    np.testing.assert_array_equal(labels, np.repeat([0, 1, 2, 3], 9))


def test_counts_depend_on_the_tolerance_and_batch():
    angles = np.array([0.0, 1e-7, 1e-5, 1e-3, 0.5])
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    np.testing.assert_array_equal(ob.count_clusters(x, (1e-8, 1e-6, 1e-4, 1e-2, 1.0)), [5, 4, 3, 2, 1])
    both = np.stack([x, np.tile(x[:1], (5, 1))])
    np.testing.assert_array_equal(ob.count_clusters(both, (1e-6, 1.0)), [[4, 1], [1, 1]])
    assert ob.count_clusters(x, 1e-4) == 3


def test_counts_inside_jit_and_vmap_mark_what_is_not_finite():
    x = jnp.asarray(np.stack([cloud(1, 12, 3), cloud(2, 12, 3)])).at[1, 3, 0].set(jnp.nan)
    counts = jax.jit(jax.vmap(lambda c: ob.count_clusters(c, (1e-9, 3.0))))(x)
    np.testing.assert_array_equal(counts, [[12, 1], [-1, -1]])


@pytest.mark.parametrize("tolerance", [0.0, -1.0, 4.0, np.nan])
def test_bad_tolerances_are_refused(tolerance):
    with pytest.raises(ValueError, match="tolerances"):
        ob.count_clusters(np.eye(3), tolerance)


@pytest.mark.slow
def test_a_million_tokens_need_no_pair_matrix():
    x = cloud(7, 1_000_000, 3, spread=1e-3, centres=50)
    assert ob.count_clusters(x, (0.02,))[0] == 50
