"""The experiments on maximisers at smoke size: every claim that smoke size can carry holds, figures and numbers exist."""

import importlib
import math

import pytest

NAMES = ["dirac", "great_circle", "winner", "latitude", "universality", "metastable", "phase_diagram", "measures"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_smoke(name, tmp_path):
    module = importlib.import_module(f"experiments.maximisers_{name}")
    claims = module.run(tmp_path, smoke=True, seed=0)
    assert claims and all(math.isfinite(c.value) for c in claims)
    assert list(tmp_path.glob("*.png")) and list(tmp_path.glob("*.zarr"))
    assert len(module.__doc__.splitlines()[0]) < 140
