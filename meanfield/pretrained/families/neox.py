"""GPT-NeoX (Pythia): fused per head [q, k, v], RoPE on a fraction of the coordinates, parallel residual, untied head."""

from ..checkpoint.layout import Layout, fused, sources, unfuse
from ..config import Config, divides, rotary
from ..layers import ACTIVATIONS
from ..spec import Spec


def spec(config: Config) -> Spec:
    """What a GPT-NeoX config.json describes, with `rotary_pct`, `rotary_emb_base` or `rope_parameters`."""
    dim, heads = config.size("hidden_size"), config.size("num_attention_heads")
    head_dim = divides(config, dim, heads, "hidden_size and num_attention_heads")
    activation = config.get("hidden_act", default="gelu")
    config.only("hidden_act", *ACTIVATIONS)
    bias = config.flag("attention_bias", default=True)
    fraction = config.number("rotary_pct", default=0.25)
    return Spec(
        family="gpt_neox",
        vocab=config.size("vocab_size"),
        layers=config.size("num_hidden_layers"),
        dim=dim,
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        hidden=config.size("intermediate_size"),
        eps=config.number("layer_norm_eps", default=1e-5),
        scale=head_dim**-0.5,
        activation=activation,
        qkv_bias=bias,
        out_bias=bias,
        wiring="parallel" if config.flag("use_parallel_residual", default=True) else "sequential",
        rotary=rotary(config, head_dim, fraction, ("rotary_emb_base", "rope_theta")),
        tied=config.flag("tie_word_embeddings", default=False),
    )


def layout(spec: Spec) -> Layout:
    """The tensor names of Hugging Face's GPT-NeoX."""
    at = "gpt_neox.layers.{t}."
    names, takes = fused(at + "attention.query_key_value", unfuse(spec.heads, 1, 1, 1))
    names |= {
        "embedding": "gpt_neox.embed_in",
        "head": "embed_out",
        "exit/norm": "gpt_neox.final_layer_norm",
        "block/norm1": at + "input_layernorm",
        "block/norm2": at + "post_attention_layernorm",
        "block/attention/out": at + "attention.dense",
        "block/mlp/up": at + "mlp.dense_h_to_4h",
        "block/mlp/down": at + "mlp.dense_4h_to_h",
    }
    buffers = r".*attention\.(bias|masked_bias|rotary_emb\.inv_freq)"
    return Layout(sources(names, takes), prefix="gpt_neox.", ignored=buffers)
