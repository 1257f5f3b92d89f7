"""jit, vmap, forward and reverse mode, second derivatives; one compilation for a family of architectures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

pp = mf.propagation
MIXING = np.array([0.3, 0.1, 0.6])


def score(mixing, slopes, diagonal, temperature, size, **mask):
    arch = pp.Architecture(mixing, slopes, diagonal=diagonal, temperature=temperature, **mask)
    p = pp.profile(arch, size)
    return p @ jnp.cos(jnp.arange(size).astype(p.dtype))


@pytest.mark.parametrize("mask", [{}, {"mask": "window", "window": 5}, {"mask": "prefix", "prefix": 6}])
def test_gradients_are_those_of_finite_differences(mask):
    """Forward and reverse mode along one direction that moves every parameter."""
    point = (jnp.asarray(MIXING), jnp.array([0.05, 0.7]), jnp.array([[0.4, -1.0]] * 3), jnp.asarray(1.2))
    direction = jax.tree.map(lambda x: jnp.cos(jnp.arange(x.size).astype(x.dtype) + 1).reshape(x.shape), point)
    value = jax.jit(lambda x: score(*x, 21, **mask))
    reverse = jax.jit(jax.grad(value))(point)
    forward = jax.jit(lambda x, v: jax.jvp(value, (x,), (v,))[1])(point, direction)
    step = 1e-5
    ahead, behind = (value(jax.tree.map(lambda x, v, s=s: x + s * v, point, direction)) for s in (step, -step))
    np.testing.assert_allclose(forward, (ahead - behind) / (2 * step), rtol=1e-7)
    along = sum(jnp.vdot(g, v) for g, v in zip(reverse, direction, strict=True))
    np.testing.assert_allclose(along, forward, rtol=1e-11)


def test_second_derivatives():
    slope = jax.jit(jax.grad(lambda m: score(jnp.asarray(MIXING), m[None], 0.3, 1.0, 12)))
    curvature = jax.jit(jax.grad(slope))
    step = 1e-5
    for m in (0.0, 0.3):
        at = jnp.asarray(m + step)
        np.testing.assert_allclose(curvature(at), (slope(at + step) - slope(at - step)) / (2 * step), rtol=1e-5)


def test_gradients_at_slope_zero_are_one_sided_limits():
    gradient = jax.jit(jax.grad(lambda slopes: score(jnp.asarray(MIXING), slopes, 0.2, 1.0, 20)))
    at, near = (gradient(jnp.array([m, 0.4])) for m in (0.0, 1e-7))
    assert np.isfinite(at).all()
    np.testing.assert_allclose(at, near, rtol=1e-5)


def test_a_thousand_architectures_compile_once():
    traces = []

    @jax.jit
    @jax.vmap
    def family(mixing, slopes):
        traces.append(None)
        return pp.profile(pp.Architecture(mixing, slopes), 16)

    key = jax.random.key(0)
    mixing, slopes = jax.random.uniform(key, (1000, 4)), jax.random.exponential(key, (1000, 2))
    p = family(mixing, slopes)
    family(mixing * 0.5, slopes)
    assert p.shape == (1000, 16) and len(traces) == 1
    np.testing.assert_allclose(p[17], pp.profile(pp.Architecture(mixing[17], slopes[17]), 16), atol=1e-15)


def test_vmap_over_architectures_and_rows():
    def make(m):
        return pp.Architecture(jnp.asarray(MIXING) * m, jnp.array([0.1, 0.3]), diagonal=m)

    archs = jax.vmap(make)(jnp.array([0.5, 1.0]))
    rows = jax.jit(jax.vmap(lambda a: jax.vmap(lambda r: pp.profile(a, 10, row=r))(jnp.arange(10))))(archs)
    np.testing.assert_allclose(rows[1], pp.propagate(make(jnp.asarray(1.0)), 10), atol=1e-14)
    np.testing.assert_allclose(jax.vmap(lambda a: pp.propagate(a, 10))(archs)[0], rows[0], atol=1e-14)


def test_rollout_vmaps_and_differentiates():
    a = jax.nn.softmax(jax.random.normal(jax.random.key(1), (2, 3, 4, 4)), axis=-1)
    stacked = jax.vmap(pp.rollout, in_axes=(0, None))(a, jnp.asarray(MIXING))
    np.testing.assert_allclose(stacked[1], pp.rollout(a[1], MIXING), atol=1e-15)
    gradient = jax.jit(jax.grad(lambda m: pp.rollout(a[0], m)[-1, 0]))(jnp.asarray(MIXING))
    moved = [np.asarray(pp.rollout(a[0], MIXING + s * np.eye(3)[1]))[-1, 0] for s in (1e-6, -1e-6)]
    np.testing.assert_allclose(gradient[1], (moved[0] - moved[1]) / 2e-6, rtol=1e-7)


def test_another_slope_does_not_recompile():
    from meanfield.propagation.profile import _profile

    pp.profile(pp.Architecture(MIXING, [0.1]), 33)
    with jax.log_compiles(False):
        before = _cache_size(_profile)
        pp.profile(pp.Architecture(MIXING * 0.9, [0.7]), 33, row=4)
    assert _cache_size(_profile) == before


def _cache_size(function) -> int:
    return function._cached._cache_size()
