"""The table of predictions: distances, both averages, errors, baselines, and the figures of it."""

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure
from pretrained.checkpoints import CONFIGS, write

import meanfield as mf
from meanfield.plot import pretrained as figures


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    model = mf.pretrained.load(write(tmp_path_factory.mktemp("bloom"), CONFIGS["bloom"], seed=11))
    ids = np.asarray(jax.random.randint(jax.random.key(4), (6, 9), 0, 24), np.int32)
    return mf.pretrained.measure(model, ids, transitions=("energy2", "mixing"))


def test_distances_of_the_table(measured):
    table = mf.pretrained.compare(measured, samples=50, seed=3)
    row = measured.dataset["prediction"].sel(transition="energy2").values.mean(0)
    gap = np.cumsum(row / row.sum()) - np.cumsum(measured.influence)
    cell = table.sel(predictor="energy2", average="published")
    np.testing.assert_allclose(cell["wasserstein"], np.abs(gap).sum() / 8, rtol=1e-5)
    gap = np.cumsum(np.full(9, 1 / 9)) - np.cumsum(measured.profile("sequences"))
    cell = table.sel(predictor="uniform", average="sequences")
    np.testing.assert_allclose(cell["wasserstein"], np.abs(gap).sum() / 8, rtol=1e-5)
    assert set(table["predictor"].values) == {
        "energy2", "mixing", "mixing of averages", "architecture", "uniform", "1/√(distance+1)", "bloom-176b: architecture",
    }  # fmt: skip
    reference = table.sel(predictor="bloom-176b: architecture", average="published")
    assert abs(float(reference["wasserstein"]) - 0.035) < 1e-3
    own = table.sel(predictor=["energy2", "mixing", "architecture"])
    assert (own["wasserstein_error"] > 0).all() and (own["spearman_sequence"] <= 1).all()


def test_order_of_averaging(measured):
    """A saturated sequence (influence 1000 times smaller) drops out of the published mean, and counts whole in the other."""
    data = measured.dataset.isel(sequence=[0, 1]).copy(deep=True)
    data["influence"][1] /= 1000
    both = mf.pretrained.Measurement(data)
    alone = [row / row.sum() for row in data["influence"].values.astype(np.float64)]
    np.testing.assert_allclose(both.profile("published"), alone[0], rtol=0.05)
    np.testing.assert_allclose(both.profile("sequences"), (alone[0] + alone[1]) / 2, rtol=1e-6)
    assert np.abs(both.profile("sequences") - alone[0]).max() > 0.01
    table = mf.pretrained.compare(both, samples=2, reference=False)["wasserstein"].sel(predictor="uniform")
    for order in ("published", "sequences"):
        gap = np.cumsum(np.full(9, 1 / 9)) - np.cumsum(both.profile(order))
        np.testing.assert_allclose(table.sel(average=order), np.abs(gap).sum() / 8, rtol=1e-5)


def test_the_error_is_the_spread_of_independent_samples(measured):
    """Bootstrap errors scale as 1/√sequences: twice the same sequences have an error smaller by about √2."""
    twice = mf.pretrained.Measurement(measured.dataset.isel(sequence=list(range(6)) * 2))
    once, more = (mf.pretrained.compare(m, samples=800, reference=False) for m in (measured, twice))
    ratio = once["wasserstein_error"].sel(predictor="energy2") / more["wasserstein_error"].sel(predictor="energy2")
    np.testing.assert_allclose(ratio, np.sqrt(2), rtol=0.25)


def test_architecture_is_the_models(measured):
    arch = mf.pretrained.architecture(measured)
    np.testing.assert_allclose(arch.mixing, measured.mixing, rtol=1e-6)
    np.testing.assert_allclose(arch.bias.slopes, mf.propagation.alibi_slopes(2), rtol=1e-6)
    mixing, kernel = measured.mixing, measured.attention
    np.testing.assert_allclose(mf.propagation.rollout(kernel, mixing), measured.rollout, atol=1e-5)
    np.testing.assert_allclose(measured.rollout_row, measured.rollout[-1], rtol=1e-9)


def test_figures(measured, tmp_path):
    table = mf.pretrained.compare(measured, samples=5)
    for name, figure in {
        "influence": figures.influence(
            measured, table, "a $ title_ with\nnewline", shown=tuple(table["predictor"].values[:6])
        ),
        "layers": figures.layers(measured, "layers"),
    }.items():
        assert isinstance(figure, Figure)
        mf.plot.save(figure, tmp_path / f"{name}.png", {"influence": measured.influence})
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000 and (tmp_path / f"{name}.npz").exists()


def test_table_as_text(measured):
    text = mf.pretrained.format_table(mf.pretrained.compare(measured, samples=5))
    lines = text.splitlines()
    assert len(lines) == 8 and "W1 published" in lines[0] and "nan" not in text
    distances = [float(line[26:].split()[0]) for line in lines[1:]]
    assert distances == sorted(distances)


def test_windows():
    ids = np.arange(100)
    windows = mf.pretrained.windows(ids, 5, 20)
    assert windows.shape == (5, 20) and windows[0, 0] == 0 and windows[-1, -1] == 99
    shuffled = mf.pretrained.windows(ids, 5, 20, shuffle=True, seed=1)
    assert not np.array_equal(shuffled, windows)
    np.testing.assert_array_equal(shuffled, mf.pretrained.windows(ids, 5, 20, shuffle=True, seed=1))
    with pytest.raises(ValueError, match="100 tokens, fewer than length=101"):
        mf.pretrained.windows(ids, 5, 101)


def test_measure_command(tmp_path, capsys):
    from meanfield.cli_measure import measure

    folder = write(tmp_path / "model", CONFIGS["llama"])
    np.save(tmp_path / "ids.npy", np.arange(60, dtype=np.int32) % 24)
    arguments = {"windows": 3, "length": 7, "transitions": ("energy",), "out": tmp_path / "out"}
    assert measure(folder, ids=tmp_path / "ids.npy", **arguments) == 0
    for name in ("table.csv", "influence.png", "influence.npz", "layers.png", "run.json", "measurement.zarr"):
        assert (tmp_path / "out" / name).exists()
    assert "energy" in capsys.readouterr().out
    (tmp_path / "text.txt").write_text("words")
    with pytest.raises(ValueError, match="no tokenizer.json"):
        measure(folder, text=tmp_path / "text.txt", out=tmp_path / "other")
    with pytest.raises(ValueError, match="either --text FILE or --ids"):
        measure(folder)
