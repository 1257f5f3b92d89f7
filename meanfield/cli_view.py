"""`meanfield view`: a run, or an architecture's profile, as one interactive page."""

import pathlib
import sys
from typing import Annotated

import tyro


def view(
    run: Annotated[pathlib.Path | None, tyro.conf.Positional] = None,
    profile: str | None = None,
    length: int = 256,
    label: str = "label ξ",
    cyclic: bool | None = None,
    frames: int = 400,
    out: pathlib.Path | None = None,
    seed: int = 0,
) -> int:
    """Write one HTML file that works offline: tokens moving on the sphere, or influence with sliders.

    Args:
        run: Folder written by `meanfield flow` or `meanfield experiment run`, or a .zarr or .nc store of trajectories.
        profile: In place of a run: a preset (bloom-7b1, …) or a .toml or .json file describing an architecture.
        length: Tokens of the profile at first.
        label: Name of what colours the tokens.
        cyclic: Labels are angles; default: as run.json says.
        frames: At most so many saved times are kept, evenly chosen.
        out: The page; default view.html in the run's folder, or profile.html here.
        seed: Nothing here is random; every command has one.
    """
    if (run is None) == (profile is None):
        raise ValueError("pass either a RUN or --profile NAME, e.g. `meanfield view runs/flow`")
    page = _profile(profile, length, out) if profile is not None else _run(run, label, cyclic, frames, out)
    sys.stdout.write(f"{page.resolve()} ({page.stat().st_size / 1e6:.1f} MB): open it in a browser\n")
    return 0


def _run(run: pathlib.Path, label: str, cyclic: bool | None, frames: int, out: pathlib.Path | None) -> pathlib.Path:
    from . import pages

    runs = pages.read_runs(run)
    folder = run.parent if run.suffix in pages.runs.STORES else run
    cyclic = pages.runs.has_angles(run) if cyclic is None else cyclic
    title = f"Tokens on the sphere: {folder.resolve().name}"
    return pages.view(
        runs, folder / "view.html" if out is None else out, label=label, cyclic=cyclic, title=title, frames=frames
    )


def _profile(name: str, length: int, out: pathlib.Path | None) -> pathlib.Path:
    from . import pages
    from . import propagation as pp

    out = pathlib.Path("profile.html") if out is None else out
    if name.endswith((".toml", ".json")):
        return pages.view_profile({pathlib.Path(name).stem: pp.load_architecture(name)}, out, length=length)
    selected = "bloom" if name == "bloom-176b" else name
    return pages.view_profile(out=out, selected=selected, length=length)
