"""A flow as a film: GIF or MP4."""

import os
import pathlib

import numpy as np
from matplotlib.animation import FFMpegWriter, PillowWriter

from .._types import AnyArray, Real
from ..files import atomic
from ..marginal import Marginal
from ..trajectory import Trajectory
from .scene import Scene, camera, facing, token_colours
from .style import figure, plain, style
from .tokens import _colour_values, _legend, _size, _state


def animate(
    traj: Trajectory,
    path: str | os.PathLike,
    rho: Marginal | None = None,
    colour: Real[AnyArray, " n"] | None = None,
    label: str = "label ξ",
    cyclic: bool = False,
    tail: int = 8,
    fps: int = 15,
    dpi: int = 110,
    title: str | None = None,
) -> pathlib.Path:
    """Writes the tokens moving along `traj`, one frame per saved time, with the order parameter drawn below.

    Arguments `rho`, `colour`, `label`, `cyclic` and `title` as for `tokens`.

    Args:
        traj: a flow with x saved; save times that are dense where tokens move fast make a smooth film.
        path: ends in .gif (written by Pillow) or .mp4 (needs the program ffmpeg).
        tail: how many frames of its way each token draws behind it.
        fps: frames per second.
        dpi: resolution of the 4.2 × 4.8 inch page.

    Returns:
        The path.

    Raises:
        ValueError: when the ending is another, a flow is without x, or ffmpeg is missing for .mp4.

    Examples:
        >>> import pathlib, tempfile
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> traj = mf.flow(mf.USA(mf.Dot()), x, mf.Marginal.circle(4), jnp.linspace(0.0, 2.0, 5))
        >>> mf.plot.animate(traj, pathlib.Path(tempfile.mkdtemp()) / "film.gif", dpi=40).name
        'film.gif'
    """
    path = pathlib.Path(path)
    writer = _writer(path, fps)
    if traj.x is None:
        raise ValueError("the trajectory has no tokens: call mf.flow with 'x' in save=")
    final, states = _state(traj)
    times = np.asarray(traj.ts)[: len(states)]
    with style(), atomic(path) as temporary:
        fig = figure(4.2, 4.8)
        ax, below = fig.subplots(2, 1, height_ratios=(5, 1))
        colours, key = token_colours(_colour_values(traj, rho, colour, len(final)), cyclic)
        scene = Scene(ax, camera(states, *facing(final)), colours, _size(len(final)))
        _legend(ax, key, label, cyclic)
        cursor = _timeline(below, traj, times)
        with writer.saving(fig, temporary, dpi):
            for frame, now in enumerate(times):
                scene.move(states[frame])
                if frame and tail:
                    scene.trail(states[max(0, frame - tail) : frame + 1])
                ax.set_title(plain(f"{title}, t = {now:.2f}" if title else f"t = {now:.2f}", 60))
                cursor.set_xdata([now, now])
                writer.grab_frame()
                # laid out once, by the first frame: with any engine every frame is drawn twice
                fig.set_layout_engine(None)
    return path


def _timeline(ax, traj: Trajectory, times: np.ndarray):
    if traj.order is not None:
        ax.plot(times, np.asarray(traj.order)[: len(times)])
    ax.set(xlabel="time t (dimensionless)", ylabel="order R", ylim=(-0.05, 1.05), xlim=(times[0], max(times[-1], 1e-9)))
    return ax.axvline(times[0], color="#D55E00", linewidth=1.2)


def _writer(path: pathlib.Path, fps: int):
    if path.suffix.lower() == ".gif":
        return PillowWriter(fps=fps)
    if path.suffix.lower() != ".mp4":
        raise ValueError(f"path={str(path)!r}: films are written as .gif or .mp4")
    if not FFMpegWriter.isAvailable():
        raise ValueError(f"path={str(path)!r}: .mp4 needs the program ffmpeg on PATH; install it, or write a .gif")
    return FFMpegWriter(fps=fps, codec="libx264", extra_args=["-pix_fmt", "yuv420p"])
