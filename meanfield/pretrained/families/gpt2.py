"""GPT-2: learned positions added after the look-up, Conv1D weights (in, out), [Q|K|V], tanh GELU, tied head."""

from ..checkpoint.layout import Layout, Take, fused, sources, unfuse, whole
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
    names, takes = fused(at + "attn.c_attn", unfuse(1, 1, 1, 1))
    names |= {
        "embedding": "transformer.wte",
        "head": "lm_head",
        "entrance/positions": "transformer.wpe",
        "exit/norm": "transformer.ln_f",
        "block/norm1": at + "ln_1",
        "block/norm2": at + "ln_2",
        "block/attention/out": at + "attn.c_proj",
        "block/mlp/up": at + "mlp.c_fc",
        "block/mlp/down": at + "mlp.c_proj",
    }
    for ours, theirs in names.items():
        if ".c_" in theirs:  # Conv1D
            takes[f"{ours}/weight"] = _transposed(takes.get(f"{ours}/weight", whole))
    return Layout(sources(names, takes), prefix="transformer.", ignored=r".*\.attn\.(bias|masked_bias)")


def _transposed(take: Take) -> Take:
    return lambda tensor: take(tensor.T)
