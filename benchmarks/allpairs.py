"""All-pairs sums: every method against peers at the same shapes, n = 10³ … 10⁶."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from ._peers import PEERS
from .measure import table, timed

BETA = 4.0
DIMENSIONS = (2, 3, 16, 64)
SIZES = {np.float32: (1024, 4096, 16384), np.float64: (1024, 4096)}  # n×n arrays of peers must fit small machines
LARGE = (100_000, 1_000_000)  # d ≤ 3, where sums are near-linear


def run(out: pathlib.Path) -> None:
    """Writes allpairs after every row, so that what was measured is kept."""
    rows = []
    with jax.enable_x64(True):
        for dtype, sizes in SIZES.items():
            for d in DIMENSIONS:
                for n in (*sizes, *(LARGE if d <= 3 and dtype is np.float32 else ())):
                    rows.append(_row(n, d, dtype))
                    table(rows, out / "allpairs", "All-pairs sums", NOTE)


NOTE = (
    f"One velocity at β = {BETA}, uniform tokens and weights, seconds per call: median (fastest–slowest). Peers return the drift "
    "without its projection; torch's attention is the softmax form. From n = 10⁵ sums over n² pairs were not run. "
    "Where torch's attention is faster than blocked: its product of a tile with few columns (A V) is, Q Kᵀ and exponentials are not."
)


def tokens(n: int, d: int, dtype=np.float32) -> np.ndarray:
    """Uniform tokens."""
    x = np.random.default_rng(0).normal(size=(n, d))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(dtype)


def ours(x: np.ndarray, method: str, beta: float = BETA):
    """A compiled velocity, and its name."""
    rho = mf.Marginal(np.zeros(len(x), x.dtype), np.full(len(x), 1 / len(x), x.dtype))
    field = mf.USA(mf.ExpDot(beta, shift=1.0)).bind(rho, x.shape[1], x.dtype, method)
    compiled = jax.jit(lambda x: field(x))
    x = jnp.asarray(x)
    return (lambda: compiled(x)), field.method


def _row(n: int, d: int, dtype) -> dict:
    x = tokens(n, d, dtype)
    row = {"n": n, "d": d, "dtype": np.dtype(dtype).name}
    pairs = n <= max(SIZES[np.float32])
    for method in ("blocked", "expansion") if d <= 3 else ("blocked",):
        row[method] = timed(ours(x, method)[0], 3, 3.0) if pairs or method == "expansion" else "not run"
    for name, peer in PEERS.items():
        call = peer(x, BETA) if pairs else "not run"
        row[name] = timed(call, 3, 3.0) if callable(call) else call or "not installed"
    return row
