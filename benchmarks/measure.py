"""How benchmarks measure and report: repeated timings, and tables that carry the machine and the versions."""

import csv
import datetime
import importlib.metadata
import io
import os
import pathlib
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from meanfield._machine import cores

PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "diffrax", "equinox", "torch", "pykeops", "torchdiffeq", "pymanopt")


class Timing(NamedTuple):
    """Seconds per call: the median of `repeats`, the fastest and the slowest."""

    median: float
    low: float
    high: float
    repeats: int

    def __str__(self) -> str:
        return f"{self.median:.3g} s ({self.low:.3g} to {self.high:.3g}, {self.repeats} runs)"


def timed(fn: Callable[[], Any], repeats: int = 5, budget: float = 20.0) -> Timing:
    """Times `fn()`, JAX results awaited, after one call that is not counted (compilation, caches).

    Stops after `budget` seconds, with at least one counted call; the number of runs is in the result.
    """
    jax.block_until_ready(fn())
    seconds: list[float] = []
    while len(seconds) < repeats and sum(seconds) < budget:
        seconds.append(_once(fn))
    return Timing(statistics.median(seconds), min(seconds), max(seconds), len(seconds))


def compared(first: Callable[[], Any], second: Callable[[], Any], repeats: int = 9) -> tuple[Timing, Timing, float]:
    """Times both in turn, so that a machine whose speed drifts slows both; the ratio is the median of second/first of neighbours."""
    jax.block_until_ready((first(), second()))
    columns: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for fn, seconds in zip((first, second), columns, strict=True):
            seconds.append(_once(fn))
    timings = [Timing(statistics.median(c), min(c), max(c), repeats) for c in columns]
    return timings[0], timings[1], statistics.median(b / a for a, b in zip(*columns, strict=True))


def peak_memory() -> int:
    """Bytes that this program held at most; `ru_maxrss` would begin at what its parent held."""
    status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024


def _once(fn: Callable[[], Any]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(fn())
    return time.perf_counter() - start


def machine() -> dict[str, str]:
    """The machine, the date and the versions of everything that is compared."""
    found = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_processor()}, {cores()} of {os.cpu_count()} cores",
        "devices": ", ".join(sorted({d.device_kind for d in jax.devices()})) + f" × {len(jax.devices())}",
        "python": platform.python_version(),
    }
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def table(rows: Sequence[dict[str, Any]], path: pathlib.Path, title: str = "", note: str = "") -> pathlib.Path:
    """Writes `rows` as `path`.csv and `path`.md: one column per key of any row, machine and versions below the table.

    A `Timing` becomes its median, and two further CSV columns for its spread. Returns the path of the Markdown file.
    """
    path = pathlib.Path(path).with_suffix("")
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [f"# {title or path.name}", ""] + ([note, ""] if note else [])
    lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(row.get(key)) for key in columns) + " |" for row in rows]
    lines += ["", *(f"* {key}: {value}" for key, value in machine().items()), ""]
    flat = [_flat(row) for row in rows]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(dict.fromkeys(key for row in flat for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    _write(path.with_suffix(".csv"), stream.getvalue())
    return _write(path.with_suffix(".md"), "\n".join(lines))


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    flat = {}
    for key, value in row.items():
        if isinstance(value, Timing):
            flat |= {key: value.median, f"{key} (fastest)": value.low, f"{key} (slowest)": value.high}
        else:
            flat[key] = value
    return flat


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Timing):
        return f"{value.median:.3g} s ({value.low:.3g}–{value.high:.3g})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _write(path: pathlib.Path, text: str) -> pathlib.Path:
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False, encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, path)
    return path


def _processor() -> str:
    info = pathlib.Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
