"""Figures of propagation: profiles, their decomposition into forces, phase maps."""

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..propagation import Forces, PhaseMap
from .style import COLOURS, LINES, figure, plain, style

PHASES = ("flat", "primacy", "recency", "U-shaped")
PHASE_COLOURS = ("#f2f2f2", "#9ecae1", "#fdd49e", "#78c679")


def profiles(
    profiles: Mapping[str, np.ndarray], title: str | None = None, measured: np.ndarray | None = None, log: bool = True
) -> Figure:
    """Influence p_j against position j, one line per named profile, the uniform 1/n dotted, a measured profile in black.

    Raises `ValueError` when there is nothing to draw. Returns the figure.

    Examples:
        >>> mf.plot.profiles({"uniform": np.full(8, 1 / 8)})
        <Figure size 600x360 with 1 Axes>
    """
    if not profiles:
        raise ValueError("profiles is empty: give at least one {name: (n,) array}")
    with style():
        fig = figure(6.0, 3.6)
        ax = fig.subplots()
        if measured is not None:
            ax.plot(np.asarray(measured), color="black", linewidth=1.0, label="measured")
        for k, (name, p) in enumerate(profiles.items()):
            line = {"color": COLOURS[k % 7], "linestyle": LINES[(k // 7 + k) % len(LINES)]}
            ax.plot(_visible(p) if log else np.asarray(p), label=plain(name, 60), **line)
        n = len(next(iter(profiles.values())))
        ax.axhline(1 / n, color="#888888", linewidth=0.8, linestyle=":")
        ax.annotate(
            "uniform", (0.5, 1 / n), xycoords=("axes fraction", "data"), va="bottom", color="#666666", fontsize=7
        )
        ax.set(xlabel="input position j", ylabel="influence on the last position", yscale="log" if log else "linear")
        ax.legend()
        if title:
            ax.set_title(plain(title, 90))
    return fig


def forces(result: Forces, title: str | None = None) -> Figure:
    """The profile of every stage, the way its mean position travels down the layers, and the total drift of each force.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> mf.plot.forces(mf.propagation.forces(arch, 8))
        <Figure size 1050x340 with 3 Axes>
    """
    with style():
        fig = figure(10.5, 3.4)
        left, middle, right = fig.subplots(1, 3, width_ratios=(1.25, 1.0, 1.0))
        for k, name in enumerate(result.stages):
            line = {"color": COLOURS[k], "linestyle": LINES[k], "label": name}
            left.plot(_visible(result.profiles[k]), **line)
            middle.plot(result.mean_position[k], **line)
        left.set(xlabel="input position j", ylabel="influence", yscale="log", ylim=(1e-6, 2.0))
        left.legend(loc="upper center")
        middle.set(xlabel="layers passed from the top", ylabel="mean position (0 first, 1 last)", ylim=(-0.03, 1.03))
        _drift_bars(right, result)
        if title:
            fig.suptitle(plain(title, 110))
    return fig


def _drift_bars(ax, result: Forces) -> None:
    place = np.arange(len(result.stages))
    names = ("mean position", "mass of first tenth", "mass of last tenth")
    for k, name in enumerate(names):
        ax.barh(place + 0.26 * (k - 1), result.total_drift[:, k], 0.24, color=COLOURS[k + 4], label=name)
    signs = {-1: "predicted −", 0: "no prediction", 1: "predicted +"}
    rows = zip(result.stages, result.total_drift[:, 0], result.predicted, strict=True)
    marks = [f"{name} {drift:+.3f}\n({signs[s]})" for name, drift, s in rows]
    ax.set_yticks(place, marks)
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set(xlabel="change this force adds")
    ax.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)


def phases(result: PhaseMap, xlabel: str, title: str | None = None) -> Figure:
    """The shape at every grid point, and the closed-form boundary below which the smooth part rises at the end.

    Examples:
        >>> found = mf.propagation.phase_map([0.1, 2.0], [1.0, 8.0], depth=4, length=32)
        >>> mf.plot.phases(found, "αn")
        <Figure size 560x380 with 1 Axes>
    """
    with style():
        fig = figure(5.6, 3.8)
        ax = fig.subplots()
        columns, rows = np.asarray(result.columns), np.asarray(result.rows)
        cmap = ListedColormap(PHASE_COLOURS)
        ax.pcolormesh(columns, rows, np.asarray(result.shape), cmap=cmap, vmin=-0.5, vmax=3.5, shading="nearest")
        ax.contour(columns, rows, np.asarray(result.rise), levels=[0.0], colors="black", linewidths=1.2)
        ax.plot(columns, np.asarray(result.boundary), color=COLOURS[3], linestyle="--")
        ax.set(
            xlabel=xlabel, ylabel="total mixing Σλ", ylim=(rows.min(), rows.max()), xlim=(columns.min(), columns.max())
        )
        ax.grid(False)
        present = sorted(set(np.asarray(result.shape).ravel().tolist()))
        handles = [Patch(facecolor=PHASE_COLOURS[k], edgecolor="#888888", label=PHASES[k]) for k in present]
        handles += [
            ax.plot([], [], color="black", linewidth=1.2, label="smooth part stops rising (computed)")[0],
            ax.plot([], [], color=COLOURS[3], linestyle="--", label="the same, closed form")[0],
        ]
        fig.legend(handles=handles, loc="outside lower center", ncols=2)
        if title:
            ax.set_title(plain(title, 90))
    return fig


def _visible(p: np.ndarray) -> np.ndarray:
    """Zeros as gaps: a logarithmic axis cannot show them."""
    p = np.asarray(p, float)
    return np.where(p > 0, p, np.nan)
