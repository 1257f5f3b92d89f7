"""Strong and weak scaling of blocked sums and expansions over 1, 2 and 4 host devices (one process each)."""

import json
import os
import pathlib
import subprocess
import sys

from .measure import Timing, table

CODE = """
import json, sys
import jax, numpy as np
import meanfield as mf
from benchmarks.measure import timed
from benchmarks.allpairs import tokens
m, d, method = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
devices, kernel, found = jax.devices()[:m], mf.ExpDot(4.0, shift=1.0), []
for n in map(int, sys.argv[4:]):
    x, rho = jax.numpy.asarray(tokens(n, d)), mf.Marginal(np.zeros(n, np.float32))
    t = timed(lambda: mf.velocity(mf.USA(kernel), x, rho, method=method, devices=devices), 3, 3.0)
    found.append([*t, float(mf.energy(kernel, x, rho, method=method, devices=devices))])
print(json.dumps(found))
"""
CASES = (("blocked", 16, 8192), ("expansion", 3, 200_000))


def run(out: pathlib.Path) -> None:
    """Writes scaling: seconds and energies. On a machine with fewer cores than devices no gain can be expected."""
    rows = []
    for method, d, n in CASES:
        for m in (1, 2, 4):
            sizes = [n, _weak(n, m, method)]
            strong, weak = _measure(m, d, method, sizes)
            rows.append(
                {"method": method, "d": d, "devices": m, "strong n": n, "strong": Timing(*strong[:4]), "energy": strong[4],
                 "weak n": sizes[1], "weak": Timing(*weak[:4])}
            )  # fmt: skip
    for row in rows:
        alone = next(r for r in rows if r["method"] == row["method"])
        row["energy − one device's, relative"] = abs(row["energy"] / alone["energy"] - 1)
    note = f"Forced host devices on {os.cpu_count()} cores; one XLA device already uses every core."
    table(rows, out / "scaling", "Scaling over devices, float32", note)


def _weak(n: int, devices: int, method: str) -> int:
    """Equal work per device: n² pairs, or n moments."""
    return round(n * (devices**0.5 if method == "blocked" else devices))


def _measure(devices: int, d: int, method: str, sizes: list[int]) -> list[list[float]]:
    env = dict(os.environ, XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}", JAX_PLATFORMS="cpu")
    command = [sys.executable, "-c", CODE, str(devices), str(d), method, *map(str, sizes)]
    out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200, check=True)
    return json.loads(out.stdout.strip().splitlines()[-1])
