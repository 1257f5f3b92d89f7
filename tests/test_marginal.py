"""The auxiliary marginal: constructors, composite labels, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf


def test_constructors():
    np.testing.assert_allclose(mf.Marginal.circle(8).labels, 2 * np.pi * np.arange(8) / 8)
    np.testing.assert_allclose(mf.Marginal.interval(5, -1.0, 3.0).labels, [-1, 0, 1, 2, 3])
    positions = mf.Marginal.positions(4)
    assert jnp.issubdtype(positions.labels.dtype, jnp.integer)
    np.testing.assert_allclose(positions.weights, 0.25)
    drawn = mf.Marginal.sample(jax.random.key(0), 6, lambda key, n: jax.random.normal(key, (n, 2)))
    assert drawn.labels.shape == (6, 2) and drawn.n == 6


def test_composite_labels():
    rho = mf.Marginal({"position": np.arange(5), "prompt": np.ones((5, 2))}, np.array([0.1, 0.2, 0.3, 0.4, 0.0]))
    assert rho.n == 5 and jax.tree.leaves(rho.labels)[1].shape == (5, 2)


@pytest.mark.parametrize(
    "labels, weights, message",
    [
        (np.zeros(3), np.array([0.5, 0.6, -0.1]), "non-negative"),
        (np.zeros(3), np.array([0.5, 0.4, 0.2]), "sum to 1.1"),
        (np.zeros(3), np.array([0.5, 0.5]), "3 labels"),
        (np.zeros(3), np.array([np.nan, 0.5, 0.5]), "finite"),
        (np.array([0.0, np.inf]), None, "finite label"),
        ({"a": np.zeros(3), "b": np.zeros(4)}, None, "3, 4"),
        (np.zeros(()), None, "leading length"),
    ],
)
def test_refusals(labels, weights, message, as_user):
    with pytest.raises(ValueError, match=message):
        mf.Marginal(labels, weights)


def test_number_of_labels_is_checked():
    with pytest.raises(ValueError, match="n=0"):
        mf.Marginal.circle(0)
