"""What a sweep returns: labels, dtypes, one compile, failures kept apart, refusals that name their cause."""

import json
import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import meanfield as mf

BETAS, SEEDS = np.linspace(0.5, 3.5, 4), np.arange(3)


def relax(beta, seed):
    """Steps of a Newton iteration for √beta from a seeded start: its length depends on the point, as an adaptive solver's."""
    start = 1.0 + jax.random.uniform(jax.random.fold_in(jax.random.key(0), seed), dtype=beta.dtype)
    root, steps = jax.lax.while_loop(
        lambda c: jnp.abs(c[0] ** 2 - beta) > 1e-4 * beta, lambda c: (0.5 * (c[0] + beta / c[0]), c[1] + 1), (start, 0)
    )
    return {"root": root, "powers": root ** jnp.arange(1.0, 4.0, dtype=beta.dtype), "steps": steps}


def test_points_equal_their_solo_runs_and_carry_labels(precision):
    traces = []

    def counted(beta, seed):
        traces.append(1)
        return relax(beta, seed)

    ds = mf.sweep(counted, {"beta": BETAS, "seed": SEEDS}, units={"root": "m"})
    assert len(traces) == 1 and ds.attrs["compiles"] == 1
    assert ds["powers"].dims == ("beta", "seed", "powers_0") and ds["root"].dtype == precision
    assert ds["root"].attrs["units"] == "m" and ds["powers"].attrs["units"] == "1"
    for i, beta in enumerate(BETAS):
        solo = relax(jnp.asarray(beta, precision), 2)
        np.testing.assert_allclose(ds["powers"].values[i, 2], solo["powers"], rtol=1e-6)
        assert int(ds["steps"].values[i, 2]) == int(solo["steps"])
    assert json.loads(ds.attrs["seed"]) == [0, 1, 2] and ds.attrs["dtype"] == str(precision)
    assert json.loads(ds.attrs["versions"])["jax"] == jax.__version__ and ds.attrs["wall_time"] > 0
    assert (ds.attrs["computed"], ds.attrs["reused"]) == (12, 0)


@pytest.mark.parametrize("batch", ["loop", "vmap"])
@pytest.mark.parametrize("chunk", [1, 5, 12])
def test_batch_and_chunk_do_not_change_results(batch, chunk):
    grid = {"beta": BETAS, "seed": SEEDS}
    ds = mf.sweep(relax, grid, chunk=chunk, batch=batch, workers=3)
    xr.testing.assert_allclose(ds, mf.sweep(relax, grid), rtol=1e-12)


def test_parameters_are_weak_as_python_numbers_are():
    ds = mf.sweep(lambda beta: {"y": beta * jnp.ones(2, jnp.float32)}, {"beta": BETAS})
    assert ds["y"].dtype == np.float32


def test_a_list_of_points_has_one_dimension():
    points = [{"beta": 1.0, "seed": 0}, {"seed": 2, "beta": 2.0}, {"beta": 4.0, "seed": 1}]
    ds = mf.sweep(relax, points)
    assert ds["root"].dims == ("point",) and ds["beta"].dims == ("point",)
    np.testing.assert_array_equal(ds["seed"], [0, 2, 1])
    np.testing.assert_allclose(ds["root"], [1.0, 2**0.5, 2.0], rtol=1e-4)


def test_a_failed_point_keeps_status_t_and_steps_and_nothing_else():
    def fails(beta):
        bad = beta > 1.0
        y = jnp.where(beta > 2.0, jnp.inf, 1.0) * jnp.ones(3)
        return {
            "y": y,
            "count": 7,
            "flag": True,
            "t": 0.5 * beta,
            "steps": 4,
            "ok": ~bad | (beta > 2.0),
            "z": 1j * beta,
        }

    ds = mf.sweep(fails, {"beta": [1.0, 2.0, 3.0]})
    assert ds["ok"].dtype == bool and ds["ok"].values.tolist() == [True, False, False]
    assert ds["status"].values.tolist() == [0, -3, -1]
    for name in ("y", "count", "flag", "z"):
        assert not ds[name][0].isnull().any() and ds[name][1:].isnull().all()
    assert ds["t"].values.tolist() == [0.5, 1.0, 1.5] and ds["steps"].values.tolist() == [4, 4, 4]


def test_status_without_ok_is_a_flow_status():
    ds = mf.sweep(lambda code: {"y": 1.0 * code, "status": code}, {"code": [0, 1, 2, 3]})
    assert ds["ok"].values.tolist() == [True, True, False, False] and ds["status"].values.tolist() == [0, 1, 2, 3]


def test_a_trajectory_is_read_whole():
    rho, x0 = mf.Marginal(np.zeros(4)), mf.sphere.sample(jax.random.key(3), (4, 3))
    ds = mf.sweep(
        lambda beta: mf.flow(mf.USA(mf.ExpDot(beta)), x0, rho, jnp.array([0.0, 0.5]), throw=False),
        {"beta": [1.0, 800.0]},
    )
    assert {"order", "energy", "x", "t", "ok", "status", "steps", "accepted", "rejected"} <= set(ds.data_vars)
    assert ds["ok"].values.tolist() == [True, False] and ds["t"].values[0] == 0.5 and ds["t"].values[1] < 0.5
    assert ds["x"][1].isnull().all() and ds["steps"].values[0] > 0


SHARED = """
import jax, numpy as np, meanfield as mf, sys
sys.path.insert(0, sys.argv[1])
from test_sweep import relax
grid = {"beta": np.linspace(0.5, 3.5, 5), "seed": np.arange(3)}
alone = mf.sweep(relax, grid)
for count in (2, 4):
    for batch in ("loop", "vmap")[: 5 - count]:
        ds = mf.sweep(relax, grid, chunk=9, devices=jax.devices()[:count], batch=batch)
        assert np.allclose(ds["powers"], alone["powers"], rtol=1e-5), (count, batch)
        assert len(np.unique(ds["steps"])) > 1 and ds.attrs["compiles"] == 1
"""


@pytest.mark.slow
def test_points_are_shared_among_devices():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    run = [sys.executable, "-c", SHARED, str(pathlib.Path(__file__).parent)]
    done = subprocess.run(run, env=os.environ | flags, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("grid", "fn", "match"),
    [
        ({"gamma": [1.0]}, lambda beta: {"y": beta}, "'gamma'"),
        ({"beta": [1.0]}, lambda beta, seed: {"y": beta}, "'seed'"),
        ({"beta": ["a"]}, lambda beta: {"y": beta}, "'beta'.*traced numbers"),
        ({"beta": [1.0, np.nan]}, lambda beta: {"y": beta}, "'beta'.*nan"),
        ({"beta": []}, lambda beta: {"y": beta}, "'beta'.*non-empty"),
        ({}, lambda: {"y": 1.0}, "grid is empty"),
        ([{"beta": 1.0}, {"seed": 1}], lambda beta: {"y": beta}, r"grid\[1\]"),
        ({"beta": [1.0]}, lambda beta: {"y": [jnp.ones(2), jnp.ones(3)]}, "'y'.*pad"),
        ({"beta": [1.0]}, lambda beta: {"y": "text"}, "'y'"),
        ({"beta": [1.0]}, lambda beta: beta, "dict of arrays"),
        ({"beta": [1.0]}, lambda beta: {}, "no output"),
        ({"beta": [1.0]}, lambda beta: {"beta": beta}, "'beta' of fn has the name of an axis"),
        ({"beta": [1.0]}, lambda beta: {"y": beta} if beta > 0 else {"z": beta}, "cannot be traced"),
        ({"beta": [1.0]}, lambda beta: {"y": beta, "ok": jnp.ones(2, bool)}, "'ok'"),
    ],
)
def test_bad_input_is_named(grid, fn, match):
    with pytest.raises(ValueError, match=match):
        mf.sweep(fn, grid)


@pytest.mark.parametrize("argument", [{"chunk": 0}, {"workers": 0}, {"devices": []}, {"batch": "pmap"}])
def test_bad_options_are_named(argument):
    with pytest.raises(ValueError, match=next(iter(argument))):
        mf.sweep(relax, {"beta": BETAS, "seed": SEEDS}, **argument)


def test_integers_beyond_the_precision_are_refused():
    with jax.enable_x64(False), pytest.raises(ValueError, match="'seed'.*int32"):
        mf.sweep(lambda seed: {"y": 1.0 * seed}, {"seed": [2**40]})


def test_an_error_raised_in_a_point_names_it():
    import equinox as eqx

    def strict(beta):
        return {"y": eqx.error_if(beta, beta > 2.0, "too large")}

    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        mf.sweep(strict, {"beta": [1.0, 3.0]}, workers=1)
    assert "throw=False" in caught.value.__notes__[0] and "beta" in caught.value.__notes__[0]
