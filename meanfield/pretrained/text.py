"""Texts as windows of token ids."""

import numpy as np

from .._types import Int


def windows(
    ids: Int[np.ndarray, " m"], count: int, length: int, *, shuffle: bool = False, seed: int = 0
) -> Int[np.ndarray, "count length"]:
    """`count` windows of `length` tokens, evenly spaced over a text (they overlap where it is short).

    `shuffle` permutes the tokens of the text first: the same tokens without their order. Raises ValueError where the text is
    shorter than one window.

    Examples:
        >>> mf.pretrained.windows(np.arange(10), count=2, length=4).tolist()
        [[0, 1, 2, 3], [6, 7, 8, 9]]
    """
    ids = np.asarray(ids)
    if count < 1 or length < 2:
        raise ValueError(f"windows={count} and length={length}: ask for at least one window of at least two tokens")
    if len(ids) < length:
        raise ValueError(
            f"the text has {len(ids)} tokens, fewer than length={length}: give a longer text or a shorter length"
        )
    if shuffle:
        ids = np.random.default_rng(seed).permutation(ids)
    starts = np.linspace(0, len(ids) - length, count).astype(int)
    return np.stack([ids[start : start + length] for start in starts])
