"""The experiments with language models, at their smallest sizes."""

import importlib
import math

import jax
import numpy as np
import pytest
import xarray as xr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pretrained_smollm2", "pretrained_born"])
def test_smoke(name, tmp_path):
    with jax.numpy_dtype_promotion("standard"):  # optax promotes
        claims = importlib.import_module(f"experiments.{name}").run(tmp_path, smoke=True)
    assert len(claims) > 8 and all(math.isfinite(claim.value) for claim in claims)
    assert list(tmp_path.glob("*.png"))
    if name == "pretrained_born":
        born = xr.open_zarr(tmp_path / "born.zarr", consolidated=False)
        np.testing.assert_allclose(born["influence"].sum("position"), 1, rtol=1e-5)
        assert born["start_birth"].shape == (3, 2)
