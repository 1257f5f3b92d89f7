"""Logits of every family: finite, causal, padded on either side, in both precisions; errors that name what is wrong."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pretrained.checkpoints import CONFIGS, write

import meanfield as mf


def test_causal(family, ids):
    logits = np.asarray(family.logits(ids))
    assert logits.shape == (2, 7, 24) and logits.dtype == np.float32 and np.isfinite(logits).all()
    changed = ids.copy()
    changed[:, 4:] = (changed[:, 4:] + 1) % 24
    np.testing.assert_allclose(family.logits(changed)[:, :4], logits[:, :4], atol=1e-6)
    assert np.abs(family.logits(changed)[:, 4:] - logits[:, 4:]).max() > 1e-3


@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("falcon-rw", "gpt2")), "llama"]
)
def test_padding_changes_nothing(name, ids, tmp_path):
    """[5, 6, 7] against [pad, pad, 5, 6, 7]: same logits, mixing, content, influence; pads 0; nothing is NaN."""
    family = mf.pretrained.load(write(tmp_path, CONFIGS[name], seed=3))
    predicted = ("energy2", "alti") if name == "llama" else ()
    mask = np.ones((2, 7), bool)
    mask[1, :3] = False
    mask[0, :1] = False
    padded = family.logits(ids, mask=mask)
    for row, start in ((0, 1), (1, 3)):
        np.testing.assert_allclose(padded[row, start:], family.logits(ids[row : row + 1, start:])[0], atol=2e-5)
    found = mf.pretrained.measure(family, ids, mask=mask, transitions=predicted)
    alone = mf.pretrained.measure(family, ids[1:, 3:], transitions=predicted)
    for name in ("mixing", "mixing_norms", "epsilon", "epsilon_mlp", "content", "order", "dimension"):
        np.testing.assert_allclose(found.dataset[name].values[1], alone.dataset[name].values[0], rtol=2e-4, atol=2e-6)
    for name in ("influence", "norms", *(["prediction"] if predicted else [])):
        row, reference = found.dataset[name].values[1], alone.dataset[name].values[0]
        np.testing.assert_allclose(row[..., 3:], reference, rtol=2e-3, atol=1e-6)
        assert (row[..., :3] == 0).all()
    for array in (found.mixing, found.attention, found.rollout, found.influence):
        assert np.isfinite(array).all()
    assert (found.attention[:, :1] == 0).all() and (found.rollout[:1] == 0).all()
    np.testing.assert_allclose(found.attention[:, 1:].sum(-1), 1, atol=1e-5)


def test_right_padding_is_refused_by_measure(llama, ids):
    mask = np.ones((2, 7), bool)
    mask[1, 5:] = False
    assert np.isfinite(np.asarray(llama.logits(ids, mask=mask))[1, :5]).all()
    with pytest.raises(ValueError, match="sequence 1 has padding that is not on the left"):
        mf.pretrained.measure(llama, ids, mask=mask)


@pytest.mark.slow
def test_double_precision_agrees(tmp_path, ids):
    folder = write(tmp_path, CONFIGS["llama"], seed=5)
    double, single = mf.pretrained.load(folder, dtype="float64"), mf.pretrained.load(folder)
    logits = double.logits(ids)
    assert logits.dtype == np.float64
    np.testing.assert_allclose(single.logits(ids), logits, atol=5e-5)
    found = mf.pretrained.measure(double, ids)
    assert found.dataset["influence"].dtype == np.float64
    with jax.enable_x64(False):
        np.testing.assert_allclose(single.logits(ids), logits, atol=5e-5)
        with pytest.raises(ValueError, match="float64.*x64 is off"):
            mf.pretrained.load(folder, dtype="float64")


def test_weights_are_differentiable(llama, ids):
    """A model in memory is a pytree: the loss has a gradient with respect to every parameter."""

    def loss(weights):
        logits = eqx.tree_at(lambda m: m.weights, llama, weights).logits(ids)
        return jnp.mean(jax.nn.logsumexp(logits, -1) - logits[..., 0])

    gradient = jax.jit(jax.grad(loss))(llama.weights)
    leaves = jax.tree.leaves(gradient)
    assert len(leaves) == len(jax.tree.leaves(llama.weights))
    assert all(np.isfinite(leaf).all() and np.abs(leaf).max() > 0 for leaf in leaves)


@pytest.mark.parametrize(
    "bad, message",
    [
        (np.array([[1, 24]], np.int32), "token 24, outside the vocabulary 0 … 23"),
        (np.array([[-1, 2]], np.int32), "token -1"),
        (np.zeros((1, 0), np.int32), "shape"),
    ],
)
def test_bad_ids(llama, bad, message, as_user):
    with pytest.raises(ValueError, match=message):
        llama.logits(bad)


def test_bad_mask_length_and_names(llama, ids, tmp_path, as_user):
    with pytest.raises(ValueError, match=r"mask has shape \(2, 3\)"):
        llama.logits(ids, mask=np.ones((2, 3), bool))
    with pytest.raises(ValueError, match="target='loss' is not one of"):
        mf.pretrained.measure(llama, ids, target="loss")
    with pytest.raises(ValueError, match="'magic', which is not one of"):
        mf.pretrained.measure(llama, ids, transitions=("magic",))
    with pytest.raises(ValueError, match="token=99 is outside"):
        mf.pretrained.measure(llama, ids, token=99)
    short = mf.pretrained.load(write(tmp_path, CONFIGS["gpt2"]))
    with pytest.raises(ValueError, match="length 13, the model has 12 learned positions"):
        short.logits(np.zeros((1, 13), np.int32))
    with pytest.raises(ValueError, match="pass token ids"):
        short.encode("text")


def test_initialise_makes_a_trainable_model():
    spec = mf.pretrained.Spec("llama", 11, 2, 8, 2, 1, 4, 12, 1e-5, 0.5, rotary=mf.pretrained.Rotary(4), tied=False)
    model = mf.pretrained.initialise(spec, jax.random.key(0))
    logits = model.logits(np.arange(6, dtype=np.int32).reshape(2, 3))
    assert logits.shape == (2, 3, 11) and float(np.std(logits)) > 0
    assert model.weights.head.shape == (11, 8)
