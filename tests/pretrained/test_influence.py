"""Influence, by one pass down with recomputation, equals the gradient of the whole network; targets; resume."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pretrained.checkpoints import CONFIGS, write

import meanfield as mf
from meanfield.pretrained.layers import context
from meanfield.pretrained.model import apply_block, enter, leave


def last_scores(model, e, mask):
    """Scores and stream of the last position as one differentiable function of the embeddings."""
    where = context(model.spec, mask, model.dtype)
    x = enter(model.spec, model.weights.part("entrance"), e, where)
    for t in range(model.spec.layers):
        x = apply_block(model.spec, model.weights.layer(t), x, where, t)[0]
    return model.weights.project(leave(model.spec, model.weights.part("exit"), x[:, -1])), x[:, -1]


TARGETS = {
    "probability": lambda z, x, k: jax.nn.softmax(z)[:, k],
    "log_probability": lambda z, x, k: jax.nn.log_softmax(z)[:, k],
    "logit": lambda z, x, k: z[:, k],
    "norm": lambda z, x, k: jnp.linalg.norm(x, axis=-1),
}


def test_influence_is_the_gradient_of_the_network(tmp_path, ids):
    """All targets, in float64, against one reverse pass through everything at once; both averages."""
    model = mf.pretrained.load(write(tmp_path, CONFIGS["mpt"]), dtype="float64")

    def totals(e):
        last = last_scores(model, e, jnp.ones(ids.shape, bool))
        return jnp.stack([jnp.sum(target(*last, 5)) for target in TARGETS.values()])

    gradients = jax.jit(jax.jacrev(totals))(model.weights.lookup(ids, model.dtype))
    for target, gradient in zip(TARGETS, gradients, strict=True):
        found = mf.pretrained.measure(model, ids, target=target, token=5)
        reference = np.linalg.norm(gradient, axis=-1)
        np.testing.assert_allclose(found.dataset["influence"].values, reference, rtol=1e-9)
        mean = reference.mean(0)
        np.testing.assert_allclose(found.influence, mean / mean.sum(), rtol=1e-9)
        each = (reference / reference.sum(1, keepdims=True)).mean(0)
        np.testing.assert_allclose(found.profile("sequences"), each, rtol=1e-9)


def test_batches_do_not_matter_and_runs_resume(llama, tmp_path):
    """Five sequences in batches of two; one file lost, one truncated: these are computed again, the third is reused."""
    ids = np.asarray(jax.random.randint(jax.random.key(2), (5, 7), 0, 24), np.int32)
    whole = mf.pretrained.measure(llama, ids[:4], batch=2)
    first = mf.pretrained.measure(llama, ids, batch=2, out=tmp_path)
    np.testing.assert_allclose(first.dataset["influence"][:4], whole.dataset["influence"], rtol=1e-4)
    np.testing.assert_allclose(first.attention.sum(-1), 1, atol=1e-5)
    files = sorted(tmp_path.glob("*.npz"))
    assert len(files) == 3
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-200])
    kept = files[2].stat().st_mtime_ns
    again = mf.pretrained.measure(llama, ids, batch=2, out=tmp_path)
    assert again.dataset.equals(first.dataset)
    assert files[2].stat().st_mtime_ns == kept and files[0].exists() and np.load(files[1])["influence"].shape == (2, 7)
    with pytest.raises(ValueError, match="another model, text or setting"):
        mf.pretrained.measure(llama, ids[::-1].copy(), batch=2, out=tmp_path)


def test_saved_and_read_back(llama, ids, tmp_path):
    found = mf.pretrained.measure(llama, ids, transitions=("energy",))
    found.save(tmp_path / "m.zarr")
    back = mf.pretrained.Measurement.open(tmp_path / "m.zarr")
    assert back.dataset.equals(found.dataset) and back.dataset.attrs == found.dataset.attrs
    np.testing.assert_array_equal(back.rollout, found.rollout)


def test_tracing_is_refused(llama, ids):
    with pytest.raises(ValueError, match="outside jit"):
        jax.jit(lambda ids: mf.pretrained.measure(llama, ids))(ids)
