"""Any output of a sweep over two of its axes as a heat map, over one as lines, with the spread over seeds."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import COLOURS, LINES, MARKERS, SEQUENTIAL, figure, plain, style


def sweep(
    ds: xr.Dataset,
    variable: str,
    x: str | None = None,
    y: str | None = None,
    spread: str | tuple[str, ...] = "seed",
    at: Mapping[str, int | float] | None = None,
    title: str | None = None,
) -> Figure:
    """`variable` of `mf.sweep`'s result against one axis (lines) or two (heat maps), averaged over `spread`.

    Lines carry a band from the least to the largest value over `spread`; a heat map stands beside one of the standard
    deviation. A mean is over the points that did not fail; cells where all failed are grey, and how many failed is said.

    With `x` alone and another axis left, one line is drawn for each of its values; with neither `x` nor `y`, two axes
    left make a heat map. Points of a listed grid are drawn as a scatter.

    Args:
        ds: from `mf.sweep` or `xr.open_zarr`.
        variable: one of its variables.
        x: the horizontal axis, by default the first that is left.
        y: the vertical axis of a heat map.
        spread: the axis or axes averaged over (those that `ds` lacks are passed over).
        at: {axis: value} of other axes, nearest value; {"order_0": 2} takes index 2 of an axis of the variable itself,
            whose default is its last index, as the last save time.

    Returns:
        The figure.

    Raises:
        ValueError: when names are unknown, and when axes are neither drawn, averaged nor fixed.

    Examples:
        >>> ds = mf.sweep(lambda beta: {"growth": jnp.exp(beta)}, {"beta": [0.0, 1.0, 2.0]})
        >>> mf.plot.sweep(ds, "growth")
        <Figure size 500x340 with 1 Axes>
    """
    if variable not in ds.data_vars:
        raise ValueError(f"variable={variable!r}: the sweep has {sorted(map(str, ds.data_vars))}")
    over = [spread] if isinstance(spread, str) else list(spread)
    data, fixed = _select(ds[variable].astype(float), variable, dict(at or {}))
    label = plain(variable) + (f" at {', '.join(fixed)}" if fixed else "")
    for name, axis in (("x", x), ("y", y)):
        if axis is not None and axis not in data.coords:
            raise ValueError(f"{name}={axis!r}: the sweep has the axes {sorted(map(str, data.coords))}")
    with style():
        if data.dims == ("point",):
            fig = _scatter(data, x or str(next(iter(data.coords))), y, label)
        else:
            over = [name for name in over if name in data.dims and name not in (x, y)]
            left = [str(name) for name in data.dims if name not in over]
            fig = _draw(data, left, over, x, y, label)
        failed = int((~ds["ok"]).sum()) if "ok" in ds else 0
        note = f"{failed} of {ds['ok'].size} points failed" if failed else ""
        if heading := " · ".join(filter(None, (plain(title, 90) if title else "", note))):
            fig.suptitle(heading, fontsize=9.5)
    return fig


def _select(data: xr.DataArray, variable: str, at: dict) -> tuple[xr.DataArray, list[str]]:
    """Fixes the axes named in `at`, and the variable's own axes at their last index where it names none."""
    fixed = []
    for name in [str(dim) for dim in data.dims if str(dim).startswith(f"{variable}_")]:
        index = int(at.pop(name, -1))
        data = data.isel({name: index})
        fixed.append(f"{name} = {index if index >= 0 else 'last'}")
    for name, value in at.items():
        if name not in data.dims:
            raise ValueError(f"at names {name!r}: {variable!r} has the axes {list(map(str, data.dims))}")
        data = data.sel({name: value}, method="nearest")
        fixed.append(f"{plain(name)} = {float(data[name]):g}")
    return data, fixed


def _draw(data: xr.DataArray, left: list[str], over: list[str], x: str | None, y: str | None, label: str) -> Figure:
    if len(left) not in (1, 2):
        raise ValueError(
            f"the axes {left} are left to draw: name one or two as x and y, fix the others by at=, or average by spread="
        )
    with warnings.catch_warnings():  # cells without a single good point are NaN, and drawn as such
        warnings.simplefilter("ignore", RuntimeWarning)
        mean, low, high = (getattr(data, kind)(over) for kind in ("mean", "min", "max"))
        deviation = data.std(over) if over else None
    if len(left) == 2 and (y is not None or x is None):
        horizontal = x or next(name for name in left if name != y)
        vertical = y or next(name for name in left if name != horizontal)
        panels = (
            {f"mean over {', '.join(map(plain, over))}": mean, "standard deviation": deviation} if over else {"": mean}
        )
        return _heat_maps(panels, horizontal, vertical, label)
    horizontal = x or left[0]
    return _lines(
        mean, low, high, horizontal, next((name for name in left if name != horizontal), None), bool(over), label
    )


def _heat_maps(panels: Mapping[str, xr.DataArray], x: str, y: str, label: str) -> Figure:
    fig = figure(0.6 + 3.6 * len(panels), 3.3)
    for ax, (name, values) in zip(fig.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        ax.set_facecolor("#bbbbbb")
        ax.grid(False)
        mesh = ax.pcolormesh(
            values[x], values[y], values.transpose(y, x), cmap=SEQUENTIAL, shading="nearest", rasterized=True
        )
        fig.colorbar(mesh, ax=ax, label=label if len(panels) == 1 or name.startswith("mean") else f"± {label}")
        ax.set_title(name)
        ax.set_xlabel(plain(x))
        ax.set_ylabel(plain(y))
        _scale(ax, values[x].values, values[y].values)
    return fig


def _lines(
    mean: xr.DataArray, low: xr.DataArray, high: xr.DataArray, x: str, hue: str | None, band: bool, label: str
) -> Figure:
    fig = figure()
    ax = fig.subplots()
    values = [None] if hue is None else list(mean[hue].values)
    colours = COLOURS if len(values) <= len(COLOURS) else _gradation(len(values))
    for i, value in enumerate(values):
        centre, bottom, top = (part if hue is None else part.sel({hue: value}) for part in (mean, low, high))
        text = None if hue is None else f"{plain(hue)} = {value:g}"
        look: dict[str, Any] = {
            "color": colours[i],
            "linestyle": LINES[i % len(LINES)],
            "marker": MARKERS[i % len(MARKERS)],
            "markersize": 3,
        }
        ax.plot(centre[x], centre, label=text, **look)
        if band:
            ax.fill_between(centre[x], bottom, top, color=colours[i], alpha=0.15, linewidth=0)
    if hue is not None:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=1 + len(values) // 16)
    ax.set_xlabel(plain(x))
    ax.set_ylabel(label + (" (mean, range)" if band else ""))
    _scale(ax, mean[x].values, None)
    return fig


def _scatter(data: xr.DataArray, x: str, y: str | None, label: str) -> Figure:
    fig = figure()
    ax = fig.subplots()
    ax.set_xlabel(plain(x))
    if y is None:
        ax.plot(data[x], data, "o", markersize=3)
        ax.set_ylabel(label)
        return fig
    colours = colormaps[SEQUENTIAL].with_extremes(bad="#bbbbbb")
    points = ax.scatter(data[x], data[y], c=data, cmap=colours, s=14, plotnonfinite=True)
    fig.colorbar(points, ax=ax, label=label)
    ax.set_ylabel(plain(y))
    return fig


def _scale(ax: Axes, x: np.ndarray, y: np.ndarray | None) -> None:
    """A logarithmic axis where values are positive and their ratios are more even than their differences."""
    for values, set_scale in ((x, ax.set_xscale), (y, ax.set_yscale)):
        if values is not None and len(values) > 2 and np.min(values) > 0:
            steps, ratios = np.diff(values.astype(float)), np.diff(np.log(values.astype(float)))
            if np.ptp(ratios) < 1e-3 * np.abs(ratios).max() and np.ptp(steps) > 1e-3 * np.abs(steps).max():
                set_scale("log")


def _gradation(count: int) -> list:
    return list(colormaps[SEQUENTIAL](np.linspace(0, 0.92, count)))
