"""Front door: a checkpoint folder or GGUF file as a model."""

import pathlib
from typing import Any

from .._check import float_dtype
from .checkpoint.folder import Safetensors, read_json
from .checkpoint.gguf_file import Gguf
from .checkpoint.layout import Checkpoint
from .checkpoint.tokenizer import folder_tokenizer, gguf_tokenizer
from .config import Config
from .families import from_config, from_gguf
from .model import Model
from .weights import Streamed, resident


def load(path: str | pathlib.Path, *, stream: bool = False, dtype: Any = "float32") -> Model:
    """Loads a causal language model; nothing is unpickled, no code of the checkpoint runs, no weight is ever random.

    Args:
        path: a Hugging Face folder (config.json and safetensors, one file or sharded) or a .gguf file.
        stream: leave the weights on disk and read them layer by layer, forward and backward: for models larger than memory.
        dtype: precision of the arithmetic. Weights in memory keep the files' precision.

    Returns:
        The model, with its tokenizer where the checkpoint has one that the `tokenizers` library reads.

    Raises:
        ValueError, FileNotFoundError: naming the file, key or tensor that is missing, unused, of the wrong shape, damaged or
            not supported.

    Examples:
        >>> try:
        ...     mf.pretrained.load("no/such/folder")
        ... except FileNotFoundError as error:
        ...     print(str(error).split(":")[0])
        no/such/folder is neither a folder with config.json and safetensors nor a .gguf file
    """
    path = pathlib.Path(path)
    dtype = float_dtype(dtype)
    if path.is_dir():
        config = Config(read_json(path / "config.json"), str(path / "config.json"))
        tensors = Safetensors(path)
        checkpoint = Checkpoint(*from_config(config), tensors)
        tokenizer = folder_tokenizer(path)
    elif path.suffix == ".gguf" and path.is_file():
        file = Gguf(path)
        checkpoint = Checkpoint(*from_gguf(file), file)
        tokenizer = gguf_tokenizer(file.metadata)
    else:
        raise FileNotFoundError(
            f"{path} is neither a folder with config.json and safetensors nor a .gguf file: nothing is downloaded, fetch "
            f"the files first, e.g. `hf download {path} --local-dir DIR`, and pass their folder"
        )
    weights = Streamed(checkpoint) if stream else resident(checkpoint)
    return Model(checkpoint.spec, weights, dtype, tokenizer)
