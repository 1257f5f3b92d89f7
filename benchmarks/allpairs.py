"""All-pairs sums: every method against peers at the same shapes, a measured roofline, errors, cost exponent and memory."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from ._peers import PEERS
from .measure import table, timed

BETA = 4.0
DIMENSIONS = (2, 3, 16, 64)
PEER_PAIRS = 16384**2  # beyond this n×n arrays do not fit small machines
BLOCKED_PAIRS = 32768**2


def run(out: pathlib.Path) -> None:
    """Writes allpairs, allpairs_roofline, allpairs_accuracy and allpairs_scaling."""
    table(
        _against_peers(),
        out / "allpairs",
        "All-pairs sums",
        f"Velocity at β = {BETA}, uniform tokens, seconds per call.",
    )
    table(_roofline(), out / "allpairs_roofline", "Blocked sums against the same products and exponentials alone")
    table(
        _accuracy(), out / "allpairs_accuracy", "Error of expansions relative to max_i Σ_j w_j‖∇h‖, n = 4096, shift = 1"
    )
    table(_scaling(), out / "allpairs_scaling", "Expansions from 10⁴ to 10⁶ tokens, float32, β = 4")


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


def _against_peers() -> list[dict]:
    rows = []
    with jax.enable_x64(True):
        for dtype in (np.float32, np.float64):
            for d in DIMENSIONS:
                for n in (1024, 4096, 16384) if dtype == np.float32 else (4096,):
                    rows.append(_row(n, d, dtype))
    return rows


def _row(n: int, d: int, dtype) -> dict:
    x = tokens(n, d, dtype)
    row = {"n": n, "d": d, "dtype": np.dtype(dtype).name}
    for method in ("blocked", "expansion") if d <= 3 else ("blocked",):
        row[method] = timed(ours(x, method)[0], 3, 4.0)
    for name, peer in PEERS.items():
        call = peer(x, BETA) if n * n <= PEER_PAIRS else None
        row[name] = "not installed" if call is None else timed(call, 3, 4.0)
    return row


def _roofline(n: int = 16384) -> list[dict]:
    """Floor: the products Q Kᵀ and A V and the exponential, each alone on one cache-sized tile, times the number of tiles."""
    rows, side = [], 512
    for d in DIMENSIONS:
        q = jnp.asarray(tokens(side, d))
        tile = jnp.asarray(np.random.default_rng(0).normal(size=(side, side)).astype(np.float32))
        products = jax.jit(lambda q, a: jax.lax.fori_loop(0, 64, lambda i, s: s * 0.5 + (s @ q.T) @ q, q))
        exponentials = jax.jit(lambda a: jax.lax.fori_loop(0, 64, lambda i, s: jnp.exp(-s), a))
        floor = (timed(lambda q=q, t=tile: products(q, t)).median + timed(lambda t=tile: exponentials(t)).median) / 64
        floor *= (n / side) ** 2
        x = tokens(n, d)
        blocked = timed(ours(x, "blocked")[0], 3, 8.0)
        rows.append(
            {"n": n, "d": d, "blocked": blocked, "floor (s)": floor, "fraction of roofline": floor / blocked.median}
        )
        rows[-1]["temporary memory (MB)"] = _memory(x) / 1e6
    return rows


def _memory(x: np.ndarray) -> int:
    rho = mf.Marginal(np.zeros(len(x), x.dtype), np.full(len(x), 1 / len(x), x.dtype))
    go = jax.jit(lambda x: mf.velocity(mf.USA(mf.ExpDot(BETA)), x, rho, method="blocked"))
    return go.lower(jnp.asarray(x)).compile().memory_analysis().temp_size_in_bytes


def _accuracy(n: int = 4096) -> list[dict]:
    rows = []
    with jax.enable_x64(True):
        for d in (2, 3):
            for beta in (1.0, 4.0, 16.0, 64.0, 256.0):
                row = {"d": d, "beta": beta}
                for dtype in (np.float32, np.float64):
                    x = tokens(n, d, dtype)
                    call, why = ours(x, "expansion", beta)
                    found, wide = np.asarray(call()), x.astype(np.float64)
                    # float32 rows are unit to 1e-7 only, which e^{βt} multiplies by β: the second reference leaves that out
                    for label, y in (("", wide), (", unit rows", wide / np.linalg.norm(wide, axis=1, keepdims=True))):
                        exact, scale = _reference(y, beta)
                        row[f"error {np.dtype(dtype).name}{label}"] = float(np.abs(found - exact).max() / scale)
                    row[f"degree {np.dtype(dtype).name}"] = int(why.split("degree ")[1])
                rows.append(row)
    return rows


def _reference(x: np.ndarray, beta: float) -> tuple[np.ndarray, float]:
    """The float64 velocity by NumPy, and max_i Σ_j w_j ‖∇h‖, ∇h tangent."""
    weights = np.exp(beta * (x @ x.T - 1)) / len(x)
    force = weights @ x
    lengths = np.sqrt(np.maximum(1 - (x @ x.T) ** 2, 0))
    return force - np.sum(force * x, axis=1, keepdims=True) * x, float((weights * lengths).sum(axis=1).max())


def _scaling() -> list[dict]:
    rows = []
    for d in (2, 3):
        counts, times = (10_000, 100_000, 1_000_000), []
        for n in counts:
            call, why = ours(tokens(n, d), "auto")
            times.append(timed(call, 3, 12.0))
            rows.append({"d": d, "n": n, "time": times[-1], "method": why.split(":")[0]})
        blocked = timed(ours(tokens(32768, d), "blocked")[0], 2, 8.0)
        extrapolated = blocked.median * (counts[-1] / 32768) ** 2
        rows[-1]["blocked, extrapolated as n² (s)"] = extrapolated
        rows[-1]["times faster than blocked"] = extrapolated / times[-1].median
        rows[-1]["cost exponent"] = float(np.polyfit(np.log(counts), [np.log(t.median) for t in times], 1)[0])
    return rows
