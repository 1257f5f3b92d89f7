"""Velocities and energies of every kernel against explicit double sums; methods agree; masks, prefix, permutations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from table import KERNELS, SOFTMAX, UNSTRUCTURED, tokens

import meanfield as mf
from meanfield.interaction import Tiled, Tiling
from meanfield.interaction.bound import bound_terms, sides


def by_hand(kernel, x, rho, causal=False):
    """P_x Σ_j w_j ∇_x h(z_i, z_j), one pair at a time in the formula."""
    pair = jax.vmap(jax.vmap(jax.grad(kernel), (None, None, 0, 0)), (0, 0, None, None))
    gradients = pair(x, rho.labels, x, rho.labels)
    seen = rho.labels[None, :] <= rho.labels[:, None] if causal else jnp.ones((rho.n, rho.n), bool)
    return mf.sphere.project(x, jnp.einsum("ijd,ij,j->id", gradients, seen.astype(x.dtype), rho.weights))


def softmax_by_hand(kernel, x, rho, causal, rotate_values, prefix=None):
    """theory.md 1, SA: a_ij ∝ w_j ∂h/∂t, from dense matrices."""
    (term,) = bound_terms(kernel, rho, x.shape[1], x.dtype)
    q = term.gauge(rho.labels, x)
    slope = jax.vmap(jax.vmap(jax.grad(term.zonal.phi)))
    g = jax.vmap(lambda a: jax.vmap(lambda b: term.factor(a, b, x.dtype))(rho.labels))(rho.labels)
    a = rho.weights * g * slope(q @ q.T)
    if causal:
        a = jnp.where(rho.labels[None, :] <= rho.labels[:, None], a, 0)
    values = term.ungauge(rho.labels, a @ q) if rotate_values else a @ x
    total = a.sum(axis=1)
    if prefix is not None:
        b = prefix.weights * slope(x @ prefix.tokens.T)
        values, total = values + b @ prefix.tokens, total + b.sum(axis=1)
    return mf.sphere.project(x, values / total[:, None])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_usa_is_the_gradient_of_its_pairs(name, causal):
    kernel = KERNELS[name]()
    x, rho = tokens()
    expected = by_hand(kernel, x, rho, causal)
    for method in ("dense", "blocked"):
        v = mf.velocity(mf.USA(kernel, causal=causal), x, rho, method=method)
        np.testing.assert_allclose(v, expected, atol=1e-13)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_velocity_is_the_riemannian_gradient_of_the_energy(name):
    """w_i ẋ_i = P ∂E/∂x_i, so Ė = Σ w_i ‖ẋ_i‖² (theory.md 1)."""
    kernel = KERNELS[name]()
    x, rho = tokens()
    gradient = mf.sphere.project(x, jax.grad(lambda x: mf.energy(kernel, x, rho))(x))
    np.testing.assert_allclose(rho.weights[:, None] * mf.velocity(mf.USA(kernel), x, rho), gradient, atol=1e-14)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", sorted(SOFTMAX))
def test_sa_is_softmax_attention(name, causal):
    kernel = KERNELS[name]()
    x, rho = tokens()
    prefix = mf.Prefix(mf.sphere.sample(jax.random.key(9), (3, 4)), np.array([0.2, 0.5, 0.1]))
    for rotate_values in (True, False):
        dynamics = mf.SA(kernel, rotate_values=rotate_values, causal=causal, prefix=prefix)
        expected = softmax_by_hand(kernel, x, rho, causal, rotate_values, prefix)
        np.testing.assert_allclose(mf.velocity(dynamics, x, rho), expected, atol=1e-13)


def test_sa_energy_rate():
    """Ė = Σ_i w_i Z_i ‖ẋ_i‖² along SA with shift 0 (theory.md 1)."""
    x, rho = tokens()
    kernel = mf.ExpDot(1.7)
    v = mf.velocity(mf.SA(kernel), x, rho)
    rate = jax.jvp(lambda x: mf.energy(kernel, x, rho), (x,), (v,))[1]
    z = jnp.exp(1.7 * x @ x.T) @ rho.weights
    np.testing.assert_allclose(rate, jnp.sum(rho.weights * z * jnp.sum(v * v, axis=1)), rtol=1e-12)


@pytest.mark.parametrize("name", ["sum", "rope", "decay", "pair"])
def test_tiles_that_do_not_fill_up(name, precision):
    """Blocks with padding equal one dense tile, forward and backward, in both precisions."""
    kernel = KERNELS[name]()
    x, rho = tokens(11, 4, precision)
    tolerance = 30 * np.finfo(precision).eps
    if name in UNSTRUCTURED:
        from meanfield.interaction import mapped_potential

        value = lambda x, tiling: jnp.sum(jnp.sin(mapped_potential(kernel, x, rho.labels, rho.weights, tiling)))
    else:
        terms = bound_terms(kernel, rho, 4, precision)

        def value(x, tiling):
            total = 0.0
            for term in terms:
                targets, sources = sides(term, x, rho, True)
                total += jnp.sum(jnp.sin(Tiled(tiling).force(term, targets, sources, None)))
            return total

    for tiling in (Tiling(4, 3), Tiling(5, 11)):
        (a, da), (b, db) = (jax.value_and_grad(value)(x, t) for t in (Tiling(), tiling))
        np.testing.assert_allclose(a, b, rtol=tolerance)
        np.testing.assert_allclose(da, db, atol=tolerance)


def test_rotations_and_permutations():
    """Permuting tokens permutes velocities; a global rotation commutes where there is no gauge (theory.md 1.10)."""
    x, rho = tokens()
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    kernel = KERNELS["rope of decay"]()
    for make in (mf.USA, mf.SA):
        permuted = mf.velocity(make(kernel, causal=True), x[order], mf.Marginal(rho.labels[order], rho.weights[order]))
        np.testing.assert_allclose(permuted, mf.velocity(make(kernel, causal=True), x, rho)[order], atol=1e-14)
    q = jnp.linalg.qr(jax.random.normal(jax.random.key(4), (4, 4)))[0]
    kernel = KERNELS["cosine"]()
    np.testing.assert_allclose(
        mf.velocity(mf.USA(kernel), x @ q, rho), mf.velocity(mf.USA(kernel), x, rho) @ q, atol=1e-13
    )


def test_prefix_adds_its_energy_once():
    x, rho = tokens()
    prefix = mf.Prefix(mf.sphere.sample(jax.random.key(9), (3, 4)), np.array([0.2, 0.5, 0.1]))
    kernel = KERNELS["sum"]()
    added = mf.energy(kernel, x, rho, prefix=prefix) - mf.energy(kernel, x, rho)
    t = x @ prefix.tokens.T
    phi = jnp.exp(0.8 * t) / 0.8 + 0.5 * jnp.exp(1.6 * t) / 1.6
    np.testing.assert_allclose(added, rho.weights @ phi @ prefix.weights, rtol=1e-12)
    gradient = mf.sphere.project(x, jax.grad(lambda x: mf.energy(kernel, x, rho, prefix=prefix))(x))
    velocity = mf.velocity(mf.USA(kernel, prefix=prefix), x, rho)
    np.testing.assert_allclose(rho.weights[:, None] * velocity, gradient, atol=1e-14)


def test_softmax_never_overflows():
    """β = 2000 in float32, without shift, with a zero-weight and a masked token."""
    x = mf.sphere.sample(jax.random.key(0), (6, 3), np.float32)
    rho = mf.Marginal(np.arange(6), np.array([0.0, 0.2, 0.2, 0.2, 0.2, 0.2], np.float32))
    v = mf.velocity(mf.SA(mf.ExpDot(2000.0), causal=True), x, rho)
    assert np.isfinite(v).all() and v.dtype == np.float32


def test_causal_chooses_the_position_of_a_composite_label():
    x, _ = tokens(4, 3)
    labels = {"position": np.array([2, 0, 1, 3]), "prompt": np.ones((4, 2))}
    plain = mf.velocity(mf.USA(mf.ExpDot(1.0), causal=True), x, mf.Marginal(labels["position"]))
    chosen = mf.velocity(mf.USA(mf.ExpDot(1.0), causal=lambda z: z["position"]), x, mf.Marginal(labels))
    np.testing.assert_allclose(plain, chosen, atol=1e-15)
    with pytest.raises(ValueError, match="scalar"):
        mf.velocity(mf.USA(mf.ExpDot(1.0), causal=True), x, mf.Marginal(labels))


def test_gradients_with_coincident_tokens():
    x = jnp.tile(mf.sphere.sample(jax.random.key(0), (1, 3)), (5, 1))
    rho = mf.Marginal(jnp.arange(5.0))
    for name in ("decay", "exp"):
        kernel = KERNELS[name]()
        for make in (mf.USA, mf.SA):
            g = jax.grad(lambda x, make=make, kernel=kernel: jnp.sum(mf.velocity(make(kernel), x, rho)[:, 0]))(x)
            assert np.isfinite(g).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x, rho: mf.velocity(mf.USA(mf.Dot()), x.at[3].set(0), rho), "zero rows 3"),
        (lambda x, rho: mf.velocity(mf.USA(mf.Dot()), x.at[2, 1].set(jnp.nan), rho), "rows 2"),
        (lambda x, rho: mf.velocity(mf.USA(mf.Dot()), x[:4], rho), "4 tokens but rho has 7"),
        (lambda x, rho: mf.velocity(mf.USA(mf.Dot()), x[0], rho), "shape"),
        (lambda x, rho: mf.velocity(mf.USA(mf.Dot()), x, rho, method="magic"), "magic"),
        (lambda x, rho: mf.velocity(mf.SA(mf.Dot() + mf.ExpDot(1.0)), x, rho), "mf.USA"),
        (lambda x, rho: mf.velocity(mf.SA(KERNELS["cosine"]()), x, rho), "changes sign"),
        (lambda x, rho: mf.velocity(mf.SA(-mf.ExpDot(1.0)), x, rho), "positive"),
        (lambda x, rho: mf.velocity(mf.SA(KERNELS["pair"]()), x, rho), "mf.USA"),
        (lambda x, rho: mf.velocity(mf.USA(mf.ExpDot(800.0)), x, rho), "shift"),
        (lambda x, rho: mf.velocity(mf.USA(KERNELS["pair"](), rotate_values=False), x, rho), "rotate_values"),
        (lambda x, rho: mf.Prefix(x[:2], np.ones(3)), "one weight"),
    ],
)
def test_refusals(call, message, as_user):
    x, rho = tokens()
    with pytest.raises(ValueError, match=message):
        call(x, rho)
