"""Figures of a measured language model: influence against its predictions, and what happens with depth."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..pretrained.compare import Predictor, compare, predictors
from ..pretrained.measurement import Measurement, average_profile
from .style import COLOURS, LINES, figure, plain, style

SHOWN = ("backprop", "energy2", "energy", "mixing of averages", "architecture")


def influence(
    measurement: Measurement,
    table: xr.Dataset | None = None,
    title: str | None = None,
    average: str = "published",
    shown: tuple[str, ...] = SHOWN,
) -> Figure:
    """Measured influence of every position with its predictions, and their distances to it.

    Args:
        measurement: from `mf.pretrained.measure`.
        table: from `mf.pretrained.compare` (computed when left out).
        average: "published" (average, then normalise) or "sequences".
        shown: the predictors drawn as lines, those that are there; the bars show all.

    Returns:
        The figure.
    """
    table = compare(measurement) if table is None else table
    with style():
        fig = figure(9.0, 3.6)
        left, right = fig.subplots(1, 2, width_ratios=(1.5, 1))
        _profiles(left, measurement, average, shown)
        _distances(right, table, average)
        if title:
            fig.suptitle(plain(title, 100))
    return fig


def layers(measurement: Measurement, title: str | None = None) -> Figure:
    """λ_t with its spread over sequences, the norm of the first token, order parameter and effective dimension by depth."""
    data = measurement.dataset
    with style():
        fig = figure(9.0, 2.7)
        mixing, sink, order = fig.subplots(1, 3)
        _spread(mixing, data["mixing"], "λ, mean of tokens", 0)
        _spread(mixing, data["mixing_norms"], "ratio of norms", 1)
        _spread(mixing, data["epsilon"], "ε, energies", 2)
        mixing.set(xlabel="layer t", ylabel="share of attention", ylim=(0, 1))
        mixing.legend()
        _sink(sink, data)
        _spread(order, data["order"], "order parameter ‖mean x̂‖", 0)
        order.set(xlabel="depth", ylabel="order parameter", ylim=(0, 1.02))
        twin = order.twinx()
        _spread(twin, data["dimension"], "effective dimension", 3)
        twin.set(ylabel="effective dimension")
        twin.grid(visible=False)
        twin.spines["right"].set_visible(True)
        twin.set_ylim(bottom=0)
        handles = [*order.get_lines(), *twin.get_lines()]
        order.legend(handles, [h.get_label() for h in handles], loc="upper center", fontsize=7)
        if title:
            fig.suptitle(plain(title, 100))
    return fig


def _profiles(ax: Axes, measurement: Measurement, average: str, shown: tuple[str, ...]) -> None:
    mask = measurement.dataset["mask"].values
    found = {p.name: p for p in predictors(measurement)}
    n = mask.shape[1]
    ax.plot(np.arange(n), measurement.profile(average), color="#000000", linewidth=2.2, alpha=0.75, label="measured")
    for i, name in enumerate(name for name in shown if name in found):
        ax.plot(np.arange(n), _line(found[name], mask, average), ls=LINES[i], color=COLOURS[i], lw=1.2, label=name)
    ax.set(xlabel="position j", ylabel="influence on the last position", yscale="log", xlim=(-n / 60, n - 1 + n / 60))
    ax.set_ylim(bottom=max(1e-6, 0.2 * float(np.min(measurement.profile(average)[mask.any(axis=0)]))))
    ax.legend(ncols=2, loc="upper center")


def _line(predictor: Predictor, mask: np.ndarray, average: str) -> np.ndarray:
    rows = predictor.rows
    return rows / rows.sum() if rows.ndim == 1 else average_profile(rows, mask, average)


def _distances(ax: Axes, table: xr.Dataset, average: str) -> None:
    chosen = table.sel(average=average)
    chosen = chosen.isel(predictor=np.argsort(-chosen["wasserstein"].values))
    names = [str(name) for name in chosen["predictor"].values]
    values, errors = chosen["wasserstein"].values, np.nan_to_num(chosen["wasserstein_error"].values)
    ax.barh(range(len(names)), values, xerr=errors, color=COLOURS[0], height=0.7, error_kw={"linewidth": 1})
    for i, (value, error, rank) in enumerate(zip(values, errors, chosen["spearman_sequence"].values, strict=True)):
        note = f"{value:.3f}" + ("" if np.isnan(rank) else f"  (ρ {rank:.2f})")
        ax.annotate(note, (value + error, i), (4, 0), textcoords="offset points", va="center", fontsize=7)
    ax.set_yticks(range(len(names)), [plain(name) for name in names])
    ax.set(xlabel="Wasserstein distance to measured\n(ρ: mean Spearman per sequence)")
    ax.set_xlim(right=1.3 * float(np.nanmax(values + errors)))
    ax.grid(axis="y", visible=False)


def _spread(ax: Axes, values: xr.DataArray, label: str, colour: int) -> None:
    array = values.values
    x, mean, spread = np.arange(array.shape[1]), array.mean(axis=0), array.std(axis=0)
    ax.plot(x, mean, linestyle=LINES[colour], color=COLOURS[colour], label=label)
    ax.fill_between(x, mean - spread, mean + spread, color=COLOURS[colour], alpha=0.2, linewidth=0)


def _sink(ax: Axes, data: xr.Dataset) -> None:
    norms = np.where(data["mask"].values[:, None, :], data["norms"].values, np.nan)
    first = np.argmax(data["mask"].values, axis=1)
    ratio = np.take_along_axis(norms, first[:, None, None], axis=2)[..., 0] / np.nanmedian(norms, axis=2)
    ax.plot(ratio.mean(axis=0), color=COLOURS[0])
    ax.set(xlabel="depth", ylabel="‖x_first‖ / median ‖x‖", yscale="log")
