"""Tokenizers of checkpoints, through the `tokenizers` library."""

import pathlib
from typing import Any


def folder_tokenizer(folder: pathlib.Path) -> Any:
    """The tokenizer of a folder's tokenizer.json, or None."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        return None
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(
            f"{path} is not a tokenizer that `tokenizers` reads: {error}; remove it to use token ids"
        ) from error


def gguf_tokenizer(metadata: dict[str, Any]) -> Any:
    """The byte-level BPE of a GGUF vocabulary, or None for other kinds (use token ids there).

    The pre-tokenizer is GPT-2's, with digits split one by one where the file says so (`smollm`, `starcoder`, `refact`,
    `command-r`); for other kinds of `tokenizer.ggml.pre` there is None, rather than a tokenizer that nearly fits.
    """
    if metadata.get("tokenizer.ggml.model") != "gpt2" or "tokenizer.ggml.merges" not in metadata:
        return None
    pre = metadata.get("tokenizer.ggml.pre", "default")
    digits = pre in ("smollm", "starcoder", "refact", "command-r")
    if not digits and pre not in ("default", "gpt-2"):
        return None
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=bool(metadata.get("tokenizer.ggml.add_space_prefix", False)))
    first = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*first, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    special = [t for t, kind in zip(tokens, metadata.get("tokenizer.ggml.token_type", []), strict=False) if kind == 3]
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    return tokenizer
