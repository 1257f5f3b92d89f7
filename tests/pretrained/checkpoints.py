"""Tiny checkpoints written by the tests themselves, in the layout of each family, so that nothing needs reference files."""

import json

import numpy as np
from safetensors.numpy import save_file

from meanfield.pretrained.checkpoint.layout import flatten
from meanfield.pretrained.config import Config
from meanfield.pretrained.families import from_config

CONFIGS = {
    "bloom": {"model_type": "bloom", "hidden_size": 16, "n_head": 2, "n_layer": 2, "vocab_size": 24},
    "mpt": {
        "model_type": "mpt", "d_model": 16, "n_heads": 2, "n_layers": 2, "vocab_size": 24, "expansion_ratio": 2,
        "attn_config": {"alibi": True, "alibi_bias_max": 16, "clip_qkv": 0.8, "softmax_scale": 0.5},
    },
    "falcon-rw": {
        "model_type": "falcon", "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": 24, "alibi": True,
        "bias": True, "parallel_attn": False, "multi_query": False,
    },
    "falcon-new": {
        "model_type": "falcon", "hidden_size": 32, "num_attention_heads": 4, "num_kv_heads": 2, "num_hidden_layers": 2,
        "vocab_size": 24, "new_decoder_architecture": True,
    },
    "llama": {
        "model_type": "llama", "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6,
        "num_hidden_layers": 2, "vocab_size": 24, "intermediate_size": 20, "attention_bias": True, "mlp_bias": True,
        "rope_theta": 500.0, "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 16},
    },
    "gpt2": {
        "model_type": "gpt2", "n_embd": 16, "n_head": 2, "n_layer": 2, "vocab_size": 24, "n_positions": 12,
        "scale_attn_by_inverse_layer_idx": True,
    },
    "gpt_neox": {
        "model_type": "gpt_neox", "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": 24,
        "intermediate_size": 24, "rotary_pct": 0.5, "rotary_emb_base": 300,
    },
}  # fmt: skip


def _without(name, *keys, **changes):
    return {key: value for key, value in CONFIGS[name].items() if key not in keys} | changes


VARIANTS = CONFIGS | {
    "bloom-post": _without("bloom", apply_residual_connection_post_layernorm=True),
    "falcon-11b": _without("falcon-new", num_ln_in_parallel_attn=1),
    "gpt2-noscale": _without("gpt2", scale_attn_weights=False),
    "llama-linear": _without("llama", rope_scaling={"rope_type": "linear", "factor": 3.0}),
    "mistral": _without("llama", "attention_bias", "mlp_bias", "rope_scaling", model_type="mistral", sliding_window=4),
    "neox-seq": _without("gpt_neox", use_parallel_residual=False),
    "qwen2": _without("llama", "attention_bias", "mlp_bias", "rope_scaling", "head_dim", model_type="qwen2"),
}


def write(folder, config, seed=0, scale=0.3, edit=None):
    """A checkpoint of random tensors with the names and shapes that the family expects; `edit(tensors)` may change them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    spec, layout = from_config(Config(dict(config), "test"))
    tensors = random_tensors(spec, layout, seed, scale)
    if edit is not None:
        edit(tensors)
    save_file(tensors, folder / "model.safetensors")
    return folder


def random_tensors(spec, layout, seed, scale):
    """Tensors by name; the fused ones are found by asking which file shape gives every part its expected shape."""
    from meanfield.pretrained.block import shapes

    random = np.random.default_rng(seed)
    expected, tensors = flatten(shapes(spec)), {}
    for key, shape in expected.items():
        source = layout.sources[key]
        for t in range(spec.layers) if key.startswith("block/") else [None]:
            name = source.name.format(t=t)
            if name not in tensors:
                tensors[name] = (scale * random.standard_normal(_file_shape(spec, key, shape, name))).astype(np.float32)
                if "scale" in key:
                    tensors[name] += 1
    return tensors


def _file_shape(spec, key, shape, name):
    if any(part in name for part in ("query_key_value", "Wqkv", "c_attn")):
        shape = ((spec.heads + 2 * spec.kv_heads) * spec.head_dim, *shape[1:])
    return shape[::-1] if spec.family == "gpt2" and ".c_" in name else shape
