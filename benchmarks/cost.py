"""What a million tokens cost: expansions from 10⁴ to 10⁶ tokens, fitted exponents, and blocked sums extrapolated as n²."""

import pathlib

import numpy as np

from .allpairs import BETA, ours, tokens
from .measure import table, timed


def run(out: pathlib.Path) -> None:
    """Writes cost."""
    rows = []
    for d in (2, 3):
        rows += _rows(d)
        table(rows, out / "cost", f"One velocity by method='auto', float32, β = {BETA}")


def _rows(d: int) -> list[dict]:
    rows, counts, times = [], (10_000, 100_000, 1_000_000), []
    for n in counts:
        call, why = ours(tokens(n, d), "auto")
        times.append(timed(call, 5, 3.0))
        rows.append({"d": d, "n": n, "time": times[-1], "method": why.split(":")[0]})
    blocked = timed(ours(tokens(32768, d), "blocked")[0], 1)
    extrapolated = blocked.median * (counts[-1] / 32768) ** 2
    rows[-1]["blocked, extrapolated as n² from 32,768 (s)"] = extrapolated
    rows[-1]["times faster than blocked"] = extrapolated / times[-1].median
    rows[-1]["cost exponent"] = float(np.polyfit(np.log(counts), [np.log(t.median) for t in times], 1)[0])
    return rows
