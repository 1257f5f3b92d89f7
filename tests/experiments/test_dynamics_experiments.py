"""Every dynamics experiment runs at smoke size: its files are there, its claims are numbers against thresholds."""

import math

import pytest
import xarray as xr

from meanfield import _experiments

NAMES = sorted(name for name in _experiments.descriptions() if name.startswith("dynamics_"))


@pytest.mark.parametrize("name", NAMES)
def test_smoke(name, tmp_path):
    claims = _experiments.load(name).run(tmp_path, smoke=True, seed=1)
    assert len(claims) >= 3
    assert all(math.isfinite(claim.value) and math.isfinite(claim.threshold) for claim in claims)
    assert list(tmp_path.glob("*.png"))
    tree = xr.open_datatree(tmp_path / "trajectories.zarr", engine="zarr", consolidated=False)
    assert all({"x", "energy", "order", "weight"} <= set(run) for run in tree.values() if run.children == {})


def test_all_nine_findings_have_a_script():
    assert len(NAMES) == 9
    assert all(text for text in _experiments.descriptions().values())
