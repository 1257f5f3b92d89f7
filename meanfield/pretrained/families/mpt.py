"""MPT: ALiBi with `alibi_bias_max`, three blocks [Q|K|V], optional clamp of all three, no biases, exact GELU."""

from ..checkpoint.layout import Layout, fused, sources, unfuse
from ..config import Config, divides
from ..spec import Alibi, Spec


def spec(config: Config) -> Spec:
    """What an MPT config.json describes (`alibi_bias_max` and `expansion_ratio` are honoured, as in the authors' code)."""
    dim, heads = config.size("d_model", "hidden_size"), config.size("n_heads", "num_attention_heads")
    head_dim = divides(config, dim, heads, "d_model and n_heads")
    attention = config.section("attn_config")
    attention.only("attn_type", "multihead_attention")
    attention.only("alibi", True)
    attention.only("prefix_lm", False)
    attention.only("qk_ln", False)
    attention.only("attn_uses_sequence_id", False)
    clip = attention.get("clip_qkv", default=None)
    scale = attention.get("softmax_scale", default=None)
    bias_max = attention.number("alibi_bias_max", default=8.0)
    clip = None if clip is None else attention.number("clip_qkv")
    scale = head_dim**-0.5 if scale is None else attention.number("softmax_scale")
    attention.finish()
    config.only("no_bias", True)
    config.only("norm_type", "low_precision_layernorm", "layernorm")
    config.only("logit_scale")
    config.get("learned_pos_emb", "max_seq_len", default=None)  # unused with ALiBi
    return Spec(
        family="mpt",
        vocab=config.size("vocab_size"),
        layers=config.size("n_layers", "num_hidden_layers"),
        dim=dim,
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        hidden=config.size("expansion_ratio", default=4) * dim,
        eps=config.number("layer_norm_epsilon", default=1e-5),
        scale=scale,
        norm_bias=False,
        qkv_bias=False,
        out_bias=False,
        mlp_bias=False,
        alibi=Alibi(bias_max),
        clip=clip,
        tied=config.flag("tie_word_embeddings", default=True),
    )


def layout(spec: Spec) -> Layout:
    """The tensor names of Hugging Face's MPT."""
    at = "transformer.blocks.{t}."
    names, takes = fused(at + "attn.Wqkv", unfuse(1, 1, 1, 1))
    names |= {
        "embedding": "transformer.wte",
        "head": "lm_head",
        "exit/norm": "transformer.norm_f",
        "block/norm1": at + "norm_1",
        "block/norm2": at + "norm_2",
        "block/attention/out": at + "attn.out_proj",
        "block/mlp/up": at + "ffn.up_proj",
        "block/mlp/down": at + "ffn.down_proj",
    }
    return Layout(sources(names, takes), prefix="transformer.")
