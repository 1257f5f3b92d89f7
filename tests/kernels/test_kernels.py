"""Kernels: the structured form against the one-pair formula, algebra, parameters as leaves, refusals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from table import KERNELS, UNSTRUCTURED, tokens

import meanfield as mf
from meanfield.kernels import terms


@pytest.mark.parametrize("name", sorted(set(KERNELS) - UNSTRUCTURED))
def test_terms_equal_the_pair(name):
    kernel = KERNELS[name]()
    x, rho = tokens()
    i, j = 2, 5
    value = 0.0
    for term in terms(kernel):
        q = term.gauge(rho.labels, x)
        g = term.factor(rho.labels[i], rho.labels[j], x.dtype)
        value += float(term.scale * g * term.zonal.phi(q[i] @ q[j]))
    np.testing.assert_allclose(value, kernel(x[i], rho.labels[i], x[j], rho.labels[j]), rtol=1e-13)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernels_are_symmetric_and_follow_dtype(name, precision):
    x, rho = tokens(dtype=precision)
    kernel = jax.tree.map(lambda a: a.astype(precision) if eqx.is_inexact_array(a) else a, KERNELS[name]())
    a = kernel(x[0], rho.labels[0], x[3], rho.labels[3])
    b = kernel(x[3], rho.labels[3], x[0], rho.labels[0])
    np.testing.assert_allclose(a, b, rtol=8 * np.finfo(precision).eps)
    assert a.dtype == precision and a.shape == ()


def test_formulas():
    x, y = jnp.array([0.6, 0.8, 0.0]), jnp.array([0.0, 0.6, 0.8])
    zero = jnp.zeros(())
    np.testing.assert_allclose(mf.ExpDot(2.0, shift=0.3)(x, zero, y, zero), np.exp(2 * (0.48 - 0.3)) / 2, rtol=1e-14)
    half = jnp.asarray(0.5)
    np.testing.assert_allclose(mf.Cosine(2.0, offset=0.1)(half), 0.1 + np.cos(1.0), rtol=1e-14)
    np.testing.assert_allclose(mf.ExponentialDecay(3.0)(-half), np.exp(-1.5), rtol=1e-14)
    np.testing.assert_allclose(mf.Gaussian(0.7)(half), np.exp(-0.25 / 0.98), rtol=1e-14)
    turned = mf.RoPE(mf.Dot(), jnp.array([2.0])).rotate(jnp.asarray(np.pi / 4), jnp.array([1.0, 0.0, 5.0]))
    np.testing.assert_allclose(turned, [0, 1, 5], atol=1e-15)  # counter-clockwise; an odd last coordinate is fixed


def test_parameters_are_leaves():
    kernel = mf.Toeplitz(mf.Cosine(2.0, offset=0.3), mf.RoPE(mf.ExpDot(1.5), jnp.array([0.7])))
    assert len(jax.tree.leaves(kernel)) == 5
    x, rho = tokens()
    gradient = jax.grad(lambda k: mf.energy(k, x, rho))(kernel)
    for leaf in jax.tree.leaves(gradient):
        assert np.isfinite(leaf).all() and np.abs(leaf).max() > 1e-6


def test_integer_labels_are_subtracted_exactly():
    labels = np.array([2**24, 2**24 + 1], np.int32)
    kernel = mf.Toeplitz(mf.ExponentialDecay(1.0), mf.Dot())
    e = jnp.eye(2, dtype=jnp.float32)[0]
    value = jax.tree.map(lambda a: a.astype(jnp.float32), kernel)(e, labels[1], e, labels[0])
    np.testing.assert_allclose(value, np.exp(-1), rtol=1e-6)
    unsigned = kernel(e, np.uint8(1), e, np.uint8(3))
    np.testing.assert_allclose(unsigned, np.exp(-2), rtol=1e-6)


def test_composite_labels_choose_their_part():
    rho = mf.Marginal((np.arange(4), np.linspace(0, 1, 4)))
    kernel = mf.Toeplitz(
        mf.ExponentialDecay(0.5), mf.RoPE(mf.ExpDot(1.0), np.ones(1), label=lambda z: z[1]), label=lambda z: z[0]
    )
    x = mf.sphere.sample(jax.random.key(0), (4, 3))
    pairwise = sum(
        rho.weights[i] * rho.weights[j] * kernel(x[i], (i, rho.labels[1][i]), x[j], (j, rho.labels[1][j])) / 2
        for i in range(4) for j in range(4)
    )  # fmt: skip
    np.testing.assert_allclose(mf.energy(kernel, x, rho), pairwise, rtol=1e-12)


def test_vector_differences_go_to_the_profile_whole():
    rho = mf.Marginal(np.arange(8.0).reshape(4, 2))
    kernel = mf.Toeplitz(lambda tau: jnp.exp(-jnp.sum(tau**2) / 50), mf.Dot())
    x = mf.sphere.sample(jax.random.key(0), (4, 3))
    g = np.exp(-((rho.labels[:, None] - rho.labels[None]) ** 2).sum(-1) / 50)
    np.testing.assert_allclose(mf.energy(kernel, x, rho), 0.5 * np.mean(g * (x @ x.T)), rtol=1e-12)


def test_a_bound_flax_module_keeps_its_weights_as_leaves():
    linen = pytest.importorskip("flax.linen")

    class Angle(linen.Module):
        @linen.compact
        def __call__(self, xi):
            angle = linen.Dense(1, param_dtype=jnp.float64, dtype=jnp.float64)(xi[None])[0]
            return jnp.array([[jnp.cos(angle), -jnp.sin(angle)], [jnp.sin(angle), jnp.cos(angle)]])

    module = Angle()
    kernel = mf.Gauge(mf.ExpDot(1.2), module.bind(module.init(jax.random.key(0), jnp.ones(()))))
    x, rho = tokens(5, 2)
    gradient = jax.grad(lambda k: mf.energy(k, x, rho))(kernel)
    assert max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(gradient.map)) > 1e-4
    with pytest.raises(ValueError, match=r"module\.bind"):
        mf.Gauge(mf.ExpDot(1.2), module)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: mf.ExpDot(0.0), "beta=0"),
        (lambda: mf.ExpDot(np.ones(3)), "sweep"),
        (lambda: mf.ExponentialDecay(-1.0), "rate"),
        (lambda: mf.Gaussian(0.0), "width"),
        (lambda: mf.RoPE(mf.Dot(), 1.0), "one-dimensional"),
        (lambda: mf.Pair(3.0), "callable"),
    ],
)
def test_refusals(make, message, as_user):
    with pytest.raises(ValueError, match=message):
        make()


def test_gauge_shapes_are_refused(as_user):
    x, rho = tokens(4, 3)
    with pytest.raises(ValueError, match="d//2"):
        mf.energy(mf.RoPE(mf.Dot(), np.ones(2)), x, rho)
    with pytest.raises(ValueError, match=r"\(3, 3\) orthogonal"):
        mf.energy(mf.Gauge(mf.Dot(), lambda xi: jnp.eye(2)), x, rho)
    with pytest.raises(ValueError, match="scalar labels"):
        mf.energy(mf.RoPE(mf.Dot(), np.ones(1)), x, mf.Marginal(np.zeros((4, 2))))
