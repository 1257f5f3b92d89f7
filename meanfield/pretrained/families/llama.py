"""LLaMA and its kin (Mistral, Qwen2): separate projections, grouped queries, RoPE, RMSNorm, gated SiLU."""

import functools

import numpy as np

from ..checkpoint.gguf_file import Gguf
from ..checkpoint.layout import Layout, Take, sources
from ..config import Config, divides, rotary
from ..spec import Rotary, Spec

_NAMES = {
    "embedding": "model.embed_tokens",
    "head": "lm_head",
    "exit/norm": "model.norm",
    "block/norm1": "model.layers.{t}.input_layernorm",
    "block/norm2": "model.layers.{t}.post_attention_layernorm",
    "block/attention/query": "model.layers.{t}.self_attn.q_proj",
    "block/attention/key": "model.layers.{t}.self_attn.k_proj",
    "block/attention/value": "model.layers.{t}.self_attn.v_proj",
    "block/attention/out": "model.layers.{t}.self_attn.o_proj",
    "block/mlp/gate": "model.layers.{t}.mlp.gate_proj",
    "block/mlp/up": "model.layers.{t}.mlp.up_proj",
    "block/mlp/down": "model.layers.{t}.mlp.down_proj",
}
_GGUF_NAMES = {
    "embedding": "token_embd",
    "head": "output",
    "exit/norm": "output_norm",
    "block/norm1": "blk.{t}.attn_norm",
    "block/norm2": "blk.{t}.ffn_norm",
    "block/attention/query": "blk.{t}.attn_q",
    "block/attention/key": "blk.{t}.attn_k",
    "block/attention/value": "blk.{t}.attn_v",
    "block/attention/out": "blk.{t}.attn_output",
    "block/mlp/gate": "blk.{t}.ffn_gate",
    "block/mlp/up": "blk.{t}.ffn_up",
    "block/mlp/down": "blk.{t}.ffn_down",
}
_Spec = functools.partial(Spec, family="llama", norm="rms", norm_bias=False, activation="silu", gated=True)


def spec(config: Config) -> Spec:
    """What a config.json of this family describes."""
    dim, heads = config.size("hidden_size"), config.size("num_attention_heads")
    kv_heads = config.size("num_key_value_heads", default=heads)
    head_dim = config.size("head_dim", default=max(1, dim // heads))
    divides(config, heads, kv_heads, "num_attention_heads and num_key_value_heads")
    qwen = config.get("model_type") == "qwen2"
    bias = config.flag("attention_bias", default=False)
    mlp_bias = config.flag("mlp_bias", default=False)
    config.only("hidden_act", "silu", "swish")
    return _Spec(
        vocab=config.size("vocab_size"),
        layers=config.size("num_hidden_layers"),
        dim=dim,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        hidden=config.size("intermediate_size"),
        eps=config.number("rms_norm_eps", default=1e-6),
        scale=head_dim**-0.5,
        qkv_bias=bias or qwen,
        out_bias=bias,
        mlp_bias=mlp_bias,
        rotary=rotary(config, head_dim),
        window=_window(config, qwen),
        tied=config.flag("tie_word_embeddings", default=False),
    )


def gguf(config: Config, file: Gguf) -> tuple[Spec, Layout]:
    """What a llama or qwen2 GGUF header describes; llama's rows of q and k are interleaved there, qwen2's are not."""
    dim, heads = config.size("embedding_length"), config.size("attention.head_count")
    head_dim = config.size("attention.key_length", default=max(1, dim // heads))
    kv_heads = config.size("attention.head_count_kv", default=heads)
    divides(config, heads, kv_heads, "attention.head_count and attention.head_count_kv")
    config.only("attention.value_length", head_dim)
    config.only("expert_count", 0)
    config.get("context_length", default=None)
    window = config.get("attention.sliding_window", default=None)
    found = _Spec(
        vocab=config.size("vocab_size"),
        layers=config.size("block_count"),
        dim=dim,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        hidden=config.size("feed_forward_length"),
        eps=config.number("attention.layer_norm_rms_epsilon"),
        scale=head_dim**-0.5,
        qkv_bias="blk.0.attn_q.bias" in file.shapes,
        out_bias="blk.0.attn_output.bias" in file.shapes,
        mlp_bias="blk.0.ffn_up.bias" in file.shapes,
        rotary=_gguf_rotary(config, head_dim, file),
        window=None if window is None else config.size("attention.sliding_window"),
        tied="output.weight" not in file.shapes,
    )
    return found, _gguf_layout(found, permuted=file.metadata["general.architecture"] == "llama")


def layout(spec: Spec) -> Layout:
    """The tensor names of Hugging Face's LLaMA."""
    return Layout(sources(_NAMES), prefix="model.", ignored=r".*rotary_emb\.inv_freq")


def _gguf_layout(spec: Spec, permuted: bool) -> Layout:
    heads = [f"block/attention/{part}/{kind}" for part in ("query", "key") for kind in ("weight", "bias")]
    takes = dict.fromkeys(heads, _deinterleave(spec.head_dim)) if permuted else {}
    return Layout(sources(_GGUF_NAMES, takes), ignored=r"rope_freqs\.weight")


def _deinterleave(head_dim: int) -> Take:
    def take(tensor: np.ndarray) -> np.ndarray:
        split = tensor.reshape(-1, head_dim // 2, 2, *tensor.shape[1:])
        return split.swapaxes(1, 2).reshape(tensor.shape)

    return take


def _gguf_rotary(config: Config, head_dim: int, file: Gguf) -> Rotary:
    dim = config.size("rope.dimension_count", default=head_dim)
    kind = config.get("rope.scaling.type", default="none")
    factor = config.get("rope.scaling.factor", "rope.scale_linear", default=None)
    scaling: tuple = ("default",)
    if kind == "linear" or (kind == "none" and factor is not None and "rope.scale_linear" in config.values):
        scaling = ("linear", config.number("rope.scaling.factor", "rope.scale_linear"))
    elif kind != "none":
        raise ValueError(f"{config.where}: rope.scaling.type {kind!r} is not supported (only 'none', 'linear')")
    if dim % 2 or dim > head_dim:
        raise ValueError(f"{config.where}: rope.dimension_count={dim} must be even and at most head_dim={head_dim}")
    factors = None
    if "rope_freqs.weight" in file.shapes:  # llama 3: the converter has worked its scaling out, a factor per frequency
        if file.shapes["rope_freqs.weight"] != (dim // 2,):
            raise ValueError(f"{file.path}: rope_freqs.weight must have shape ({dim // 2},)")
        factors = tuple(float(f) for f in file.read("rope_freqs.weight"))
    return Rotary(dim, config.number("rope.freq_base", default=10000.0), scaling, factors)


def _window(config: Config, qwen: bool) -> int | None:
    window = config.get("sliding_window", default=None)
    used = config.flag("use_sliding_window", default=not qwen)
    if window is None or not used:
        return None
    if qwen:
        raise ValueError(
            f"{config.where}: use_sliding_window=true mixes windowed and full layers, which is not supported"
        )
    return config.size("sliding_window")
