"""GGUF against safetensors: packed types, interleaved rows, qwen2, llama-3 frequency factors, vocabulary."""

import dataclasses
import json

import gguf
import numpy as np
import pytest
from pretrained.checkpoints import random_tensors
from safetensors.numpy import save_file

import meanfield as mf
from meanfield.pretrained.config import Config
from meanfield.pretrained.families import from_config

CONFIG = {
    "model_type": "llama", "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "num_hidden_layers": 1, "vocab_size": 32, "intermediate_size": 64, "rms_norm_eps": 1e-5, "rope_theta": 400.0,
    "tie_word_embeddings": True,
}  # fmt: skip
NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "model.layers.0.": "blk.0.",
}  # fmt: skip
IDS = np.array([[3, 30, 7, 1, 19]], np.int32)


def interleave(rows, head_dim=8):
    """llama.cpp's order of the rows of q and k: 0, 4, 1, 5, 2, 6, 3, 7 for head_dim 8."""
    return rows.reshape(-1, 2, head_dim // 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def pair(tmp_path, kind="F32", architecture="llama", extra=None, vocabulary=False):
    """The same random model as a folder (already through the packing) and as a GGUF file."""
    config = CONFIG | {"model_type": architecture}
    spec, layout = from_config(Config(dict(config), "test"))
    tensors = random_tensors(spec, layout, 1, 0.3)
    packing = gguf.GGMLQuantizationType[kind]
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", architecture)
    keys = {
        "block_count": 1, "embedding_length": 32, "feed_forward_length": 64, "attention.head_count": 4,
        "attention.head_count_kv": 2, "context_length": 64, "rope.dimension_count": 8,
    }  # fmt: skip
    for key, value in keys.items():
        writer.add_uint32(f"{architecture}.{key}", value)
    writer.add_float32(f"{architecture}.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_float32(f"{architecture}.rope.freq_base", 400.0)
    if vocabulary:
        _vocabulary(writer)
    for name, tensor in tensors.items():
        packed = tensor
        if tensor.ndim == 2 and kind != "F32":
            packed = gguf.quantize(tensor, packing)
            tensors[name] = gguf.dequantize(packed, packing).astype(np.float32)
        if tensor.ndim == 2 and architecture == "llama" and any(n in name for n in ("q_proj", "k_proj")):
            packed = interleave(packed)
        theirs = name
        for hf, ours in NAMES.items():
            theirs = theirs.replace(hf, ours)
        writer.add_tensor(theirs, packed, raw_dtype=packing if tensor.ndim == 2 and kind != "F32" else None)
    for name, tensor in (extra or {}).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    folder = tmp_path / "folder"
    folder.mkdir()

    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    return mf.pretrained.load(folder), mf.pretrained.load(tmp_path / "model.gguf")


def _vocabulary(writer):
    alphabet = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    tokens = [*alphabet, "Ġ", "th", "the", "1", "2", "<|end|>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (len(tokens) - 1) + [3])
    writer.add_token_merges(["t h", "th e"])


@pytest.mark.parametrize("kind", ["F32", "F16", "Q4_0", "Q4_1", "Q8_0", "BF16"])
def test_packed_types(tmp_path, kind):
    folder, file = pair(tmp_path, kind)
    assert dataclasses.replace(file.spec, eps=1e-5) == folder.spec and abs(file.spec.eps - 1e-5) < 1e-12
    for ours, theirs in zip(_leaves(file), _leaves(folder), strict=True):
        np.testing.assert_array_equal(ours.astype(np.float32), theirs)


def test_interleaved_rows_give_the_same_logits(tmp_path):
    folder, file = pair(tmp_path)
    np.testing.assert_allclose(file.logits(IDS), folder.logits(IDS), atol=1e-6)


def test_rows_of_qwen2_are_not_interleaved(tmp_path):
    folder, file = pair(tmp_path, architecture="qwen2")
    assert file.spec.qkv_bias
    for ours, theirs in zip(_leaves(file), _leaves(folder), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_frequency_factors_are_honoured(tmp_path):
    factors = np.array([1.0, 2.0, 5.0, 8.0], np.float32)
    _, file = pair(tmp_path, extra={"rope_freqs.weight": factors})
    np.testing.assert_allclose(file.spec.rotary.frequencies(), 400.0 ** (-np.arange(4) / 4) / factors)


def test_vocabulary(tmp_path):
    _, file = pair(tmp_path, vocabulary=True)
    np.testing.assert_array_equal(file.encode("the 12"), [28, 26, 29, 30])
    assert file.tokenizer.decode([28, 26, 29]) == "the 1"


def test_unused_tensor_is_named(tmp_path):
    with pytest.raises(ValueError, match="unused: blk.0.extra"):
        pair(tmp_path, extra={"blk.0.extra": np.zeros(3, np.float32)})


def _leaves(model):
    import jax

    return [np.asarray(leaf) for leaf in jax.tree.leaves(model.weights)]
