"""Order parameter and energy against time."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ..trajectory import Trajectory
from .style import COLOURS, LINES, figure, plain, style


def traces(
    trajectories: Trajectory | Mapping[str, Trajectory],
    title: str | None = None,
    log_time: bool = False,
    gap: bool = False,
) -> Figure:
    """R(t) = ‖Σ_i w_i x_i‖ over E(t), one line per trajectory, told apart by colour and dash.

    Args:
        trajectories: one, or {name: trajectory} for a legend. What was not saved is left out.
        log_time: a logarithmic time axis, for metastable runs.
        gap: 1 − R on a logarithmic axis in place of R, for rates of collapse.

    Returns:
        The figure.

    Raises:
        ValueError: when neither was saved.

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> traj = mf.flow(mf.USA(mf.Dot()), x, mf.Marginal.circle(4), jnp.linspace(0.0, 2.0, 5))
        >>> mf.plot.traces({"linear": traj}, gap=True)
        <Figure size 520x480 with 2 Axes>
    """
    runs = {"": trajectories} if isinstance(trajectories, Trajectory) else dict(trajectories)
    panels = [name for name in ("order", "energy") if any(getattr(run, name) is not None for run in runs.values())]
    if not panels:
        raise ValueError("no trajectory has order or energy: call mf.flow with 'order' and 'energy' in save=")
    with style():
        fig = figure(5.2, 1.0 + 1.9 * len(panels))
        axes = fig.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for ax, panel in zip(axes, panels, strict=True):
            for i, (name, run) in enumerate(runs.items()):
                values = getattr(run, panel)
                if values is not None:
                    _line(ax, run, np.asarray(values), panel == "order" and gap, i, name)
            _decorate(ax, panel, gap)
        axes[-1].set_xlabel("time t (dimensionless)")
        if log_time:
            axes[-1].set_xscale("log")
        if len(runs) > 1:
            axes[0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        if title:
            fig.suptitle(plain(title, 90))
    return fig


def _line(ax, run: Trajectory, values: np.ndarray, gap: bool, i: int, name: str) -> None:
    shown = np.maximum(1 - values, np.finfo(values.dtype).eps) if gap else values
    ax.plot(
        np.asarray(run.ts),
        shown,
        color=COLOURS[i % len(COLOURS)],
        linestyle=LINES[(i + i // len(COLOURS)) % len(LINES)],
        label=plain(name),
    )


def _decorate(ax, panel: str, gap: bool) -> None:
    if panel == "energy":
        ax.set_ylabel("energy E")
    elif gap:
        ax.set(ylabel="distance from collapse 1 − R", yscale="log")
    else:
        ax.set(ylabel="order parameter R", ylim=(-0.03, 1.03))
