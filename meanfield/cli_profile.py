"""`meanfield profile`: an architecture in; a small table, figures, CSV and run.json out."""

import pathlib
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import jax
import numpy as np
import tyro

from ._run import recorded
from .files import write_text

if TYPE_CHECKING:
    from .propagation import Architecture


def profile(
    architecture: Annotated[str, tyro.conf.Positional],
    length: int = 256,
    row: int = -1,
    content: Literal["none", "mean"] | None = None,
    dataset: Literal["fineweb-edu", "dclm", "wikipedia"] | None = None,
    convention: Literal["checkpoint", "published"] | None = None,
    compare: str | None = None,
    forces: bool = True,
    out: pathlib.Path = pathlib.Path("runs/profile"),
    seed: int = 0,
) -> int:
    """Predict where the influence on one position comes from, given an architecture only.

    Args:
        architecture: a preset (bloom, bloom-7b1, falcon-rw-7b, mpt-7b, mpt-30b) or a .toml or .json file describing one.
        length: tokens of the context.
        row: the position influenced, from the end if negative.
        content: content of a preset: none (default), or the measured mean.
        dataset: corpus of a preset's mixing coefficients (default fineweb-edu).
        convention: of a preset: checkpoint (default, as the models compute) or published (as the paper's tables).
        compare: a measured profile: a CSV file, the influence.npz of `meanfield measure`, or "bloom" for the published one.
        forces: take the profile apart into attention, residuals, position bias and content.
        out: folder for figures, profile.csv and run.json.
        seed: nothing here is random; kept in run.json.
    """
    from . import propagation as pp

    if length < 3:
        raise ValueError(f"--length {length}: primacy, recency and the U shape need at least 3 tokens")
    choices = {"content": content, "dataset": dataset, "convention": convention}
    choices = {name: value for name, value in choices.items() if value is not None}
    arguments = {"architecture": architecture, "length": length, "row": row, "compare": compare, "forces": forces}
    with jax.enable_x64(True), recorded(out, "profile", arguments | choices, seed) as results:
        arch = _architecture(architecture, choices)
        p = np.asarray(pp.profile(arch, length, row))
        measured = None if compare is None else _measured(compare, length)
        parts = pp.forces(arch, length, row) if forces else None
        table = _table(p, measured, parts)
        _write(out, f"{pathlib.Path(architecture).stem}, {length} tokens", p, measured, parts)
        results |= table
    width = max(len(name) for name in table)
    sys.stdout.writelines(f"{name:<{width}}  {_cell(value)}\n" for name, value in table.items())
    sys.stdout.write(f"\nprofile.csv, figures and run.json are in {out}\n")
    return 0


def _architecture(name: str, choices: dict[str, str]) -> "Architecture":
    from . import propagation as pp

    if not name.endswith((".toml", ".json")):
        return pp.preset(name, **choices)
    if choices:
        given = " ".join(f"--{key} {value}" for key, value in choices.items())
        raise ValueError(f"{given} belongs to a preset, architecture = {name!r} is a file: write it into the file")
    return pp.load_architecture(name)


def _write(out: pathlib.Path, title: str, p: np.ndarray, measured: np.ndarray | None, parts) -> None:
    """profile.csv, profile.png and, with its forces, forces.png."""
    from . import plot

    columns = {"influence": p} | ({} if measured is None else {"measured": measured / measured.sum()})
    plot.save(plot.profiles({"predicted": p}, title, columns.get("measured")), out / "profile.png")
    if parts is not None:
        columns |= dict(zip(parts.stages, parts.profiles, strict=True))
        plot.save(plot.forces(parts, title), out / "forces.png")
    write_text(out / "profile.csv", _csv(columns))


def _measured(source: str, length: int) -> np.ndarray:
    from . import propagation as pp

    if source in ("bloom", "bloom-176b"):
        measured = pp.measured_influence(source)
        if length != measured.size:
            raise ValueError(
                f"length = {length}: the measurement of {source} has {measured.size} positions, use --length 256"
            )
        return measured
    return pp.load_profile(source, length)


def _table(p: np.ndarray, measured: np.ndarray | None, parts) -> dict[str, float | bool]:
    from . import propagation as pp

    shape = pp.u_shape(p)
    table = {
        "first token": float(p[0]),
        "last token": float(p[-1]),
        "first tenth": float(pp.primacy_mass(p)),
        "last tenth": float(pp.recency_mass(p)),
        "mean position (0 first … 1 last)": float(pp.mean_position(p)),
        "U-shaped (ends above the middle third)": bool(shape.holds),
        "U-shaped (ends above uniform)": bool(shape.strict),
    }
    if parts is not None:
        drifts = zip(parts.stages, parts.total_drift[:, 0], strict=True)
        table |= {f"drift of mean position: {name}": float(x) for name, x in drifts}
    if measured is not None:
        table |= {
            "Wasserstein to the measured": float(pp.wasserstein(p, measured)),
            "Spearman with the measured": float(pp.spearman(p, measured)),
        }
    return table


def _csv(columns: dict[str, np.ndarray]) -> str:
    lines = [",".join(["position", *columns])]
    rows = zip(*columns.values(), strict=True)
    lines += [",".join([str(j), *(f"{x:.17g}" for x in row)]) for j, row in enumerate(rows)]
    return "\n".join(lines) + "\n"


def _cell(value: float | bool) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:.4f}"
