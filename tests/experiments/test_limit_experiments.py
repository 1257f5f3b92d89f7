"""The experiments on many tokens at smoke size: figures and numbers are there, claims are finite numbers."""

import numpy as np
import pytest

from meanfield import _experiments


@pytest.mark.slow
@pytest.mark.parametrize("name", ["meanfield_limit", "million_tokens"])
def test_smoke(name, tmp_path):
    claims = _experiments.load(name).run(tmp_path, smoke=True, seed=1)
    assert all(np.isfinite(claim.value) for claim in claims)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    assert (tmp_path / f"{name}.csv").stat().st_size > 50
