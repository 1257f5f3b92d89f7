"""A trajectory as a page needs it: positions in 16 bits, colours, texts and series."""

from collections.abc import Sequence

import matplotlib
import matplotlib.colors
import numpy as np
import xarray as xr

from .._types import AnyArray, Real
from ..plot.scene import facing, token_colours
from .embed import numbers, packed

AXES = ("x₁", "x₂", "x₃")
PRINCIPAL = ("pc₁", "pc₂", "pc₃")


def record(
    name: str,
    run: xr.Dataset,
    colour: Real[AnyArray, " n"] | None,
    names: Sequence[str] | None,
    label: str,
    cyclic: bool,
    frames: int,
) -> dict:
    """The JSON record of one run, read by assets/view.js.

    `run` has x (time, token, coordinate), label*, weight, and energy and order where they were saved (`Trajectory.to_xarray`).
    """
    if "x" not in run:
        raise ValueError(f"run {name!r} has no positions x: call mf.flow with 'x' in save=")
    x = np.asarray(run["x"].values, np.float64)
    kept = _kept(np.isfinite(x).all(axis=(1, 2)), frames, name)
    x, ts = x[kept], np.asarray(run["time"].values, np.float64)[kept]
    n, d = x.shape[1:]
    values = _colour_values(run, colour, n)
    colours, key = token_colours(values, cyclic)
    points = _drawn(x)
    return {
        "name": name,
        "n": n,
        "axes": points.shape[2],
        "axes_names": (AXES if d <= 3 else PRINCIPAL)[: points.shape[2]],
        "unit": d <= 3,
        "view": [np.deg2rad(angle) for angle in facing(points[-1])],
        "x": packed(np.round(32767 * points).astype(np.int16)),
        "ts": numbers(ts),
        "even": bool(len(ts) < 3 or np.ptp(np.diff(ts)) <= 1e-3 * np.diff(ts).mean()),
        "colours": packed(np.round(255 * colours[:, :3]).astype(np.uint8)),
        "sizes": packed(_sizes(run, n)),
        "texts": _texts(run, n) if colour is None else [_text(value) for value in values],
        "names": None if names is None else [str(text) for text in names],
        "legend": _legend(key, label, cyclic),
        "meta": _meta(run, n, d, len(ts)),
        **{series: numbers(run[series].values[kept]) for series in ("order", "energy") if series in run},
    }


def _kept(reached: np.ndarray, frames: int, name: str) -> np.ndarray:
    """Indices of at most `frames` of the reached times, first and last among them."""
    index = np.flatnonzero(reached)
    if len(index) == 0:
        raise ValueError(f"run {name!r} has no finite state to show: every saved row is NaN")
    if len(index) > frames:
        index = index[np.unique(np.linspace(0, len(index) - 1, frames).round().astype(int))]
    return index


def _drawn(x: np.ndarray) -> np.ndarray:
    """Coordinates (T, n, 2 or 3): as they are, or along the three principal axes of all frames where d > 3."""
    if x.shape[2] <= 3:
        return x
    principal = np.linalg.eigh(np.einsum("tni,tnj->ij", x, x))[1][:, :-4:-1]
    return x @ (principal * np.where(x[-1].mean(axis=0) @ principal < 0, -1, 1))


def _colour_values(run: xr.Dataset, colour, n: int) -> np.ndarray:
    if colour is not None:
        values = np.asarray(colour)
        if values.shape != (n,):
            raise ValueError(f"colour has shape {values.shape} but there are {n} tokens: pass one number per token")
        return values
    scalars = [leaf for leaf in _labels(run) if leaf.ndim == 1]
    return scalars[0] if scalars else np.arange(n)


def _labels(run: xr.Dataset) -> list[np.ndarray]:
    return [run[name].values for name in run.data_vars if str(name).split("_")[0] == "label"]


def _texts(run: xr.Dataset, n: int) -> list[str]:
    leaves = _labels(run)
    return ["; ".join(_text(leaf[i]) for leaf in leaves) for i in range(n)]


def _text(value) -> str:
    values = np.asarray(value)
    if values.ndim == 0:
        return str(values) if values.dtype.kind in "iub" else f"{float(values):.5g}"
    shown = [_text(entry) for entry in values.reshape(-1)[:6]]
    return f"({', '.join(shown)}{', …' if values.size > 6 else ''})"


def _sizes(run: xr.Dataset, n: int) -> np.ndarray:
    """Diameters relative to that of a token of weight 1/n: areas follow weights, within what can be seen."""
    weights = np.asarray(run["weight"].values, np.float64) if "weight" in run else np.full(n, 1 / n)
    return np.clip(np.sqrt(n * weights), 0.4, 3.0).astype(np.float32)


def _legend(key, label: str, cyclic: bool) -> dict | None:
    if isinstance(key, matplotlib.cm.ScalarMappable):
        low, high = key.get_clim()
        stops = [matplotlib.colors.to_hex(key.to_rgba(value)) for value in np.linspace(low, high, 17)]
        ends = ("0", "2π") if cyclic else (_text(low), _text(high))
        return {"label": label, "stops": stops, "low": ends[0], "high": ends[1]}
    if key:
        return {"label": label, "kinds": [(str(kind), shade) for kind, shade in key]}
    return None


def _meta(run: xr.Dataset, n: int, d: int, frames: int) -> str:
    parts = [f"n = {n} tokens on S{'⁰¹²³⁴⁵⁶⁷⁸⁹'[d - 1] if d <= 10 else f'^{d - 1}'}"]
    if d > 3:
        parts.append(f"three principal axes of {d}")
    times = run.sizes["time"]
    parts.append(f"{times} saved times" if frames == times else f"{frames} of {times} saved times")
    if run.attrs.get("status") not in (None, "FINISHED"):
        parts.append(f"{run.attrs['status'].lower().replace('_', ' ')} at t = {run.attrs['t_reached']:.4g}")
    return " · ".join(parts)
