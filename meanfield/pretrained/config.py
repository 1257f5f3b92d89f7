"""Configurations: every key is taken by name, so that a key which would change the attention is never passed over."""

import math
import re
from typing import Any

from .spec import Rotary

_MISSING = object()
_RELEVANT = re.compile(
    r"att|rope|rotary|alibi|window|scal|norm|qk|head|softmax|clip|logit|quant|multiplier|residual|position|bias|act|mlp|moe"
    r"|expert|expansion|gate|layer|parallel|ln_|embed"
)
_HARMLESS = re.compile(
    r"dropout|pdrop|drop_rate|_impl$|implementation|attn_implementation|initializer|init_|output_|summary_|_token|use_cache"
    r"|max_position_embeddings|pretraining_tp|slow_but_exact|softmax_in_fp32|softmax_fusion|skip_bias_add|dropout_fusion"
    r"|hidden_layers_out|label|chunk_size|cross_attention_hidden|is_decoder|prune|architectures|original_max|embedding_fraction"
    r"|reorder_and_upcast|_name_or_path|gradient_checkpointing|max_window_layers|layer_types|problem_type|use_bfloat|model_type"
)


class Config:
    """The keys of a config.json (or of a GGUF header), taken one by one under any of their spellings."""

    def __init__(self, values: dict[str, Any], where: str):
        self.values, self.where = values, where
        self.used: set[str] = set()

    def get(self, *names: str, default: Any = _MISSING) -> Any:
        """The value of the first of `names` that is present and not null; an error naming them if there is no default."""
        self.used.update(names)
        for name in names:
            if self.values.get(name) is not None:
                return self.values[name]
        if default is _MISSING:
            raise ValueError(f"{self.where}: {' or '.join(names)} is missing; add it to the configuration")
        return default

    def size(self, *names: str, default: Any = _MISSING) -> int:
        """A positive integer."""
        value = self.get(*names, default=default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
            raise ValueError(f"{self.where}: {names[0]}={value!r} must be a positive integer")
        return value

    def number(self, *names: str, default: Any = _MISSING, positive: bool = True) -> float:
        """A finite number, positive unless said otherwise."""
        value = self.get(*names, default=default)
        bad = isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value)
        if bad or (positive and value <= 0):
            raise ValueError(f"{self.where}: {names[0]}={value!r} must be a finite{' positive' * positive} number")
        return float(value)

    def flag(self, *names: str, default: Any = _MISSING) -> bool:
        """True or false."""
        value = self.get(*names, default=default)
        if not isinstance(value, bool):
            raise ValueError(f"{self.where}: {names[0]}={value!r} must be true or false")
        return value

    def only(self, name: str, *allowed: Any) -> None:
        """Refuses any value of `name` but `allowed` (an absent key is fine)."""
        value = self.get(name, default=None)
        if value is not None and value not in allowed:
            raise ValueError(
                f"{self.where}: {name}={value!r} is not supported (only {', '.join(map(repr, allowed))}): this model "
                "would be computed differently from its authors' code"
            )

    def section(self, name: str) -> "Config":
        """A nested table as its own Config."""
        value = self.get(name, default={})
        if not isinstance(value, dict):
            raise ValueError(f"{self.where}: {name}={value!r} must be a table")
        return Config(value, f"{self.where}: {name}")

    def finish(self) -> None:
        """Refuses by name what was not read although it may change the computation."""
        for name, value in self.values.items():
            if name in self.used or value in (None, False, {}, [], "") or _HARMLESS.search(name):
                continue
            if _RELEVANT.search(name):
                raise ValueError(f"{self.where}: {name}={value!r} is not understood; remove it if it does not matter")


def rotary(config: Config, head_dim: int, fraction: float = 1.0, base: tuple[str, ...] = ("rope_theta",)) -> Rotary:
    """The rotary embedding of a configuration, in its old (`rope_theta`, `rope_scaling`) or new (`rope_parameters`) spelling."""
    new, old = config.section("rope_parameters"), config.section("rope_scaling")
    theta = new.number("rope_theta", default=config.number(*base, default=10000.0))
    fraction = new.number("partial_rotary_factor", default=config.number("partial_rotary_factor", default=fraction))
    table = old if old.values else new
    kind = table.get("rope_type", "type", default="default")
    if kind == "default":
        scaling: tuple = ("default",)
    elif kind == "linear":
        scaling = ("linear", table.number("factor"))
    elif kind == "llama3":
        low, high = table.number("low_freq_factor"), table.number("high_freq_factor")
        if not low < high:
            raise ValueError(f"{table.where}: low_freq_factor={low} must be below high_freq_factor={high}")
        scaling = ("llama3", table.number("factor"), low, high, table.number("original_max_position_embeddings"))
    else:
        raise ValueError(f"{table.where}: rope scaling {kind!r} is not supported (only 'default', 'linear', 'llama3')")
    for section in (new, old):
        section.finish()
    dim = int(fraction * head_dim)
    if dim < 2 or dim % 2 or dim > head_dim:
        raise ValueError(
            f"{config.where}: the rotary fraction {fraction} of {head_dim} coordinates is not an even number"
        )
    return Rotary(dim, theta, scaling)


def divides(config: Config, whole: int, part: int, names: str) -> int:
    """whole // part, an error naming the keys where it is not an integer."""
    if whole % part:
        raise ValueError(f"{config.where}: {names}: {whole} is not a multiple of {part}")
    return whole // part
