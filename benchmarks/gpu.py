"""Checks and timings on a GPU in under four minutes; writes "not measured" where there is none. Needs neither xarray nor zarr."""

import importlib.util
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from .measure import table, timed

BETA, BUDGET = 4.0, 180.0  # seconds after which no new size is begun: the last one stays under four minutes in all
DIMENSIONS = (2, 3, 16, 64)
LARGEST = {"dense": 32768, "blocked": 65536, "pallas": 262144, "expansion": 262144}
ERRORS = (
    "Velocity relative to the largest force; gradient of ½Σ‖v‖² relative to its largest entry, against blocked sums."
)
FLOOR = "Floor: Q Kᵀ and A V alone, as matrix products of n = 8192 in XLA, scaled as n²."


def run(out: pathlib.Path) -> None:
    """Writes gpu_correctness and gpu_time."""
    if jax.default_backend() != "gpu":
        reason = [{"status": "not measured", "reason": f"the backend is {jax.default_backend()}"}]
        table(reason, out / "gpu_correctness", "GPU: float32 against float64")
        table(reason, out / "gpu_time", "GPU: seconds per velocity")
        return
    start = time.perf_counter()
    rows: list[dict] = []
    for d in DIMENSIONS:
        rows += _correctness(d)
        table(rows, out / "gpu_correctness", "GPU: float32 against float64 on the host", ERRORS)
    rows = []
    for n in (4096, 16384, 65536, 262144):
        for d in DIMENSIONS:
            if time.perf_counter() - start < BUDGET:
                rows.append(_row(n, d))
                table(rows, out / "gpu_time", "GPU: seconds per velocity, and per gradient of ½Σ‖v‖²; float32", FLOOR)


def _tokens(n: int, d: int) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(n, d))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def _field(x: np.ndarray, method: str):
    rho = mf.Marginal(np.zeros(len(x), np.float32), np.full(len(x), 1 / len(x), np.float32))
    return mf.USA(mf.ExpDot(BETA, shift=1.0)).bind(rho, x.shape[1], jnp.dtype("float32"), method)


def _velocity(x: np.ndarray, method: str):
    field = _field(x, method)
    compiled = jax.jit(lambda x: field(x))
    x = jnp.asarray(x)
    return lambda: compiled(x)


def _methods(d: int) -> tuple[str, ...]:
    return ("dense", "blocked", "pallas", "expansion") if d <= 3 else ("dense", "blocked", "pallas")


def _correctness(d: int, n: int = 4095) -> list[dict]:
    """n is no multiple of a tile."""
    x, rows = _tokens(n, d), []
    exact = x.astype(np.float64)
    force = np.exp(BETA * (exact @ exact.T - 1)) @ exact / n
    exact = force - np.sum(force * exact, axis=1, keepdims=True) * exact
    slopes = np.asarray(_gradient(x, "blocked")())
    for method in _methods(d):
        row = {"n": n, "d": d, "method": method}
        try:
            error = np.abs(np.asarray(_velocity(x, method)()) - exact).max() / np.linalg.norm(force, axis=1).max()
            row["velocity error"] = float(error)
            row["gradient error"] = float(
                np.abs(np.asarray(_gradient(x, method)()) - slopes).max() / np.abs(slopes).max()
            )
        except Exception as failure:  # a kernel this compiler refuses must not hide what the others do
            row["failed"] = f"{type(failure).__name__}: {str(failure).splitlines()[0][:120]}"
        rows.append(row)
    return rows


def _gradient(x: np.ndarray, method: str):
    field = _field(x, method)
    compiled = jax.jit(jax.grad(lambda x: 0.5 * jnp.sum(field(x) ** 2)))
    x = jnp.asarray(x)
    return lambda: compiled(x)


def _row(n: int, d: int) -> dict:
    x = _tokens(n, d)
    row = {"n": n, "d": d}
    for method in _methods(d):
        if n > LARGEST[method]:
            continue
        try:
            row[method] = timed(_velocity(x, method), 3, 1.5)
            if n <= 65536 and method != "dense":
                row[f"{method}, gradient"] = timed(_gradient(x, method), 3, 1.5)
        except Exception as failure:  # out of memory, or refused by the compiler
            row[method] = type(failure).__name__
    row["floor (s)"] = _floor(d) * (n / 8192) ** 2
    row["KeOps"] = _keops(x)
    return row


def _floor(d: int, n: int = 8192) -> float:
    """Seconds of the two products of one n×n velocity alone."""
    q = jnp.asarray(_tokens(n, d))
    a = jnp.ones((n, n), jnp.float32)
    products = jax.jit(lambda q, a: (q @ q.T, a @ q))
    return timed(lambda: products(q, a), 3, 0.5).median


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

    return timed(call, 3, 1.5)
