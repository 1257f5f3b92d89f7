"""The sphere as a picture: a circle for d = 2, an orthographic view for d = 3, principal axes above; tokens that can move."""

import equinox as eqx
import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize, to_rgba_array

from .._types import Float
from .style import COLOURS, CYCLIC, SEQUENTIAL

FAR = 0.25  # opacity of what lies on the far side of the sphere


class Camera(eqx.Module):
    """Coordinates (…, d) to the page: `matrix` (d, 3) gives right, up and towards the reader (depth).

    `arrows` (k, 3) are the drawn coordinate axes in the same frame, with their `names`.
    """

    matrix: np.ndarray
    arrows: np.ndarray
    names: tuple[str, ...]

    def __call__(self, x: Float[np.ndarray, "*batch d"]) -> tuple[np.ndarray, np.ndarray]:
        """Page coordinates (…, 2) and depth (…), negative on the far side."""
        page = x @ self.matrix
        return page[..., :2], page[..., 2]


def facing(final: Float[np.ndarray, "n d"]) -> tuple[float, float]:
    """Elevation and azimuth (degrees) from which tokens that lie on one side of S² are seen, else the default view."""
    mean = final.mean(axis=0)
    if len(mean) != 3 or np.linalg.norm(mean) < 0.5:
        return 22.0, -55.0
    return (22.0 if mean[2] >= 0 else -22.0), float(np.rad2deg(np.arctan2(mean[1], mean[0]))) - 25.0


def camera(x: Float[np.ndarray, "*batch d"], elevation: float = 22.0, azimuth: float = -55.0) -> Camera:
    """The view of S^{d-1}: the plane for d = 2; above d = 3 the three principal axes of the tokens x are seen."""
    d = x.shape[-1]
    if d == 2:
        plane = np.eye(2, 3)
        return Camera(plane, plane, ("x₁", "x₂"))
    a, e = np.deg2rad(azimuth), np.deg2rad(elevation)
    right = [-np.sin(a), np.cos(a), 0.0]
    up = [-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)]
    view = np.stack([right, up, np.cross(right, up)], axis=1)
    if d == 3:
        return Camera(view, view, ("x₁", "x₂", "x₃"))
    flat = x.reshape(-1, d)
    principal = np.linalg.eigh(flat.T @ flat)[1][:, :-4:-1]
    principal = principal * np.where(flat.mean(axis=0) @ principal < 0, -1, 1)  # tokens on one side are in front
    return Camera(principal @ view, view, ("pc₁", "pc₂", "pc₃"))


def token_colours(values: np.ndarray, cyclic: bool) -> tuple[np.ndarray, matplotlib.cm.ScalarMappable | list | None]:
    """RGBA (n, 4) of the tokens and what a legend needs: a colour map's mappable, or the list of (value, colour).

    At most eight different integer labels get eight distinct colours, everything else a perceptually uniform map.
    """
    kinds = np.unique(values)
    if np.issubdtype(values.dtype, np.integer) and len(kinds) <= len(COLOURS):
        if len(kinds) == 1:
            return np.tile(to_rgba_array(COLOURS[0]), (len(values), 1)), None
        index = np.searchsorted(kinds, values)
        return to_rgba_array(COLOURS)[index], [(kind, COLOURS[i]) for i, kind in enumerate(kinds)]
    low, high = (0.0, 2 * np.pi) if cyclic else (float(values.min()), float(values.max()))
    if high <= low:
        return np.tile(to_rgba_array(COLOURS[0]), (len(values), 1)), None
    mappable = matplotlib.cm.ScalarMappable(Normalize(low, high), CYCLIC if cyclic else SEQUENTIAL)
    return mappable.to_rgba(np.mod(values, 2 * np.pi) if cyclic else values), mappable


class Scene:
    """Tokens on the drawn sphere; `move` puts them elsewhere (for animations)."""

    def __init__(self, ax: Axes, view: Camera, colours: np.ndarray, size: float):
        self.view, self.colours = view, colours
        _draw_sphere(ax, view)
        empty = np.zeros((0, 2))
        self.far = ax.scatter(*empty.T, s=size, zorder=2, linewidths=0.4, edgecolors="none")
        self.near = ax.scatter(*empty.T, s=size, zorder=4, linewidths=0.012 * size, edgecolors="#222222")
        self.trails: LineCollection | None = None
        self.ax = ax

    def move(self, x: np.ndarray) -> None:
        """Draws the tokens at x (n, d), the near side over the far side."""
        page, depth = self.view(x)
        order = np.argsort(depth)
        page, colours, back = page[order], self.colours[order], depth[order] < -1e-9
        faded = colours * [1, 1, 1, FAR + 0.15]
        self.far.set_offsets(page[back])
        self.far.set_facecolors(faded[back])
        self.near.set_offsets(page[~back])
        self.near.set_facecolors(colours[~back])

    def trail(self, path: np.ndarray) -> None:
        """Draws the ways of the tokens, path (T, n, d), each in the colour of its token."""
        page, depth = self.view(path)
        ends = np.stack([page[:-1], page[1:]], axis=2).reshape(-1, 2, 2)
        back = (0.5 * (depth[:-1] + depth[1:]) < -1e-9).reshape(-1)
        opacity = float(np.clip(40 / path.shape[1], 0.2, 0.6))  # many ways would hide the tokens
        colours = np.tile(self.colours, (len(path) - 1, 1)) * [1, 1, 1, opacity]
        colours[back, 3] *= FAR
        if self.trails is None:
            self.trails = LineCollection(ends, colors=colours, linewidths=0.8, zorder=3)
            self.ax.add_collection(self.trails)
        else:
            self.trails.set_segments(list(ends))
            self.trails.set_color(colours)


def _draw_sphere(ax: Axes, view: Camera) -> None:
    angle = np.linspace(0, 2 * np.pi, 181)
    ax.plot(np.cos(angle), np.sin(angle), color="#777777", linewidth=0.8, zorder=1)
    d = len(view.matrix)
    if d == 3:
        for latitude in np.deg2rad([-60, -30, 0, 30, 60]):
            ring = np.stack([np.cos(latitude) * np.cos(angle), np.cos(latitude) * np.sin(angle)], 1)
            _line(ax, view, np.concatenate([ring, np.full((len(angle), 1), np.sin(latitude))], 1))
        for longitude in np.deg2rad(np.arange(0, 180, 30)):
            arc = np.stack([np.cos(longitude) * np.cos(angle), np.sin(longitude) * np.cos(angle), np.sin(angle)], 1)
            _line(ax, view, arc)
    _draw_axes(ax, view)
    ax.set(xlim=(-1.32, 1.32), ylim=(-1.32, 1.32), aspect="equal")
    ax.axis("off")


def _draw_axes(ax: Axes, view: Camera) -> None:
    """The coordinate axes outside the sphere, named."""
    for name, arrow in zip(view.names, view.arrows[:, :2], strict=True):
        length = np.linalg.norm(arrow)
        if length > 0.05:
            end = arrow + 0.16 * arrow / length
            ax.annotate("", end, arrow, arrowprops={"arrowstyle": "->", "color": "#777777", "linewidth": 0.8}, zorder=1)
            ax.text(
                *(end + 0.08 * arrow / length), name, color="#333333", fontsize=8, ha="center", va="center", zorder=6
            )


def _line(ax: Axes, view: Camera, x: np.ndarray) -> None:
    page, depth = view(x)
    for part, colour in ((depth >= 0, "#bbbbbb"), (depth < 0, "#e6e6e6")):
        ax.plot(*np.where(part[:, None], page, np.nan).T, color=colour, linewidth=0.5, zorder=0.5)
