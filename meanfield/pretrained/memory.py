"""How much memory a measurement takes, before it is begun."""

from typing import Any

import jax
import ml_dtypes  # noqa: F401  (registers bfloat16 with NumPy)
import numpy as np

from .block import shapes
from .spec import Spec
from .weights import HEAD_ROWS


def memory_estimate(
    spec: Spec, batch: int, length: int, *, stored: Any = "bfloat16", dtype: Any = "float32", stream: bool = True
) -> int:
    """Bytes that `measure` needs at most, beside the program itself.

    Weights: all of them in memory, or (`stream`) one layer and a slice of the head; a layer's weights are also held in `dtype` where the
    files `stored` them in another. Activations: the stream entering every layer is kept for the pass down; inside a layer a few
    (B, n, width) arrays live at once, and, on short sequences or for "backprop" and "alti", a few of (B, H, n, n). Result: the mean
    attention of every layer. BLOOM-176B (352 GB of bfloat16), one sequence of 256 tokens: 18 GB.

    Examples:
        >>> spec = mf.pretrained.Spec(
        ...     family="example", vocab=16, layers=2, dim=8, heads=2, kv_heads=2, head_dim=4, hidden=16,
        ...     eps=1e-5, scale=0.5, alibi=mf.pretrained.Alibi(),
        ... )
        >>> mf.pretrained.memory_estimate(spec, batch=1, length=6) > 0
        True
    """
    stored, item = np.dtype(stored).itemsize, np.dtype(dtype).itemsize
    tree = shapes(spec)
    layer = sum(int(np.prod(shape)) for shape in jax.tree.leaves(tree["block"], is_leaf=lambda s: isinstance(s, tuple)))
    ends = (1 if spec.tied else 2) * spec.vocab * spec.dim
    weights = layer + min(spec.vocab, HEAD_ROWS) * spec.dim if stream else spec.layers * layer + ends
    working = layer * item if stored != item else layer * item * (not stream)
    streams = (spec.layers + 6) * batch * length * spec.dim * item
    inside = (
        batch * item * (10 * spec.heads * length**2 + 8 * length * (3 * spec.heads * spec.head_dim + 3 * spec.hidden))
    )
    result = spec.layers * length**2 * item
    return weights * stored + working + streams + inside + result
