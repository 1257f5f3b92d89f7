"""vmap over kernels, first derivatives of energies and states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

from .cases import DIM, RESTARTS, RHO, cosine, solved

pytestmark = pytest.mark.slow

KEY = jax.random.key(0)


def energy(beta, offset=0.0):
    return mf.ascend(cosine(beta, offset), RHO, DIM, KEY, restarts=RESTARTS, certify=False).energy


def gram(x):
    return jnp.sum(jnp.tanh(3 * x @ x.T))  # invariant under rotations


@pytest.mark.slow
def test_vmap_over_kernels_and_derivatives_of_the_energy():
    betas = jnp.array([1.0, 2.0])
    energies, slopes = jax.jit(jax.vmap(jax.value_and_grad(energy)))(betas)
    np.testing.assert_allclose(energies[1], solved(2.0).energy, rtol=1e-10)
    x = solved(2.0).x
    envelope = jax.grad(lambda b: mf.energy(cosine(b), x, RHO))(2.0)
    np.testing.assert_allclose(slopes[1], envelope, rtol=1e-8)


def test_derivative_of_the_state_modulo_rotations():
    """Through the front door in both modes, against central differences of the maximisers themselves."""
    x0 = jnp.tile(solved(2.0).x, (RESTARTS, 1, 1))

    def state(beta):
        return gram(mf.ascend(cosine(beta), RHO, DIM, KEY, x0=x0, certify=False).x)

    h = 1e-3
    expected = (state(2.0 + h) - state(2.0 - h)) / (2 * h)
    assert abs(expected) > 1
    np.testing.assert_allclose(jax.grad(state)(2.0), expected, rtol=1e-4)
    np.testing.assert_allclose(jax.jvp(state, (2.0,), (1.0,))[1], expected, rtol=1e-4)


def test_rotations_do_not_enter_the_derivative():
    from meanfield.ascent.implicit import follow

    x = solved(2.0).x
    tangent = jax.jvp(lambda b: follow(x, (cosine(b), RHO, None)), (2.0,), (1.0,))[1]
    generator = jnp.array([[0.0, 1.0, 0.3], [-1.0, 0.0, -0.5], [-0.3, 0.5, 0.0]])
    assert abs(jnp.sum(tangent * (x @ generator))) < 1e-9 and float(jnp.max(jnp.abs(tangent))) > 1e-2


def test_traced_keys_starts_and_a_constant_kernel():
    """Nothing of the search is done on the host while anything is traced."""
    rho = mf.Marginal.circle(6)

    def best(key, x0=None):
        return mf.ascend(mf.Dot(), rho, 2, key, restarts=2, x0=x0, certify=False).energy

    np.testing.assert_allclose(jax.vmap(best)(jax.random.split(KEY, 2)), 0.5, rtol=1e-9)
    np.testing.assert_allclose(jax.jit(best)(KEY), 0.5, rtol=1e-9)
    np.testing.assert_allclose(jax.jit(lambda b: b * best(KEY))(2.0), 1.0, rtol=1e-9)
    starts = mf.sphere.sample(jax.random.key(1), (2, 6, 2))
    np.testing.assert_allclose(jax.jit(lambda x: best(KEY, x))(starts), 0.5, rtol=1e-9)
