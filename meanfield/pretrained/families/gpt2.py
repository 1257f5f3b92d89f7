"""GPT-2: learned positions added after the look-up, Conv1D weights (in, out), [Q|K|V], tanh GELU, tied head."""

from ..checkpoint.layout import Layout, Source, unfuse
from ..config import Config, divides
from ..layers import ACTIVATIONS
from ..spec import Spec


def spec(config: Config) -> Spec:
    """What a GPT-2 config.json describes."""
    dim, heads = config.size("n_embd", "hidden_size"), config.size("n_head", "num_attention_heads")
    head_dim = divides(config, dim, heads, "n_embd and n_head")
    activation = config.get("activation_function", default="gelu_new")
    config.only("activation_function", *ACTIVATIONS)
    config.only("add_cross_attention", False)
    return Spec(
        family="gpt2",
        vocab=config.size("vocab_size"),
        layers=config.size("n_layer", "num_hidden_layers"),
        dim=dim,
        heads=heads,
        kv_heads=heads,
        head_dim=head_dim,
        hidden=config.size("n_inner", default=4 * dim),
        eps=config.number("layer_norm_epsilon", default=1e-5),
        scale=head_dim**-0.5 if config.flag("scale_attn_weights", default=True) else 1.0,
        scale_by_depth=config.flag("scale_attn_by_inverse_layer_idx", default=False),
        activation=activation,
        positions=config.size("n_positions", "n_ctx", "max_position_embeddings"),
        tied=config.flag("tie_word_embeddings", default=True),
    )


def layout(spec: Spec) -> Layout:
    """The tensor names of Hugging Face's GPT-2."""
    at = "transformer.h.{t}."
    part = unfuse(1, 1, 1, 1)
    sources = {
        "embedding": Source("transformer.wte.weight"),
        "head": Source("lm_head.weight"),
        "entrance/positions": Source("transformer.wpe.weight"),
    }
    for ours, theirs in (("scale", "weight"), ("bias", "bias")):
        sources[f"exit/norm/{ours}"] = Source(f"transformer.ln_f.{theirs}")
        sources[f"block/norm1/{ours}"] = Source(f"{at}ln_1.{theirs}")
        sources[f"block/norm2/{ours}"] = Source(f"{at}ln_2.{theirs}")
    for k, name in enumerate(("query", "key", "value")):
        sources[f"block/attention/{name}/weight"] = Source(at + "attn.c_attn.weight", _transposed(part(k)))
        sources[f"block/attention/{name}/bias"] = Source(at + "attn.c_attn.bias", part(k))
    for ours, theirs in (("attention/out", "attn.c_proj"), ("mlp/up", "mlp.c_fc"), ("mlp/down", "mlp.c_proj")):
        sources[f"block/{ours}/weight"] = Source(f"{at}{theirs}.weight", _transposed(lambda tensor: tensor))
        sources[f"block/{ours}/bias"] = Source(f"{at}{theirs}.bias")
    return Layout(sources, prefix="transformer.", ignored=r".*\.attn\.(bias|masked_bias)")


def _transposed(take):
    return lambda tensor: take(tensor.T)
