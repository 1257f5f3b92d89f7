"""Attention head by head equals attention of all heads together, with its derivatives; content needs no logits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pretrained.checkpoints import CONFIGS, write

import meanfield as mf
from meanfield.pretrained import attention
from meanfield.pretrained.layers import context

LENGTH = 11


def operands(seed: int, spec):
    shape = (2, LENGTH, spec.heads, spec.head_dim)
    return [jax.random.normal(key, shape) for key in jax.random.split(jax.random.key(seed), 3)]


@pytest.fixture(scope="module", params=["bloom", "falcon-rw", "llama"])
def spec(request, tmp_path_factory):
    """ALiBi, its rounded form, and grouped heads without it."""
    return mf.pretrained.load(write(tmp_path_factory.mktemp("attention"), CONFIGS[request.param])).spec


@pytest.fixture
def where(spec):
    """The second sequence begins with three tokens of padding."""
    return context(spec, jnp.arange(LENGTH) >= jnp.asarray([[0], [3]]), np.dtype("float32"))


def test_long_sequences_change_nothing(spec, where, monkeypatch):
    """Heads in turn and four rows at a time (11 is no multiple): every output, and the cotangents of q, k and v."""
    q, k, v = operands(0, spec)
    weight = jax.random.normal(jax.random.key(1), q.shape)

    def run(q, k, v):
        seen, pull = jax.vjp(lambda *z: attention.attend(spec, *z, where), q, k, v)
        return seen, pull((weight, *(jnp.ones_like(z) for z in seen[1:])))

    together = jax.jit(run)(q, k, v)
    monkeypatch.setattr(attention, "TOGETHER", 0)
    monkeypatch.setattr(attention, "ROWS", 4)
    in_turn = jax.jit(lambda *z: run(*z))(q, k, v)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6), together, in_turn)


def test_content_is_the_mean_of_the_logits(spec, where):
    q, k, _ = operands(2, spec)
    logits = np.einsum("bihd,bjhd->bhij", q, k)
    allowed = np.asarray(where.allowed)
    found = attention.mean_logits(q, k, where.allowed)
    for b in range(2):
        below = np.tril(allowed[b], -1)
        expected = [logits[b, :, np.eye(LENGTH, dtype=bool) & allowed[b]].mean(0), logits[b][:, below].mean(1)]
        np.testing.assert_allclose(found[b], np.stack(expected, -1), rtol=1e-4, atol=1e-5)
    alone = attention.mean_logits(q[:, :1], k[:, :1], where.allowed[:1, :1, :1].repeat(2, 0))
    assert np.isfinite(alone[..., 0]).all() and np.isnan(alone[..., 1]).all()
