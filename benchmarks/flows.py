"""Flows at equal accuracy: diffrax through `mf.flow` against SciPy DOP853, torchdiffeq and a fixed-step NumPy Euler loop."""

import importlib.util
import pathlib
from collections.abc import Callable

import jax
import numpy as np
from scipy.integrate import solve_ivp

import meanfield as mf

from .allpairs import tokens
from .measure import table, timed

N, D, BETA, T = 256, 3, 4.0, 2.0
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10)


def run(out: pathlib.Path) -> None:
    """Writes flows: a work–precision table, errors against a 1e-12 reference."""
    with jax.enable_x64(True):
        x = tokens(N, D, np.float64)
        exact = _scipy(x, 1e-12)()
        rows = []
        for tolerance in TOLERANCES:
            for name, solver in (("mf.flow", _ours), ("SciPy DOP853", _scipy), ("torchdiffeq dopri5", _torch)):
                rows.append(_row(name, f"rtol {tolerance:g}", solver(x, tolerance), exact))
        for steps in (100, 1000, 3000):
            rows.append(_row("NumPy Euler loop", f"{steps} steps", _euler(x, steps), exact))
    title = f"Flows: SA, n = {N}, d = {D}, β = {BETA}, t = {T}, float64"
    table(rows, out / "flows", title, "Error: largest distance of a token from the reference (DOP853 at 1e-12).")


def _row(name: str, setting: str, call: Callable | None, exact: np.ndarray) -> dict:
    if call is None:
        return {"solver": name, "setting": setting, "time": "not installed"}
    error = float(np.linalg.norm(np.asarray(call()) - exact, axis=1).max())
    return {"solver": name, "setting": setting, "time": timed(call, 3, 3.0), "error": error}


def _ours(x: np.ndarray, tolerance: float) -> Callable:
    rho, ts = mf.Marginal(np.zeros(N)), np.array([0.0, T])
    dynamics = mf.SA(mf.ExpDot(BETA))
    return lambda: mf.flow(dynamics, x, rho, ts, rtol=tolerance, atol=tolerance, save=("x",)).x[-1]


def velocity(x: np.ndarray) -> np.ndarray:
    """The SA velocity as found in public simulators."""
    weights = np.exp(BETA * (x @ x.T - 1))
    drift = weights @ x / weights.sum(axis=1, keepdims=True)
    return drift - np.sum(drift * x, axis=1, keepdims=True) * x


def _scipy(x: np.ndarray, tolerance: float) -> Callable:
    def rhs(t, y):
        return velocity(y.reshape(N, D)).ravel()

    return lambda: solve_ivp(rhs, (0, T), x.ravel(), "DOP853", rtol=max(tolerance, 1e-13), atol=tolerance).y[:, -1].reshape(N, D)  # fmt: skip


def _euler(x: np.ndarray, steps: int) -> Callable:
    def loop():
        y = x.copy()
        for _ in range(steps):
            y = y + T / steps * velocity(y)
            y /= np.linalg.norm(y, axis=1, keepdims=True)
        return y

    return loop


def _torch(x: np.ndarray, tolerance: float) -> Callable | None:
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("torchdiffeq") is None:
        return None
    import torch
    from torchdiffeq import odeint

    def rhs(t, y):
        drift = torch.softmax(BETA * (y @ y.T), dim=1) @ y
        return drift - (drift * y).sum(dim=1, keepdim=True) * y

    times = torch.tensor([0.0, T], dtype=torch.float64)
    return lambda: odeint(rhs, torch.from_numpy(x), times, rtol=tolerance, atol=tolerance, method="dopri5")[-1].numpy()
