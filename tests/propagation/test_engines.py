"""Every engine against the matrix product, for every structure; values and gradients, both precisions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf
from meanfield.propagation import _blocks, _layered, _wavefront
from meanfield.propagation._recurrence import geometric_sum, suffix_sums, window_sums
from meanfield.propagation.profile import _parameters

pp = mf.propagation
RNG = np.random.default_rng(3)
DEPTH, HEADS, LENGTH = 3, 3, 300
MIXING = RNG.uniform(0.1, 0.9, DEPTH)
SLOPES = np.array([0.0, 0.02, 1.5])
WEIGHTS = np.array([0.2, 0.5, 0.3])
DIAGONALS = {"scalar": -0.7, "layer": RNG.normal(size=DEPTH), "head": 3 * RNG.normal(size=(DEPTH, HEADS))}
START = RNG.dirichlet(np.ones(LENGTH))

ENGINES = {
    "wavefront": lambda a, s: _wavefront.pull(s, a.mixing, *_parameters(a)),
    "layered": lambda a, s: _layered.pull(s, a.mixing, *_parameters(a), reach=s.shape[0] - 1, prefix=0),
    "blocks": lambda a, s: _blocks.pull(a, s),
}


@pytest.mark.parametrize("kind", ["scalar", "head"])
def test_engines_agree_in_value_and_gradient(kind, monkeypatch):
    monkeypatch.setattr(_blocks, "_ENTRIES", 70 * LENGTH * HEADS)  # several blocks, the last one incomplete
    monkeypatch.setattr(_blocks, "_DENSE", 0)
    arch = pp.Architecture(MIXING, SLOPES, diagonal=DIAGONALS[kind], head_weights=WEIGHTS, temperature=1.3)
    direction = jnp.asarray(RNG.normal(size=LENGTH))
    found = {}
    for name, engine in ENGINES.items():
        pulled, gradient = jax.jit(jax.value_and_grad(lambda a, e=engine: e(a, jnp.asarray(START)) @ direction))(arch)
        found[name] = (pulled, gradient.mixing, gradient.bias, gradient.content.diagonal, gradient.temperature)
    for name in ("layered", "blocks"):
        for a, b in zip(jax.tree.leaves(found["wavefront"]), jax.tree.leaves(found[name]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "mask,size", [("causal", {}), ("full", {}), ("window", {"window": 7}), ("prefix", {"prefix": 33})]
)
def test_rows_and_columns_are_those_of_the_product(mask, size):
    n = 80
    arch = pp.Architecture(MIXING, SLOPES, diagonal=DIAGONALS["head"], mask=mask, head_weights=WEIGHTS, **size)
    product = np.eye(n)
    for t in range(DEPTH):
        product = ((1 - MIXING[t]) * np.eye(n) + MIXING[t] * np.asarray(pp.attention(arch, t, n))) @ product
    np.testing.assert_allclose(pp.propagate(arch, n), product, atol=1e-13)
    np.testing.assert_allclose(pp.profile(arch, n, row=41), product[41], atol=1e-13)
    np.testing.assert_allclose(pp.column(arch, n, 5), product[:, 5], atol=1e-13)
    np.testing.assert_allclose(pp.first_token_mass(arch, n), product[:, 0], atol=1e-13)
    np.testing.assert_allclose(pp.diagonal_mass(arch, n), np.diag(product), atol=1e-13)
    np.testing.assert_allclose(product.sum(1), 1, atol=1e-12)


def test_every_depth_of_a_profile():
    arch = pp.Architecture(MIXING, SLOPES, diagonal=DIAGONALS["layer"], head_weights=WEIGHTS)
    states = pp.profile_by_depth(arch, LENGTH, row=-2)
    np.testing.assert_allclose(states[-1], pp.profile(arch, LENGTH, row=-2), atol=1e-15)
    top = np.eye(LENGTH)[-2] * (1 - MIXING[-1]) + MIXING[-1] * np.asarray(pp.attention(arch, -1, LENGTH))[-2]
    np.testing.assert_allclose(states[0], top, atol=1e-14)


@pytest.mark.parametrize(
    "name,length,size",
    [
        ("bloom", 1024, {}),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("bloom-7b1", 16384, {}),
                ("falcon-rw-7b", 4096, {}),
                ("mpt-7b", 256, {}),
                ("mpt-30b", 256, {}),
                ("mpt-7b", 1024, {"mask": "window", "window": 100}),
                ("mpt-7b", 256, {"mask": "prefix", "prefix": 50}),
            )
        ),
    ],
)
def test_float32_profiles_are_within_1e_6(name, length, size):
    def profile():
        arch = pp.preset(name, content="mean")
        return pp.profile(pp.Architecture(arch.mixing, bias=arch.bias, content=arch.content, **size), length)

    expected = profile()
    with jax.enable_x64(False):
        found = profile()
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_window_has_an_exact_horizon():
    """Token 1 of n is first reached at T = ⌈(n−1)/(w−1)⌉, and is exactly 0 before."""
    n, w = 40, 6
    depth = mf.theory.window_reach_depth(n, w)
    assert depth == 8
    arch = pp.Architecture(np.full(depth, 0.5), np.array([0.0, 0.4]), mask="window", window=w)
    states = pp.profile_by_depth(arch, n)
    assert float(states[-2][0]) == 0.0 < float(states[-1][0])
    one = pp.Architecture(MIXING, SLOPES, mask="window", window=1)
    np.testing.assert_array_equal(pp.profile(one, 9), np.eye(9)[-1])


def test_other_biases_content_and_masks_by_hand():
    class Strided(pp.AbstractMask):
        """Every second key, and the token itself."""

        def __call__(self, i, j):
            return (j <= i) & (((i - j) % 2 == 0) | (j == 0))

    n, table, logits = 30, RNG.normal(size=(2, 8)), RNG.normal(size=(DEPTH, 2, 30, 30))
    bias = pp.T5Buckets(table, max_distance=16)
    arch = pp.Architecture(MIXING, bias=bias, content=pp.Logits(logits), mask=Strided(), temperature=0.7)
    p = np.eye(n)[-1]
    for t in reversed(range(DEPTH)):
        a = np.zeros((n, n))
        for h in range(2):
            for i in range(n):
                allowed = [j for j in range(i + 1) if (i - j) % 2 == 0 or j == 0]
                bucket = [
                    min(7, i - j if i - j < 4 else 4 + int(4 * np.log((i - j) / 4) / np.log(4) + 1e-9)) for j in allowed
                ]
                s = np.exp([(table[h, b] + logits[t, h, i, j]) / 0.7 for b, j in zip(bucket, allowed, strict=True)])
                a[i, allowed] += 0.5 * s / s.sum()
        p = (1 - MIXING[t]) * p + MIXING[t] * p @ a
    np.testing.assert_allclose(pp.profile(arch, n), p, atol=1e-13)


def test_rotary_decay_and_callables():
    x = np.arange(6.0)
    angles = np.abs(np.exp(1j * x[:, None] * 10000.0 ** (-2 * np.arange(4) / 8)).mean(1))
    np.testing.assert_allclose(pp.RotaryDecay(10000.0, 8)(x), np.log(angles), atol=1e-12)
    assert float(pp.RotaryDecay(1e9, 2)(jnp.asarray(np.pi / 2))) > -30.1
    callable_ = pp.Architecture(MIXING, bias=lambda d: -0.3 * jnp.abs(d))
    np.testing.assert_allclose(pp.profile(callable_, 50), pp.profile(pp.Architecture(MIXING, [0.3]), 50), atol=1e-14)


def test_non_causal_bias_is_symmetric():
    """ALiBi is −m|i−j|, not the key-only form: row 3 of four, m = ½."""
    a = np.asarray(pp.attention(pp.Architecture([1.0], [0.5], mask="full"), 0, 4))
    np.testing.assert_allclose(a[3] / a[3, 3], [0.223, 0.368, 0.607, 1.0], atol=5e-4)
    np.testing.assert_allclose(a[1] / a[1, 1], np.exp(-0.5 * np.abs(1 - np.arange(4))), rtol=1e-12)


@pytest.mark.parametrize("size", [{}, {"window": 4, "mask": "window"}])
def test_logits_beyond_the_range_of_exp(size):
    """Diagonals and slopes whose exponentials vanish or overflow: finite values and gradients, those of the general softmax."""
    with jax.enable_x64(False):
        arch = pp.Architecture(
            [0.5, 0.5, 1.0],
            [0.0, 200.0, 1.0],
            diagonal=[[-300.0, -300.0, 300.0]] * 2 + [[-100.0, -250.0, -300.0]],
            **size,
        )
        value, gradient = jax.jit(jax.value_and_grad(lambda a: pp.profile(a, 6)[1]))(arch)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
        np.testing.assert_allclose(value, pp.propagate(arch, 6)[-1, 1], atol=1e-6)


def test_recurrences(precision):
    u = jnp.asarray(RNG.uniform(size=(2, 77)), precision)
    blocked = jax.jit(lambda rate: suffix_sums(u, rate, block=4))
    window = jax.jit(lambda rate: window_sums(u[0], rate, 9))
    for rate in (0.0, 0.03, 2.0, 400.0):
        i = np.arange(77)
        kernel = np.where(i[:, None] >= i[None], np.exp(-rate * np.maximum(i[:, None] - i[None], 0)), 0)
        found = blocked(jnp.asarray(rate, precision))
        np.testing.assert_allclose(
            found, np.asarray(u, float) @ kernel, rtol=1e-5 if precision == np.float32 else 1e-12
        )
        nearer = np.where(i[:, None] > i[None], np.exp(-rate * np.maximum(i[:, None] - i[None] - 1, 0)), 0)
        banded = np.where(i[:, None] <= i[None] + 9, nearer, 0)
        found = window(jnp.asarray(rate, precision))
        np.testing.assert_allclose(found, np.asarray(u[0], float) @ banded, rtol=1e-5, atol=1e-30)


def test_geometric_sums_are_smooth_at_zero():
    """Value, first and second derivative of Σ_{k<L} e^{−mk} at m = 0 and beside the series' end."""
    k = np.arange(10.0)

    def f(m):
        return geometric_sum(m, jnp.asarray(10.0))

    value, first, second = jax.jit(f), jax.jit(jax.grad(f)), jax.jit(jax.grad(jax.grad(f)))
    for m in (0.0, 1e-9, 1e-3, 0.049, 0.051, 3.0):
        exact = [np.exp(-m * k).sum(), -(k * np.exp(-m * k)).sum(), (k**2 * np.exp(-m * k)).sum()]
        found = [g(jnp.asarray(m)) for g in (value, first, second)]
        np.testing.assert_allclose(found, exact, rtol=1e-11)
    assert float(geometric_sum(jnp.asarray(0.3), jnp.asarray(0.0))) == 0.0
