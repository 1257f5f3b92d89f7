"""BLOOM: ALiBi added after q·k/√d, fused per head [q, k, v], LayerNorm on the embedding, tanh GELU, tied head."""

from ..checkpoint.gguf_file import Gguf
from ..checkpoint.layout import Layout, Source, unfuse
from ..config import Config, divides
from ..spec import Alibi, Spec

_BLOCK = {
    "norm1": "input_layernorm",
    "norm2": "post_attention_layernorm",
    "out": "self_attention.dense",
    "up": "mlp.dense_h_to_4h",
    "down": "mlp.dense_4h_to_h",
    "qkv": "self_attention.query_key_value",
}
_GGUF_BLOCK = {
    "norm1": "attn_norm",
    "norm2": "ffn_norm",
    "out": "attn_output",
    "up": "ffn_up",
    "down": "ffn_down",
    "qkv": "attn_qkv",
}


def spec(config: Config) -> Spec:
    """What a BLOOM config.json describes."""
    dim, heads = config.size("hidden_size", "n_embed"), config.size("n_head", "num_attention_heads")
    post_norm = config.flag("apply_residual_connection_post_layernorm", default=False)
    config.get("offset_alibi", "seq_length", default=None)  # of training; without effect on the computation
    return _spec(
        config.size("vocab_size"),
        config.size("n_layer", "num_hidden_layers"),
        dim,
        heads,
        divides(config, dim, heads, "hidden_size and n_head"),
        config.number("layer_norm_epsilon", default=1e-5),
        "post-norm" if post_norm else "sequential",
        config.flag("tie_word_embeddings", default=True),
    )


def gguf(config: Config, file: Gguf) -> tuple[Spec, Layout]:
    """What a BLOOM GGUF header describes; its qkv is regrouped to three blocks."""
    dim, heads = config.size("embedding_length"), config.size("attention.head_count")
    config.only("attention.head_count_kv", heads)
    config.only("feed_forward_length", 4 * dim)
    config.get("context_length", default=None)
    found = _spec(
        config.size("vocab_size"),
        config.size("block_count"),
        dim,
        heads,
        divides(config, dim, heads, "embedding_length and attention.head_count"),
        config.number("attention.layer_norm_epsilon"),
        "sequential",
        "output.weight" not in file.shapes,
    )
    names = ("token_embd", "token_embd_norm", "output_norm", "output", "blk.{t}.")
    return found, Layout(_sources(names, _GGUF_BLOCK, unfuse(1, 1, 1, 1)))


def layout(spec: Spec) -> Layout:
    """The tensor names of Hugging Face's BLOOM."""
    names = ("word_embeddings", "word_embeddings_layernorm", "ln_f", "lm_head", "h.{t}.")
    sources = _sources(tuple("transformer." * (n != "lm_head") + n for n in names), _BLOCK, unfuse(spec.heads, 1, 1, 1))
    return Layout(sources, prefix="transformer.")


def _spec(vocab, layers, dim, heads, head_dim, eps, wiring, tied) -> Spec:
    return Spec(
        family="bloom",
        vocab=vocab,
        layers=layers,
        dim=dim,
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        hidden=4 * dim,
        eps=eps,
        scale=head_dim**-0.5,
        activation="gelu_new",
        wiring=wiring,
        alibi=Alibi(),
        embedding_norm=True,
        tied=tied,
    )


def _sources(names, block, part) -> dict[str, Source]:
    embedding, embedding_norm, final, head, at = names
    sources = {"embedding": Source(f"{embedding}.weight"), "head": Source(f"{head}.weight")}
    for ours, theirs in (("scale", "weight"), ("bias", "bias")):
        sources[f"entrance/norm/{ours}"] = Source(f"{embedding_norm}.{theirs}")
        sources[f"exit/norm/{ours}"] = Source(f"{final}.{theirs}")
        for norm in ("norm1", "norm2"):
            sources[f"block/{norm}/{ours}"] = Source(f"{at}{block[norm]}.{theirs}")
    for theirs in ("weight", "bias"):
        for k, name in enumerate(("query", "key", "value")):
            sources[f"block/attention/{name}/{theirs}"] = Source(f"{at}{block['qkv']}.{theirs}", part(k))
        sources[f"block/attention/out/{theirs}"] = Source(f"{at}{block['out']}.{theirs}")
        for name in ("up", "down"):
            sources[f"block/mlp/{name}/{theirs}"] = Source(f"{at}{block[name]}.{theirs}")
    return sources
