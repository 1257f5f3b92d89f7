"""`meanfield experiment list | run | gallery`."""

import pathlib
import sys
from typing import Literal

import tyro

from . import _experiments, _gallery, _report, _run

Precision = Literal["float64", "float32"]


def list_experiments() -> int:
    """Print every experiment with what it shows."""
    known = _experiments.descriptions()
    width = max(map(len, known), default=0)
    sys.stdout.writelines(f"{name:<{width}}  {text}\n" for name, text in known.items())
    return 0


def run(
    name: tyro.conf.Positional[str],
    out: pathlib.Path | None = None,
    smoke: bool = False,
    seed: int = 0,
    dtype: Precision = "float64",
) -> int:
    """Run one experiment; the exit code is 1 where a claim fails.

    Args:
        name: Which experiment (see `meanfield experiment list`).
        out: Folder for figures, numbers, claims.json and run.json; default runs/NAME.
        smoke: The smallest sizes that still run every line (claims need not hold).
        seed: Seed of every random draw.
        dtype: Floating precision of the run.
    """
    out = pathlib.Path("runs") / name if out is None else out
    code = _run.report_claims(_experiments.run(name, out, smoke, seed, dtype))
    sys.stdout.write(f"written to {out}\n")
    return 0 if smoke else code


def gallery(
    out: pathlib.Path = pathlib.Path("docs/gallery"),
    runs: pathlib.Path = pathlib.Path("runs/gallery"),
    reuse: tuple[pathlib.Path, ...] = (),
    only: tuple[str, ...] = (),
    smoke: bool = False,
    seed: int = 0,
    jobs: int = 2,
) -> int:
    """Run all experiments and write a gallery in Markdown: pictures, claims with measured values, run times.

    Args:
        out: Folder of the gallery.
        runs: Folder of the runs: all figures, numbers, claims.json and run.json.
        reuse: Folders with finished full-size runs, which are shown and not repeated.
        only: Names of the experiments to show; default all.
        smoke: The smallest sizes.
        seed: Seed of every random draw.
        jobs: Experiments that run at the same time, each in its own process.
    """
    known = _experiments.descriptions()
    names = only or tuple(known)
    for name in names:
        if name not in known:
            _experiments.load(name)  # raises with the known names
    found = _gallery.find_runs(reuse, known)
    found |= {
        result.name: result for result in _report.run_all([n for n in names if n not in found], runs, smoke, seed, jobs)
    }
    results = [found[name] for name in names]
    page = _gallery.write_gallery(out, results)
    sys.stdout.write(f"{page}\n")
    return 0 if smoke or all(result.holds for result in results) else 1
