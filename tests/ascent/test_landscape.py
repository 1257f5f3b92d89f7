"""Energy, force, Hessian and curvature against autodiff of `mf.energy`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield.ascent import bind
from meanfield.ascent import landscape as module
from meanfield.ascent.curvature import _lanczos, largest_curvature

from .cases import DIM, KERNELS, RHO, cosine, random_states


@pytest.mark.parametrize("name", KERNELS)
def test_force_is_the_weighted_gradient_of_the_energy(name):
    kernel, rho = KERNELS[name]
    x = random_states(1)[0]
    energy, force = jax.jit(lambda x: bind(kernel, rho, None, DIM, x.dtype)(x))(x)
    value, gradient = jax.value_and_grad(lambda x: mf.energy(kernel, x, rho))(x)
    np.testing.assert_allclose(energy, value, rtol=1e-12)
    np.testing.assert_allclose(rho.weights[:, None] * force, gradient, atol=1e-13)


def test_tiles_and_prefix_change_nothing(monkeypatch):
    prefix = mf.Prefix(random_states(1, 2)[0], np.array([0.3, -0.2]))
    x = random_states(1)[0]
    dense = bind(cosine(), RHO, prefix, DIM, x.dtype)(x)
    monkeypatch.setattr(module, "HOISTED_PAIRS", 1)
    monkeypatch.setattr(module, "TILING", module.Tiling(7, 5))
    tiled = bind(cosine(), RHO, prefix, DIM, x.dtype)(x)
    for a, b in zip(dense, tiled, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(dense[0], mf.energy(cosine(), x, RHO, prefix), rtol=1e-12)


def test_hessian_is_the_second_derivative_along_geodesics_and_selfadjoint():
    kernel, rho = KERNELS["uneven"]
    x = random_states(1)[0]
    landscape = bind(kernel, rho, None, DIM, x.dtype)
    u, v = (landscape.gradient(x, a) for a in random_states(2, seed=8))
    product = jax.jit(lambda u: landscape.hessian(x, u))
    second = jax.grad(jax.grad(lambda s: landscape(mf.sphere.exp(x, s * u))[0]))(0.0)
    np.testing.assert_allclose(landscape.inner(u, product(u)), second, rtol=1e-9)
    np.testing.assert_allclose(landscape.inner(v, product(u)), landscape.inner(u, product(v)), rtol=1e-10)


def test_curvature_of_antipodes_and_of_a_dirac():
    rho = mf.Marginal(jnp.zeros(2))
    x = jnp.array([[1.0, 0, 0], [-1.0, 0, 0]])
    landscape = bind(mf.ExpDot(1.0), rho, None, 3, x.dtype)
    value, vector = largest_curvature(landscape, x)
    np.testing.assert_allclose(value, np.exp(-1), rtol=1e-12)
    np.testing.assert_allclose(landscape.norm(vector), 1.0, rtol=1e-12)
    np.testing.assert_allclose(landscape.hessian(x, vector), value * vector, atol=1e-12)
    dirac = jnp.tile(x[:1], (2, 1))
    assert abs(largest_curvature(landscape, dirac)[0]) < 1e-14  # rotations


def test_lanczos_agrees_with_all_eigenvalues():
    x = random_states(1, 40)[0]
    landscape = bind(cosine(3.0), mf.Marginal.circle(40), None, 3, x.dtype)
    dense = largest_curvature(landscape, x)[0]
    root = jnp.sqrt(landscape.rho.weights)[:, None]

    def apply(v):
        return root * landscape.hessian(x, landscape.gradient(x, v) / root)

    value, vector = jax.jit(lambda: _lanczos(apply, lambda v: landscape.gradient(x, v), x))()
    np.testing.assert_allclose(value, dense, rtol=1e-9)
    np.testing.assert_allclose(apply(vector), value * vector, atol=1e-5)
