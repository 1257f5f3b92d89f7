"""Errors of expansions against a float64 dense sum by NumPy, β = 1 … 256, and the degree that was chosen."""

import pathlib

import jax
import numpy as np

from .allpairs import ours, tokens
from .measure import table

NOTE = (
    "Largest error of a velocity relative to max_i Σ_j w_j‖∇h‖, shift = 1. Tokens are unit in float64; float32 sums get them "
    "rounded, which leaves rows that are unit to 6e-8 only: expansions take their directions. 'Rounded rows': the reference "
    "takes the rounded rows as they are instead, so that e^{βt} multiplies their lengths' errors by β."
)


def run(out: pathlib.Path) -> None:
    """Writes accuracy."""
    with jax.enable_x64(True):
        rows = [_row(4096, d, beta) for d in (2, 3) for beta in (1.0, 4.0, 16.0, 64.0, 256.0)]
    table(rows, out / "accuracy", "Error of expansions, n = 4096", NOTE)


def _row(n: int, d: int, beta: float) -> dict:
    row, exact = {"d": d, "beta": beta}, tokens(n, d, np.float64)
    for dtype in (np.float32, np.float64):
        name, x = np.dtype(dtype).name, exact.astype(dtype)
        call, why = ours(x, "expansion", beta)
        found = np.asarray(call())
        row[f"degree {name}"] = int(why.split("degree ")[1])
        references = {"": exact} | ({", rounded rows": x.astype(np.float64)} if dtype == np.float32 else {})
        for label, y in references.items():
            velocity, scale = _reference(y, beta)
            row[f"error {name}{label}"] = float(np.abs(found - velocity).max() / scale)
    return row


def _reference(x: np.ndarray, beta: float) -> tuple[np.ndarray, float]:
    """The float64 velocity by NumPy, and max_i Σ_j w_j ‖∇h‖, ∇h tangent."""
    weights = np.exp(beta * (x @ x.T - 1)) / len(x)
    force = weights @ x
    lengths = np.sqrt(np.maximum(1 - (x @ x.T) ** 2, 0))
    return force - np.sum(force * x, axis=1, keepdims=True) * x, float((weights * lengths).sum(axis=1).max())
