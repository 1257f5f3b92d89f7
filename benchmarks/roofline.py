"""Blocked sums against a measured roofline: the same matrix products and exponentials, timed alone in the same run."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from .allpairs import BETA, DIMENSIONS, tokens
from .measure import table, timed

SIDE, REPEATS = 512, 64
NOTE = (
    f"Roofline: Q Kᵀ, e^T and A V, each alone on one {SIDE}×{SIDE} tile that stays in cache, times the number of tiles. "
    "Temporary memory as XLA reports it, beside inputs of n·d numbers."
)


def run(out: pathlib.Path) -> None:
    """Writes roofline."""
    rows = []
    for d in DIMENSIONS:
        rows.append(_row(16384, d))
        table(rows, out / "roofline", "Blocked sums, float32", NOTE)


def _row(n: int, d: int) -> dict:
    q = jnp.asarray(tokens(SIDE, d) * (d / SIDE) ** 0.5)  # so that repeated products neither grow nor vanish
    tile = jnp.asarray(np.random.default_rng(0).uniform(size=(SIDE, SIDE)).astype(np.float32))
    products = jax.jit(lambda q, a: jax.lax.fori_loop(0, REPEATS, lambda i, s: 0.5 * s + 0.5 * (s @ q.T) @ q, q))
    exponentials = jax.jit(lambda a: jax.lax.fori_loop(0, REPEATS, lambda i, s: jnp.exp(-s), a))
    tiles = (n / SIDE) ** 2 / REPEATS
    product, exponential = (timed(lambda: products(q, tile), 5, 1.0), timed(lambda: exponentials(tile), 5, 1.0))
    x = tokens(n, d)
    rho = mf.Marginal(np.zeros(n, np.float32), np.full(n, 1 / n, np.float32))
    field = mf.USA(mf.ExpDot(BETA, shift=1.0)).bind(rho, d, x.dtype, "blocked")
    run = jax.jit(lambda x: field(x)).lower(x).compile()
    blocked = timed(lambda: run(x), 3, 4.0)
    floor = (product.median + exponential.median) * tiles
    return {
        "n": n, "d": d, "blocked": blocked, "products (s)": product.median * tiles,
        "exponentials (s)": exponential.median * tiles, "fraction of roofline": floor / blocked.median,
        "temporary memory (MB)": run.memory_analysis().temp_size_in_bytes / 1e6,
    }  # fmt: skip
