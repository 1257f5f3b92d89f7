"""Derivatives of flows: every adjoint against finite differences, through jit and vmap both ways."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

X0 = mf.sphere.sample(jax.random.key(2), (6, 3))
RHO = mf.Marginal.circle(6)


def final(beta, adjoint="reverse"):
    dynamics = mf.USA(mf.RoPE(mf.ExpDot(beta), jnp.ones(1)))
    return mf.flow(dynamics, X0, RHO, jnp.array([0.0, 0.7]), rtol=1e-10, adjoint=adjoint, save=("order",)).order[-1]


def difference(beta, step=1e-5):
    return (final(beta + step) - final(beta - step)) / (2 * step)


def test_reverse_mode_through_vmap_and_jit():
    betas = jnp.array([0.9, 1.5])
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(final)))(betas), [difference(b) for b in betas], rtol=1e-5)


def test_forward_mode():
    forward = jax.jit(lambda b: jax.jvp(lambda b: final(b, "forward"), (b,), (1.0,))[1])
    np.testing.assert_allclose(forward(1.5), difference(1.5), rtol=1e-5)


@pytest.mark.slow
def test_second_order():
    hessian = jax.grad(jax.grad(lambda b: final(b, "second order")))(1.5)
    gradient = jax.jit(jax.grad(final))
    np.testing.assert_allclose(hessian, (gradient(1.5 + 1e-4) - gradient(1.5 - 1e-4)) / 2e-4, rtol=1e-5)


def test_forward_mode_of_the_reverse_adjoint_is_refused():
    with pytest.raises(ValueError, match="adjoint='forward'"):
        jax.jvp(final, (1.5,), (1.0,))
