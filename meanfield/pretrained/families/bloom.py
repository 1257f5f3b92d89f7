"""BLOOM: ALiBi added after q·k/√d, fused per head [q, k, v], LayerNorm on the embedding, tanh GELU, tied head."""

from ..checkpoint.gguf_file import Gguf
from ..checkpoint.layout import Layout, fused, sources, unfuse
from ..config import Config, divides
from ..spec import Alibi, Spec


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
    names, takes = fused("blk.{t}.attn_qkv", unfuse(1, 1, 1, 1))
    names |= {
        "embedding": "token_embd",
        "head": "output",
        "entrance/norm": "token_embd_norm",
        "exit/norm": "output_norm",
        "block/norm1": "blk.{t}.attn_norm",
        "block/norm2": "blk.{t}.ffn_norm",
        "block/attention/out": "blk.{t}.attn_output",
        "block/mlp/up": "blk.{t}.ffn_up",
        "block/mlp/down": "blk.{t}.ffn_down",
    }
    return found, Layout(sources(names, takes))


def layout(spec: Spec) -> Layout:
    """The tensor names of Hugging Face's BLOOM."""
    at = "transformer.h.{t}."
    names, takes = fused(at + "self_attention.query_key_value", unfuse(spec.heads, 1, 1, 1))
    names |= {
        "embedding": "transformer.word_embeddings",
        "head": "lm_head",
        "entrance/norm": "transformer.word_embeddings_layernorm",
        "exit/norm": "transformer.ln_f",
        "block/norm1": at + "input_layernorm",
        "block/norm2": at + "post_attention_layernorm",
        "block/attention/out": at + "self_attention.dense",
        "block/mlp/up": at + "mlp.dense_h_to_4h",
        "block/mlp/down": at + "mlp.dense_4h_to_h",
    }
    return Layout(sources(names, takes), prefix="transformer.")


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
