"""method="pallas", interpreted on the CPU, against the dense sum: values, gradients, masks, factors; lowering for a GPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

N = 70  # two blocks of 64, the second almost empty

decaying = mf.Toeplitz(mf.ExponentialDecay(0.7), mf.ExpDot(3.0))
CASES = {
    "usa": (3, mf.USA(mf.ExpDot(4.0))),
    "sa": (2, mf.SA(mf.ExpDot(4.0))),
    "sa, decay, causal": (3, mf.SA(decaying, causal=True)),
    "rotated cosine": (5, mf.USA(mf.RoPE(mf.Toeplitz(mf.Cosine(2.0, offset=0.3), mf.Dot()), jnp.ones(2)))),
    "own φ, causal, plain values": (
        17,
        mf.USA(mf.RoPE(mf.Zonal(lambda t: t**3 - t), jnp.ones(1)), rotate_values=False, causal=True),
    ),
    "prefix": (2, mf.SA(decaying, prefix=mf.Prefix(np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([0.3, 0.1])))),
}


def tokens(d, dtype=None):
    x = mf.sphere.sample(jax.random.key(0), (N, d), dtype)
    labels = jnp.round(jax.random.uniform(jax.random.key(1), (N,), x.dtype, maxval=3.0), 1)
    weights = jax.random.dirichlet(jax.random.key(2), jnp.ones(N, x.dtype)).at[5].set(0.0)
    return x, mf.Marginal(labels, weights / weights.sum())


QUICK = {"usa", "sa"}  # each case compiles its own interpreter loop, for seconds


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in sorted(CASES)])
def test_velocity_is_the_dense_one(name):
    d, dynamics = CASES[name]
    x, rho = tokens(d)
    dense = mf.velocity(dynamics, x, rho, method="dense")
    value = mf.velocity(dynamics, x, rho, method="pallas")
    np.testing.assert_allclose(value, dense, atol=1e-13 * float(jnp.abs(dense).max()))


@pytest.mark.slow
def test_energy_and_single_precision():
    x, rho = tokens(3, jnp.float32)
    kernel = mf.RoPE(decaying, jnp.ones(1))
    value = mf.energy(kernel, x, rho, method="pallas")
    assert value.dtype == jnp.float32
    np.testing.assert_allclose(value, mf.energy(kernel, x, rho, method="dense"), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("make", [mf.USA, mf.SA])
def test_gradients_are_the_dense_ones(make):
    """Tokens, labels, weights, β and the decay."""
    x, rho = tokens(3)

    @jax.jit
    def gradients(x, labels, weights, beta, rate):
        def loss(method, x, labels, weights, beta, rate):
            kernel = mf.Toeplitz(mf.ExponentialDecay(rate), mf.ExpDot(beta))
            v = mf.velocity(make(kernel, causal=True), x, mf.Marginal(labels, weights), method=method)
            return jnp.sum(jnp.cos(3 * v)) + mf.energy(kernel, x, mf.Marginal(labels, weights), method=method)

        each = (x, labels, weights, beta, rate)
        return [jax.grad(loss, argnums=(1, 2, 3, 4, 5))(method, *each) for method in ("pallas", "dense")]

    found, expected = gradients(x, rho.labels, rho.weights, jnp.array(2.0), jnp.array(0.8))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12 * float(jnp.abs(b).max()))


def test_kernels_lower_for_a_gpu(monkeypatch):
    """Without a GPU the kernels still go through Triton's front end, forward and backward."""
    x, rho = tokens(3, jnp.float32)
    rho = mf.Marginal(rho.labels.astype(jnp.float32), rho.weights.astype(jnp.float32))
    field = mf.SA(decaying, causal=True).bind(rho, 3, jnp.float32, "pallas")
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    go = jax.jit(jax.grad(lambda x: jnp.sum(field(x) ** 2)))
    try:
        text = go.trace(x).lower(lowering_platforms=("cuda",)).as_text()
    except (ImportError, NotImplementedError) as error:
        if "triton" in str(error).lower() or "jaxlib" in str(error):
            pytest.skip(f"this jaxlib cannot lower for a GPU it does not have: {error}")
        raise
    assert text.count("triton") >= 4  # largest logits, sums, and two backward kernels


def test_refusals():
    x, rho = tokens(3)
    with pytest.raises(ValueError, match="zonal up to gauges"):
        mf.velocity(mf.USA(mf.Pair(lambda x, xi, y, zeta: x @ y)), x, rho, method="pallas")
    composite = mf.Marginal({"a": jnp.zeros((N, 2))})
    with pytest.raises(ValueError, match="scalar labels"):
        mf.velocity(
            mf.USA(mf.Toeplitz(mf.Gaussian(1.0), mf.ExpDot(1.0), label=lambda z: z["a"])), x, composite, method="pallas"
        )
