"""One file per family: what its configuration means, and what its tensors are called."""

from types import ModuleType

from ..checkpoint.gguf_file import Gguf
from ..checkpoint.layout import Layout
from ..config import Config
from ..spec import Spec
from . import bloom, falcon, gpt2, llama, mpt, neox

_BY_MODEL_TYPE: dict[str, ModuleType] = {
    "bloom": bloom,
    "mpt": mpt,
    "falcon": falcon,
    "RefinedWeb": falcon,
    "RefinedWebModel": falcon,
    "llama": llama,
    "mistral": llama,
    "qwen2": llama,
    "gpt2": gpt2,
    "gpt_neox": neox,
}
_BY_GGUF_ARCHITECTURE: dict[str, ModuleType] = {"llama": llama, "qwen2": llama, "bloom": bloom}


def from_config(config: Config) -> tuple[Spec, Layout]:
    """The spec and tensor names that a config.json describes; an unknown `model_type` is named."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in _BY_MODEL_TYPE:
        raise ValueError(f"{config.where}: model_type {kind!r} is not known; supported: {', '.join(_BY_MODEL_TYPE)}")
    if config.get("quantization_config", default=None) is not None:
        raise ValueError(
            f"{config.where}: quantization_config: quantised safetensors are not read; use the original or a GGUF"
        )
    family = _BY_MODEL_TYPE[kind]
    spec = family.spec(config)
    config.finish()
    return spec, family.layout(spec)


def from_gguf(file: Gguf) -> tuple[Spec, Layout]:
    """The spec and tensor names that a GGUF header describes."""
    kind = file.metadata.get("general.architecture")
    if not isinstance(kind, str) or kind not in _BY_GGUF_ARCHITECTURE:
        known = ", ".join(_BY_GGUF_ARCHITECTURE)
        raise ValueError(f"{file.path}: GGUF architecture {kind!r} is not known; supported: {known}")
    keys = {k.removeprefix(kind + "."): v for k, v in file.metadata.items() if k.startswith(kind + ".")}
    keys.setdefault("vocab_size", next(iter(file.shapes.get("token_embd.weight", ())), None))
    config = Config(keys, file.path)
    found = _BY_GGUF_ARCHITECTURE[kind].gguf(config, file)
    config.finish()
    return found
