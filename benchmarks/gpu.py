"""Checks and timings on a GPU in under four minutes; writes "not measured" where there is none. Needs neither xarray nor zarr."""

import importlib.util
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from .measure import table, timed

BETA, BUDGET = 4.0, 220.0


def run(out: pathlib.Path) -> None:
    """Writes gpu_correctness and gpu_time."""
    if jax.default_backend() != "gpu":
        reason = [{"status": "not measured", "reason": f"the backend is {jax.default_backend()}"}]
        table(reason, out / "gpu_correctness", "GPU: float32 against float64")
        table(reason, out / "gpu_time", "GPU: seconds per velocity")
        return
    start = time.perf_counter()
    table(
        _correctness(),
        out / "gpu_correctness",
        "GPU: float32 against float64 on the host, relative to the largest force",
    )
    rows = []
    for d in (2, 3, 16, 64):
        for n in (4096, 16384, 65536):
            if time.perf_counter() - start < BUDGET:
                rows.append(_row(n, d))
    table(rows, out / "gpu_time", "GPU: seconds per velocity, float32")


def _tokens(n: int, d: int) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(n, d))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def _velocity(x: np.ndarray, method: str):
    rho = mf.Marginal(np.zeros(len(x), np.float32), np.full(len(x), 1 / len(x), np.float32))
    field = mf.USA(mf.ExpDot(BETA, shift=1.0)).bind(rho, x.shape[1], jnp.dtype("float32"), method)
    compiled = jax.jit(lambda x: field(x))
    x = jnp.asarray(x)
    return lambda: compiled(x)


def _correctness(n: int = 4096) -> list[dict]:
    rows = []
    for d in (2, 3, 16, 64):
        x = _tokens(n, d)
        exact = x.astype(np.float64)
        force = np.exp(BETA * (exact @ exact.T - 1)) @ exact / n
        exact = force - np.sum(force * exact, axis=1, keepdims=True) * exact
        for method in ("dense", "blocked", "expansion") if d <= 3 else ("dense", "blocked"):
            error = np.abs(np.asarray(_velocity(x, method)()) - exact).max() / np.linalg.norm(force, axis=1).max()
            rows.append({"n": n, "d": d, "method": method, "error": float(error)})
    return rows


def _row(n: int, d: int) -> dict:
    x = _tokens(n, d)
    row = {"n": n, "d": d}
    for method in ("dense", "blocked", "expansion") if d <= 3 else ("dense", "blocked"):
        if method == "dense" and n > 32768:
            continue
        row[method] = timed(_velocity(x, method), 5, 4.0)
    q = jnp.asarray(x)
    product = jax.jit(lambda q: jnp.sum(q @ q.T, axis=1))
    row["Q Kᵀ and row sums alone"] = timed(lambda: product(q), 5, 4.0)
    row["KeOps"] = _keops(x)
    return row


def _keops(x: np.ndarray):
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("pykeops") is None:
        return "not installed"
    import torch

    if not torch.cuda.is_available():
        return "no torch device"
    from pykeops.torch import LazyTensor

    x = torch.from_numpy(x).cuda()
    target, source = LazyTensor(x[:, None, :]), LazyTensor(x[None, :, :])

    def call():
        out = ((((target | source) - 1) * BETA).exp() * source).sum(1)
        torch.cuda.synchronize()
        return out

    return timed(call, 5, 4.0)
