"""Against Hugging Face's own code in float64 (../shared/data/lm), where the acceptance cases do not look."""

import json
import shutil

import numpy as np
import pytest

import meanfield as mf


def test_per_token_and_per_sequence_mixing(shared_data):
    ref = np.load(shared_data / "lm" / "llama_gqa" / "golden.npz")
    model = mf.pretrained.load(shared_data / "lm" / "llama_gqa")
    data = mf.pretrained.measure(model, ref["input_ids"]).dataset
    np.testing.assert_allclose(data["mixing_token"].values.swapaxes(0, 1), ref["lambda_tok"], atol=2e-6)
    np.testing.assert_allclose(data["mixing"].values.T, ref["lambda_seq"], atol=2e-6)
    norms = np.concatenate([ref["x"], ref["x_out"][None]])
    np.testing.assert_allclose(data["norms"].values.swapaxes(0, 1), np.linalg.norm(norms, axis=-1), rtol=1e-5)
    x, a = (np.linalg.norm(ref[k], axis=(2, 3)) for k in ("x", "a"))
    np.testing.assert_allclose(data["mixing_norms"].values.T, a / (x + a), atol=2e-6)
    x, a = (np.linalg.norm(ref[k], axis=3) ** 2 for k in ("x", "a"))
    np.testing.assert_allclose(data["epsilon"].values.T, (a / (x + a)).mean(-1), atol=2e-6)
    unit = norms / np.linalg.norm(norms, axis=-1, keepdims=True)
    np.testing.assert_allclose(data["order"].values.T, np.linalg.norm(unit.mean(2), axis=-1), atol=2e-6)
    spectrum = np.linalg.eigvalsh(np.einsum("lbid,lbie->lbde", unit, unit) / unit.shape[2])
    np.testing.assert_allclose(data["dimension"].values.T, 1 / (spectrum**2).sum(-1), rtol=1e-5)
    np.testing.assert_array_equal(data["token"], ref["target_ids"])
    np.testing.assert_allclose(data["target"], ref["target_probs"], rtol=1e-5)


@pytest.mark.slow
def test_one_token(shared_data):
    ref = np.load(shared_data / "lm" / "bloom_h4" / "golden_n1.npz")
    found = mf.pretrained.measure(mf.pretrained.load(shared_data / "lm" / "bloom_h4"), ref["input_ids"])
    np.testing.assert_allclose(found.mixing, ref["lambda"], atol=1e-5)
    np.testing.assert_allclose(found.influence, [1.0])
    assert np.isnan(found.content[..., 1]).all()
    np.testing.assert_allclose(found.content[..., 0], ref["qk_diag"], atol=1e-4)


def test_old_falcon_names_are_the_same_model(shared_data, tmp_path):
    folder = shared_data / "lm" / "falcon_7b_style"
    shutil.copy(folder / "model.safetensors", tmp_path / "model.safetensors")
    shutil.copy(folder / "config.refinedweb.json", tmp_path / "config.json")
    assert mf.pretrained.load(tmp_path).spec == mf.pretrained.load(folder).spec


def test_renamed_tensor_is_named_with_the_unused_one(shared_data):
    with pytest.raises(
        ValueError, match=r"missing: transformer\.h\.0\.mlp\.dense_h_to_4h\.weight; unused: .*dense_h_to_5h"
    ):
        mf.pretrained.load(shared_data / "lm" / "folders" / "renamed_tensor")


def test_folders_that_load_give_the_reference_logits(shared_data):
    folders = shared_data / "lm" / "folders"
    for name, expected in json.loads((folders / "expected.json").read_text()).items():
        if expected["outcome"] == "ok":
            ref = np.load(folders / name / "golden.npz")
            np.testing.assert_allclose(
                mf.pretrained.load(folders / name).logits(ref["input_ids"]), ref["logits"], atol=1e-5
            )
