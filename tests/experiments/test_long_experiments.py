"""Sweeps, long times, noise and design at smoke size: figures and numbers exist, values are numbers."""

import importlib
import math

import pytest

NAMES = [
    "noise_threshold",
    "staircase",
    "merge_times",
    "initial_modes",
    "phase_diagrams",
    "design_gauge",
    "design_slow_kernel",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_smoke(name, tmp_path):
    module = importlib.import_module(f"experiments.{name}")
    claims = module.run(tmp_path, smoke=True, seed=0)
    # at this size too few runs reach order 0.9 for a correlation
    assert claims and all(math.isfinite(c.value) or "rank correlation" in c.claim for c in claims)
    assert list(tmp_path.glob("*.png")) and (list(tmp_path.glob("*.zarr")) or list(tmp_path.glob("*.csv")))
    assert len(module.__doc__.splitlines()[0]) < 140
