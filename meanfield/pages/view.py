"""Front door: trajectories as one interactive page."""

import os
import pathlib
from collections.abc import Mapping, Sequence

import xarray as xr

from .._types import AnyArray, Real
from ..trajectory import Trajectory
from .embed import write_page
from .frames import record
from .runs import read_runs

SCRIPTS = ("chart.js", "points.js", "globe.js", "view.js")
Runs = str | os.PathLike | Trajectory | xr.Dataset | Mapping[str, Trajectory | xr.Dataset]


def view(
    runs: Runs,
    out: str | os.PathLike = "view.html",
    colour: Real[AnyArray, " n"] | None = None,
    label: str = "label ξ",
    cyclic: bool = False,
    names: Sequence[str] | None = None,
    title: str = "Tokens on the sphere",
    frames: int = 400,
) -> pathlib.Path:
    """Writes one self-contained HTML file in which tokens move, R(t) = ‖Σ_i w_i x_i‖ and E(t) beside them.

    Play, pause, a time slider, drag to turn, scroll to zoom, hover for a token and its label; tokens of larger weight are
    drawn larger. d = 2: the circle; d = 3: the sphere; above: the three principal axes of all saved states. Positions are
    kept to 3e-5 and mixed between saved times; 6 bytes per token and saved time (d = 3), a third more in the file.

    Args:
        runs: a `Trajectory`, its `to_xarray()`, or {name: one of these} for a menu of runs; or the folder of a run.
        out: path of the page, ending in .html.
        colour: numbers (n,) that colour the tokens; default the scalar label.
        label: the name of these numbers.
        cyclic: True where they are angles.
        names: texts (n,) shown when a token is pointed at.
        frames: at most so many saved times are kept, evenly chosen, first and last among them.

    Returns:
        The path.

    Raises:
        ValueError: when a run is without positions or finite states, and when lengths differ.

    Examples:
        >>> import pathlib, tempfile
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> traj = mf.flow(mf.USA(mf.Dot()), x, mf.Marginal.circle(4), jnp.linspace(0.0, 2.0, 5))
        >>> mf.view(traj, pathlib.Path(tempfile.mkdtemp()) / "view.html", cyclic=True).name
        'view.html'
    """
    if isinstance(runs, (str, os.PathLike)):
        runs = read_runs(runs)
    several = isinstance(runs, Mapping) and not isinstance(runs, xr.Dataset)
    named = dict(runs) if several else {"": runs}
    if not named:
        raise ValueError("runs is empty: pass a trajectory, or {name: trajectory}")
    if frames < 2:
        raise ValueError(f"frames={frames}: a page needs at least 2")
    datasets = {name: run.to_xarray() if isinstance(run, Trajectory) else run for name, run in named.items()}
    for name, run in datasets.items():
        if names is not None and len(names) != run.sizes["token"]:
            raise ValueError(f"names has {len(names)} texts but run {name!r} has {run.sizes['token']} tokens")
    records = [record(name, run, colour, names, label, cyclic, frames) for name, run in datasets.items()]
    return write_page(out, "view.html", SCRIPTS, title, {"label": label, "runs": records})
