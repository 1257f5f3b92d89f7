"""A sweep from a file: model, grid, outputs, figures; resumes; mistakes are named."""

import numpy as np
import pytest
import xarray as xr

from meanfield.cli_sweep import EXAMPLE, SweepOptions, sweep
from meanfield.kernels import ExpDot, RoPE, Toeplitz
from meanfield.sweeps.model import Model, evaluate

FILE = """
name = "small"
[model]
kernel = "ExpDot(beta, shift=1)"
tokens = 4
end = 1.0
saves = 3
outputs = ["order", "clusters", "collapse_time"]
[grid]
beta = {start = 1.0, stop = 4.0, num = 3, spacing = "log"}
seed = {count = 2}
[[figure]]
variable = "order"
x = "beta"
"""


def test_a_file_gives_a_store_and_figures_and_resumes(tmp_path, capsys):
    file = tmp_path / "small.toml"
    file.write_text(FILE)
    options = SweepOptions(file=file, out=tmp_path / "out")
    assert sweep(options) == 0
    ds = xr.open_zarr(tmp_path / "out" / "sweep.zarr").load()
    np.testing.assert_allclose(ds["beta"], [1.0, 2.0, 4.0])
    assert ds["order"].sizes == {"beta": 3, "seed": 2, "order_0": 3} and ds["ok"].all()
    assert (ds["collapse_time"] == 1.0).all() and not ds["collapsed"].any() and (ds["clusters"] >= 1).all()
    assert (tmp_path / "out" / "00-order.png").stat().st_size > 1000
    assert np.load(tmp_path / "out" / "00-order.npz")["values"].shape == (3, 2, 3)
    assert "computed 6, reused 0, failed 0 of 6" in capsys.readouterr().out
    assert sweep(options) == 0 and "computed 0, reused 6" in capsys.readouterr().out
    file.write_text(FILE.replace("tokens = 4", "tokens = 5"))
    with pytest.raises(ValueError, match="tokens=4.*not.*tokens=5"):
        sweep(options)


def test_the_example_is_a_file_that_reads(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("meanfield.cli_sweep.run_sweep", lambda model, axes, *args, **kwargs: pytest.skip(str(model)))
    assert sweep(SweepOptions(example=True)) == 0 and capsys.readouterr().out == EXAMPLE
    (tmp_path / "example.toml").write_text(EXAMPLE)
    with pytest.raises(pytest.skip.Exception, match="ExpDot"):
        sweep(SweepOptions(file=tmp_path / "example.toml", out=tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("[grid]", "[gird]", "'gird' is unknown"),
        ("[model]", "[[model]]", r"table \[model\]"),
        ("tokens = 4", "token = 4", "'token'"),
        ("tokens = 4", "tokens = 0", "model.tokens=0"),
        ("ExpDot(beta", "ExpDot(gamma", "names 'gamma'"),
        ("ExpDot(beta, shift=1)", "__import__('os')", "model.kernel"),
        ("ExpDot(beta, shift=1)", "ExpDot(", "no expression"),
        ("ExpDot(beta, shift=1)", "ExpDot(beta, power=2)", "ExpDot.*power"),
        ('"clusters"', '"mass"', "'mass'"),
        ("num = 3,", "", "beta has"),
        ("name =", "name", "toml"),
    ],
)
def test_mistakes_are_named(tmp_path, old, new, match):
    file = tmp_path / "small.toml"
    assert old in FILE
    file.write_text(FILE.replace(old, new))
    with pytest.raises(ValueError, match=match):
        sweep(SweepOptions(file=file, out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_no_file_is_told():
    with pytest.raises(ValueError, match="--example"):
        sweep(SweepOptions())


def test_expressions_build_kernels():
    kernel = evaluate(
        "kernel", "2 * Toeplitz(Cosine(offset=a / 2), RoPE(ExpDot(b + 1), [w, -1]))", {"a": 1.0, "b": 2.0, "w": 3.0}
    )
    inner = kernel.inner if hasattr(kernel, "inner") else kernel.a
    assert isinstance(inner, Toeplitz | RoPE | ExpDot)
    with pytest.raises(ValueError, match="holds 'b.real'"):
        evaluate("kernel", "ExpDot(b.real)", {"b": 1.0})


def test_a_model_needs_known_words():
    with pytest.raises(ValueError, match="model.dynamics='usa'"):
        Model(kernel="Dot()", dynamics="usa")
