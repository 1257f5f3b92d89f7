"""Figures of sweeps: what is drawn is what the numbers say."""

import matplotlib
import numpy as np
import pytest
import xarray as xr

import meanfield as mf

BETA, SIZE, SEED = np.geomspace(1.0, 8.0, 4), np.array([0.0, 1.0, 2.0]), np.arange(5)


@pytest.fixture(scope="module")
def ds():
    rng = np.random.default_rng(0)
    y = BETA[:, None, None, None] + SIZE[:, None, None] + rng.normal(size=(4, 3, 5, 2))
    ok = np.ones((4, 3, 5), bool)
    ok[3, 2], y[3, 2] = False, np.nan
    ok[0, 0, 0], y[0, 0, 0] = False, np.nan
    return xr.Dataset(
        {"y$_": (("beta", "size", "seed", "y$__0"), y), "ok": (("beta", "size", "seed"), ok)},
        {"beta": BETA, "size": SIZE, "seed": SEED},
    )


def test_a_heat_map_shows_means_and_deviations_of_good_points(ds):
    fig = mf.plot.sweep(ds, "y$_", x="beta", y="size", title="a_$b")
    mean, deviation = (ax.collections[0].get_array() for ax in fig.axes[:2])
    expected = np.nanmean(ds["y$_"].values[..., -1][:3], axis=-1)
    np.testing.assert_allclose(np.ma.filled(mean, np.nan)[:, :3].T, expected)
    assert np.ma.getmaskarray(mean)[2, 3] or np.isnan(np.ma.filled(mean, np.nan)[2, 3])
    np.testing.assert_allclose(np.ma.filled(deviation, np.nan)[1, 1], ds["y$_"].values[1, 1, :, -1].std())
    assert fig.axes[0].get_xscale() == "log" and fig.axes[0].get_yscale() == "linear"
    assert "6 of 60 points failed" in fig.get_suptitle()
    fig.canvas.draw()  # `$` and `_` in names do not break it


def test_lines_carry_the_range_over_seeds(ds):
    fig = mf.plot.sweep(ds, "y$_", x="beta", at={"size": 1.1, "y$__0": 0})
    (line,) = fig.axes[0].get_lines()
    np.testing.assert_allclose(line.get_ydata(), ds["y$_"].values[:, 1, :, 0].mean(-1))
    band = fig.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose(band.max(), ds["y$_"].values[:, 1, :, 0].max())
    assert "size = 1" in fig.axes[0].get_ylabel()


def test_another_axis_gives_a_line_for_each_value(ds):
    fig = mf.plot.sweep(ds, "y$_", x="beta")
    assert [text.get_text() for text in fig.axes[0].get_legend().get_texts()] == ["size = 0", "size = 1", "size = 2"]


def test_listed_points_are_scattered():
    ds = mf.sweep(lambda a, b: {"y": a * b}, [{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 0.5}])
    assert mf.plot.sweep(ds, "y").axes[0].get_lines()[0].get_ydata().tolist() == [2.0, 1.5]
    assert mf.plot.sweep(ds, "y", x="a", y="b").axes[0].collections[0].get_array().tolist() == [2.0, 1.5]


def test_unknown_names_and_axes_left_over_are_refused(ds):
    for options, match in (
        ({"variable": "z"}, "variable='z'"),
        ({"x": "gamma"}, "x='gamma'"),
        ({"spread": ()}, "are left to draw"),
        ({"at": {"gamma": 1}}, "at names 'gamma'"),
    ):
        with pytest.raises(ValueError, match=match):
            mf.plot.sweep(ds, **({"variable": "y$_"} | options))


def test_figures_need_no_global_state(ds):
    before = dict(matplotlib.rcParams)
    mf.plot.sweep(ds, "y$_", x="beta", y="size")
    assert dict(matplotlib.rcParams) == before
