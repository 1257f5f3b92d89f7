"""`meanfield ascend`: options, TOML, results on disk."""

import json

import numpy as np
import pytest
import xarray as xr

from meanfield import cli
from meanfield.cli_ascend import AscendOptions, _configured


@pytest.mark.slow
def test_results_are_written(tmp_path, capsys):
    out = tmp_path / "run"
    code = cli.main(["ascend", "--n", "12", "--factor", "decay", "--beta", "0", "--restarts", "2", "--out", str(out)])
    assert code == 0
    record = json.loads((out / "run.json").read_text())
    assert record["status"] == "finished"
    data = xr.open_zarr(out / "maximiser.zarr", consolidated=False)
    np.testing.assert_allclose(np.linalg.norm(data.x, axis=1), 1.0, atol=1e-12)
    label = data.label.values
    dirac = 0.5 * np.mean(np.exp(-np.abs(label[:, None] - label)))
    np.testing.assert_allclose(record["results"]["energy"], dirac, rtol=1e-9)
    assert 0 <= record["results"]["gap"] < 1e-6 and (out / "maximiser.png").stat().st_size > 10_000
    assert "upper bound" in capsys.readouterr().out


def test_toml_fills_what_the_command_line_leaves(tmp_path):
    path = tmp_path / "ascend.toml"
    path.write_text('n = 7\nbeta = 3\nfactor = "gaussian"\nfrequencies = [1, 2]\n')
    options = _configured(AscendOptions(config=path, n=9))
    assert (options.n, options.beta, options.factor, options.frequencies) == (9, 3.0, "gaussian", (1.0, 2.0))
    path.write_text("temperature = 3\n")
    with pytest.raises(ValueError, match="unknown options temperature"):
        _configured(AscendOptions(config=path))
    path.write_text('factor = "cosin"\n')
    with pytest.raises(ValueError, match="use one of none, cosine"):
        _configured(AscendOptions(config=path))
    path.write_text('n = "many"\n')
    with pytest.raises(ValueError, match="expected a int"):
        _configured(AscendOptions(config=path))
