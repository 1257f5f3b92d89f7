"""Tokens on S¹ and S², coloured by label, with the ways they came."""

import jax
import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .._types import AnyArray, Real, Tokens
from ..marginal import Marginal
from ..trajectory import Trajectory
from .scene import Scene, camera, facing, token_colours
from .style import figure, plain, style


def tokens(
    x: Tokens | Trajectory,
    rho: Marginal | None = None,
    colour: Real[AnyArray, " n"] | None = None,
    label: str = "label ξ",
    cyclic: bool = False,
    trails: bool = True,
    names: list[str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draws tokens on the circle (d = 2), on the sphere seen from one side (d = 3), or along principal axes (d > 3).

    Args:
        x: tokens (n, d), or a trajectory: its last reached state, with the ways of the tokens where `trails`.
        rho: its scalar label (or the trajectory's) colours the tokens where `colour` is left out.
        colour: what colours the tokens, (n,).
        label: the name of that colour.
        cyclic: True for angles, whose colours close up at 2π.
        names: short texts (n,) written beside the tokens, as they are (`$`, `_`, newlines are safe).
        ax: where to draw; a new figure by default.

    Returns:
        The figure.

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> mf.plot.tokens(x, mf.Marginal.circle(4), cyclic=True)
        <Figure size 420x380 with 2 Axes>
    """
    final, path = _state(x)
    values = _colour_values(x, rho, colour, len(final))
    with style():
        fig = figure(4.2, 3.8) if ax is None else ax.get_figure()
        ax = fig.add_subplot() if ax is None else ax
        colours, key = token_colours(values, cyclic)
        scene = Scene(ax, camera(final if path is None else path, *facing(final)), colours, _size(len(final)))
        if trails and path is not None:
            scene.trail(path)
        scene.move(final)
        if names is not None:
            _write_names(ax, scene, final, names)
        _legend(ax, key, label, cyclic)
        ax.set_title(plain(title, 80) if title else _default_title(x, final))
    return fig


def _state(x: Tokens | Trajectory) -> tuple[np.ndarray, np.ndarray | None]:
    if not isinstance(x, Trajectory):
        return np.asarray(x, float), None
    if x.x is None:
        return np.asarray(x.final, float), None
    path = np.asarray(x.x, float)
    path = path[np.isfinite(path).all(axis=(1, 2))]
    if len(path) == 0:
        raise ValueError(f"the trajectory has no finite state to draw: {x.explain()}")
    return path[-1], path


def _colour_values(x, rho: Marginal | None, colour, n: int) -> np.ndarray:
    if colour is not None:
        values = np.asarray(colour)
        if values.shape != (n,):
            raise ValueError(f"colour has shape {values.shape} but there are {n} tokens: pass one number per token")
        return values
    labels = rho.labels if rho is not None else x.labels if isinstance(x, Trajectory) else np.zeros(n, int)
    scalars = [np.asarray(leaf) for leaf in jax.tree.leaves(labels) if np.ndim(leaf) == 1]
    return scalars[0] if scalars else np.arange(n)


def _size(n: int) -> float:
    return float(np.clip(900 / np.sqrt(n) / 4, 2, 36))


def _write_names(ax: Axes, scene: Scene, final: np.ndarray, names: list[str]) -> None:
    if len(names) != len(final):
        raise ValueError(f"names has {len(names)} texts but there are {len(final)} tokens: pass one text per token")
    page, depth = scene.view(final)
    for name, place, far in zip(names, page, depth < -1e-9, strict=True):
        alpha = 0.4 if far else 1.0
        ax.annotate(plain(name, 16), place, (3, 3), textcoords="offset points", fontsize=7, alpha=alpha)


def _legend(ax: Axes, key, label: str, cyclic: bool) -> None:
    if isinstance(key, matplotlib.cm.ScalarMappable):
        bar = ax.get_figure().colorbar(key, ax=ax, shrink=0.75, pad=0.02)
        bar.set_label(plain(label))
        if cyclic:
            bar.set_ticks([0, np.pi, 2 * np.pi], labels=["0", "π", "2π"])
    elif key:
        handles = [ax.scatter([], [], color=shade, s=20, label=plain(kind)) for kind, shade in key]
        ax.legend(handles=handles, title=plain(label), loc="upper left", bbox_to_anchor=(0.98, 1.0))


def _default_title(x, final: np.ndarray) -> str:
    n, d = final.shape
    when = f", t = {float(x.t):.3g}" if isinstance(x, Trajectory) else ""
    return f"n = {n} tokens on S{'⁰¹²³⁴⁵⁶⁷⁸⁹'[d - 1] if d <= 10 else f'^{d - 1}'}{when}"
