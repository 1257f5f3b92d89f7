"""Falcon: RW (ALiBi, sequential), multi-query (parallel, one norm) and the new decoder (parallel, groups, two norms).

ALiBi and logits are both divided by √head_dim, slope and slope·j rounded to bfloat16 as in the model's own code. The names
RefinedWeb (40B) and RefinedWebModel (7B and RW) of the first releases are the same models under old keys.
"""

from ..checkpoint.layout import Layout, fused, sources, unfuse
from ..config import Config, divides, rotary
from ..spec import Alibi, Spec, Wiring


def spec(config: Config) -> Spec:
    """What a Falcon config.json describes, in the old or the new spelling."""
    dim, heads = config.size("hidden_size"), config.size("num_attention_heads", "n_head")
    head_dim = divides(config, dim, heads, "hidden_size and num_attention_heads")
    new = config.flag("new_decoder_architecture", default=config.get("model_type") == "RefinedWeb")
    multi_query = config.flag("multi_query", default=True)
    alibi = config.flag("alibi", default=False)
    bias = config.flag("bias", default=False)
    kv_heads = config.size("num_kv_heads", "n_head_kv", default=heads)
    kv_heads = kv_heads if new else 1 if multi_query else heads
    divides(config, heads, kv_heads, "num_attention_heads and num_kv_heads")
    config.only("activation", "gelu")
    config.only("apply_residual_connection_post_layernorm", False)
    position = rotary(config, head_dim)
    return Spec(
        family="falcon",
        vocab=config.size("vocab_size"),
        layers=config.size("num_hidden_layers", "n_layer"),
        dim=dim,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        hidden=config.size("ffn_hidden_size", default=4 * dim),
        eps=config.number("layer_norm_epsilon", default=1e-5),
        scale=head_dim**-0.5,
        activation="gelu",
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=bias,
        wiring=_wiring(config, new),
        alibi=Alibi(scaled=True, rounded=True) if alibi else None,
        rotary=None if alibi else position,
        tied=config.flag("tie_word_embeddings", default=True),
    )


def layout(spec: Spec) -> Layout:
    """The tensor names of Hugging Face's Falcon."""
    at = "transformer.h.{t}."
    first, second = {
        "sequential": ("input_layernorm", "post_attention_layernorm"),
        "parallel": ("ln_attn", "ln_mlp"),
        "parallel-shared": ("input_layernorm", ""),
    }[spec.wiring]
    names, takes = fused(at + "self_attention.query_key_value", unfuse(spec.kv_heads, spec.group, 1, 1))
    names |= {
        "embedding": "transformer.word_embeddings",
        "head": "lm_head",
        "exit/norm": "transformer.ln_f",
        "block/norm1": at + first,
        "block/norm2": at + second,
        "block/attention/out": at + "self_attention.dense",
        "block/mlp/up": at + "mlp.dense_h_to_4h",
        "block/mlp/down": at + "mlp.dense_4h_to_h",
    }
    return Layout(sources(names, takes), prefix="transformer.", ignored=r".*rotary.*inv_freq")


def _wiring(config: Config, new: bool) -> Wiring:
    norms = config.get("num_ln_in_parallel_attn", default=None) or (2 if new else 1)
    parallel = config.flag("parallel_attn", default=True)
    if norms not in (1, 2):
        raise ValueError(f"{config.where}: num_ln_in_parallel_attn={norms!r} must be 1 or 2")
    if new and not parallel:
        raise ValueError(f"{config.where}: parallel_attn=false with the new decoder architecture is not a Falcon model")
    if not parallel:
        return "sequential"
    return "parallel" if new and norms == 2 else "parallel-shared"
