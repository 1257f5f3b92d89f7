"""The experiments on propagation at smoke size: they run to their end, measure finite numbers, and leave figures and numbers."""

import importlib
import math

import pytest

NAMES = ["u_shape", "collapse", "forces", "bridge", "harmonic", "content", "dichotomy", "measured", "phases"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_smoke(name, tmp_path):
    module = importlib.import_module(f"experiments.propagation_{name}")
    claims = module.run(tmp_path, smoke=True, seed=0)
    assert claims and all(math.isfinite(claim.value) for claim in claims)
    assert list(tmp_path.glob("*.png")) and [*tmp_path.glob("*.csv"), *tmp_path.glob("*.npz")]
    assert len(module.__doc__.splitlines()[0]) < 140
