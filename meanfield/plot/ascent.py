"""Figures of maximisers: the phase diagram of the cosine kernel, the state found, the energies of all restarts."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from ..ascent import Maximiser
from ..marginal import Marginal
from ..theory import PhaseDiagram, deformation_boundary, dirac_circle_boundary
from ..theory.phase import STATES
from .style import COLOURS, figure, style
from .tokens import tokens

STATE_COLOURS = (COLOURS[0], COLOURS[2], COLOURS[5], COLOURS[1], COLOURS[4])


def phase_diagram(diagram: PhaseDiagram, title: str | None = None) -> Figure:
    """Which state wins over (offset, β), with the closed-form boundaries drawn over it.

    Lines: offset ½ (the latitude circle leaves the Dirac), equal energy of Dirac and great circle, and β_2(offset), above
    which the great circle is unstable to mode 2 in its plane. Returns the figure.
    """
    offset, beta = np.asarray(diagram.offset), np.asarray(diagram.beta)
    with style():
        fig = figure(6.4, 4.6)
        ax = fig.add_subplot()
        colours = ListedColormap(STATE_COLOURS)
        norm = BoundaryNorm(np.arange(len(STATES) + 1) - 0.5, len(STATES))
        mesh = ax.pcolormesh(
            beta, offset, np.asarray(diagram.state), cmap=colours, norm=norm, shading="nearest", alpha=0.75
        )
        bar = fig.colorbar(mesh, ax=ax, ticks=range(len(STATES)))
        bar.ax.set_yticklabels(STATES)
        bar.ax.tick_params(length=0)
        _boundaries(ax, offset, beta)
        ax.set_xlim(*_edges(beta))
        ax.set_ylim(*_edges(offset))
        ax.set_xlabel("inverse temperature β")
        ax.set_ylabel("offset of the position factor")
        ax.set_title(title or "Best state found, g = offset + cos kτ")
        fig.legend(loc="outside lower center", ncols=1)
        ax.grid(False)
    return fig


def _boundaries(ax: Axes, offset: np.ndarray, beta: np.ndarray) -> None:
    fine = np.linspace(max(beta.min(), 1e-2), beta.max(), 200)
    ax.axhline(0.5, color="black", linestyle="--", label="offset ½: the latitude circle leaves the Dirac")
    ax.plot(
        fine,
        np.asarray(dirac_circle_boundary(fine)),
        color="black",
        linestyle="-.",
        label="Dirac and great circle of equal energy",
    )
    levels = np.linspace(offset.min(), min(offset.max(), 0.5), 24)
    ax.plot(
        deformation_boundary(levels),
        levels,
        color="black",
        linestyle=":",
        label="great circle unstable to mode 2 in its plane",
    )


def _edges(values: np.ndarray) -> tuple[float, float]:
    """Limits of cells centred at `values`."""
    half = 0.5 * np.diff(values)
    return float(values[0] - half[0]), float(values[-1] + half[-1])


def maximiser(best: Maximiser, rho: Marginal, cyclic: bool = False, title: str | None = None) -> Figure:
    """The best state, and the final energies of all restarts below the proved bound. Returns the figure.

    Examples:
        >>> best = mf.ascend(mf.ExpDot(1.0), mf.Marginal.circle(4), 2, jax.random.key(0), restarts=2)
        >>> mf.plot.maximiser(best, mf.Marginal.circle(4), cyclic=True)
        <Figure size 840x380 with 3 Axes>
    """
    with style():
        fig = figure(8.4, 3.8)
        left, right = fig.subplots(1, 2, width_ratios=(1.25, 1))
        tokens(np.asarray(best.x), rho, cyclic=cyclic, ax=left, title=title or f"best state: {best.status}")
        energies = np.asarray(best.energies)
        right.plot(1 + np.arange(len(energies)), energies, "o", markersize=3.5, color=COLOURS[0], label="restarts")
        if np.isfinite(best.upper_bound):
            name = f"upper bound ({best.bound.method})"
            right.axhline(best.upper_bound, color=COLOURS[3], linestyle="--", label=name)
        right.set_xlabel("restart, best first")
        right.set_ylabel("energy")
        right.set_title(f"E = {float(best.energy):.6g}, gap {best.gap:.2g}")
        right.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True))
        right.legend()
    return fig
