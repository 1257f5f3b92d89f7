"""`preset`: an `Architecture` from the tables of arXiv 2602.16837 (mixing.json beside this file)."""

import functools
import importlib.resources
import json
import math

import jax.numpy as jnp

from ..architecture import Architecture
from ..biases import alibi_slopes

NAMES = ("bloom", "bloom-7b1", "falcon-rw-7b", "mpt-7b", "mpt-30b")
_ALIASES = {"bloom-176b": "bloom"}
_SCALED_BIAS = ("falcon-rw-7b",)  # Falcon multiplies ALiBi by 1/√head_dim together with q·k


@functools.cache
def _table() -> dict:
    text = importlib.resources.files(__package__).joinpath("mixing.json").read_text()
    return json.loads(text)["models"]


def preset(
    name: str,
    content: str = "none",
    dataset: str = "fineweb-edu",
    convention: str = "checkpoint",
) -> Architecture:
    """The architecture of a published model with its measured mixing coefficients and, if asked, mean content.

    - name: bloom (also bloom-176b), bloom-7b1, falcon-rw-7b, mpt-7b, mpt-30b.
    - content: "none", or "mean" (one diagonal for all layers and heads: mean q·k on the diagonal minus that strictly below).
    - dataset: the corpus of the measurement: fineweb-edu, dclm, wikipedia.
    - convention: "checkpoint" follows the models (BLOOM's 64 + 48 slopes, 1/√head_dim on Falcon's bias and on the content);
      "published" follows the paper's tables (slopes 2^{−8(h+1)/H}, nothing divided by √head_dim).

    `ValueError` for an unknown name.

    Source: arXiv 2602.16837.

    Examples:
        >>> arch = mf.propagation.preset("bloom-7b1")
        >>> arch.depth, arch.num_heads
        (30, 32)
    """
    table = _table()
    key = _ALIASES.get(name, name)
    _known("name", key, [*table, *_ALIASES])
    _known("content", content, ["none", "mean"])
    _known("dataset", dataset, list(table[key]["mixing"]))
    _known("convention", convention, ["checkpoint", "published"])
    model = table[key]
    scale = 1 / math.sqrt(model["head_dim"]) if convention == "checkpoint" else 1.0
    slopes = alibi_slopes(model["heads"], convention) * (scale if key in _SCALED_BIAS else 1.0)
    diagonal = model["mean_content_unscaled"][dataset]["diagonal"] * scale if content == "mean" else 0.0
    return Architecture(jnp.asarray(model["mixing"][dataset]), slopes, diagonal=diagonal)


def head_dim(name: str) -> int:
    """The head dimension of a preset: logits carry 1/√head_dim."""
    key = _ALIASES.get(name, name)
    _known("name", key, list(_table()))
    return _table()[key]["head_dim"]


def _known(argument: str, value: str, choices: list[str]) -> None:
    if value not in choices:
        raise ValueError(f"{argument} = {value!r} is unknown: use one of {', '.join(choices)}")
