"""Strong and weak scaling of blocked sums and expansions over 1, 2 and 4 host devices (one process each)."""

import json
import os
import pathlib
import subprocess
import sys

from .measure import table

CODE = """
import json, sys
import jax, numpy as np
import meanfield as mf
from benchmarks.measure import timed
from benchmarks.allpairs import tokens
m, n, d, method = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
x = jax.numpy.asarray(tokens(n, d))
rho = mf.Marginal(np.zeros(n, np.float32))
kernel = mf.ExpDot(4.0, shift=1.0)
t = timed(lambda: mf.velocity(mf.USA(kernel), x, rho, method=method, devices=jax.devices()[:m]), 3, 8.0)
print(json.dumps([t.median, t.low, t.high, float(mf.energy(kernel, x, rho, method=method, devices=jax.devices()[:m]))]))
"""


def run(out: pathlib.Path) -> None:
    """Writes scaling: seconds and energies. On a machine with fewer cores than devices no gain can be expected."""
    rows = []
    for method, d, n in (("blocked", 16, 8192), ("expansion", 3, 200_000)):
        for m in (1, 2, 4):
            strong, weak = _measure(m, n, d, method), _measure(m, _weak(n, m, method), d, method)
            rows.append(
                {"method": method, "d": d, "devices": m, "strong n": n, "strong (s)": strong[0], "energy": strong[3],
                 "weak n": _weak(n, m, method), "weak (s)": weak[0]}
            )  # fmt: skip
    note = f"Forced host devices on {os.cpu_count()} cores; one XLA device already uses every core."
    table(rows, out / "scaling", "Scaling over devices", note)


def _weak(n: int, devices: int, method: str) -> int:
    """Equal work per device: n² pairs, or n moments."""
    return round(n * (devices**0.5 if method == "blocked" else devices))


def _measure(devices: int, n: int, d: int, method: str) -> list[float]:
    env = dict(os.environ, XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}", JAX_PLATFORMS="cpu")
    command = [sys.executable, "-c", CODE, str(devices), str(n), str(d), method]
    out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=True)
    return json.loads(out.stdout.strip().splitlines()[-1])
