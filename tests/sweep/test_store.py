"""Stores: resumed, damaged, killed, locked, full. A wrong point never comes back."""

import _thread
import errno
import gc
import os
import pathlib
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
import xarray as xr
import zarr

import meanfield as mf
from meanfield.sweeps import store as store_module
from meanfield.sweeps.lock import locked

GRID = {"beta": np.array([1.0, 2.0, 3.0]), "seed": np.arange(2)}


def product(beta, seed):
    return {"y": beta * (seed + 1), "v": beta * np.arange(3.0), "count": seed}


def chunk_files(out: pathlib.Path, name: str) -> list[pathlib.Path]:
    return sorted(p for p in (out / name / "c").rglob("*") if p.is_file())


def resumed(out, **options) -> tuple[xr.Dataset, int, int]:
    ds = mf.sweep(product, GRID, out=out, **options)
    return ds, ds.attrs["computed"], ds.attrs["reused"]


@pytest.fixture
def begun(tmp_path):
    out = tmp_path / "run.zarr"
    return out, mf.sweep(product, GRID, out=out, chunk=1, units={"y": "m"})


def test_what_is_stored_is_what_was_returned(begun):
    out, first = begun
    xr.testing.assert_identical(xr.open_zarr(out).load(), first)
    xr.testing.assert_equal(first, mf.sweep(product, GRID))
    assert first["y"].attrs["units"] == "m" and first.attrs["compiles"] == 1 and first["ok"].dtype == bool
    assert not list(out.parent.glob(".*"))  # no lock, nothing half made


def test_a_complete_store_is_read_without_tracing(begun):
    out, first = begun
    ds, computed, reused = resumed(out)
    xr.testing.assert_equal(ds, first)
    assert (computed, reused, ds.attrs["compiles"]) == (0, 6, 0)


@pytest.mark.parametrize("damage", ["truncated", "altered", "deleted", "another chunk's"])
@pytest.mark.parametrize("name", ["y", "v", "ok"])
def test_damaged_chunks_are_computed_again(begun, damage, name):
    out, first = begun
    file, other = chunk_files(out, name)[2:4]
    data = file.read_bytes()
    match damage:
        case "truncated":
            file.write_bytes(data[: len(data) // 2])
        case "altered":
            file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        case "deleted":
            file.unlink()
        case _:
            file.write_bytes(other.read_bytes())
    ds, computed, reused = resumed(out)
    xr.testing.assert_equal(ds, first)
    same = damage == "another chunk's" and data == other.read_bytes()
    assert (computed, reused) == ((0, 6) if same else (1, 5))


def test_six_points_killed_after_three_one_truncated(tmp_path, monkeypatch):
    """traps.md: 4 computed, 2 reused."""
    out, written = tmp_path / "run.zarr", []
    whole = store_module.Store.write

    def killed(self, number, values, code):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(number)
        whole(self, number, values, code)

    with monkeypatch.context() as patch:
        patch.setattr(store_module.Store, "write", killed)
        with pytest.raises(KeyboardInterrupt) as caught:
            mf.sweep(product, GRID, out=out, chunk=1)
    assert "3 of 6 points are safe" in caught.value.__notes__[0]
    half = xr.open_zarr(out).load()
    assert int(half["ok"].sum()) == 3 and (half["status"] == -2).sum() == 3 and half["y"].isnull().sum() == 3
    file = chunk_files(out, "v")[0]
    file.write_bytes(file.read_bytes()[:10])
    ds, computed, reused = resumed(out)
    assert (computed, reused) == (4, 2)
    xr.testing.assert_equal(ds, mf.sweep(product, GRID))


def test_failed_points_are_kept_as_failed(tmp_path):
    def fails(beta):
        return {"y": np.nan * beta, "t": 0.0 * beta}

    for _ in range(2):
        ds = mf.sweep(fails, {"beta": [0.0, 1.0]}, out=tmp_path / "run.zarr", chunk=1)
        assert not ds["ok"].any() and ds["y"].isnull().all() and (ds["status"] == -1).all() and (ds["t"] == 0).all()
    assert ds.attrs["reused"] == 2


@pytest.mark.parametrize(
    ("grid", "match"),
    [
        ({**GRID, "beta": np.array([1.0, 2.0, 4.0])}, "'beta' differs first at index 2: 3.0 in the store, 4.0"),
        ({**GRID, "seed": np.arange(3)}, "'seed' has 2 values in the store and 3"),
        ({"seed": GRID["seed"], "beta": GRID["beta"]}, "'beta'.*order"),
        ([{"beta": 1.0, "seed": 0}], "list of points"),
    ],
)
def test_another_grid_is_refused(begun, grid, match):
    with pytest.raises(ValueError, match=match):
        mf.sweep(product, grid, out=begun[0])
    xr.testing.assert_identical(xr.open_zarr(begun[0]).load(), begun[1])


def test_another_name_and_a_foreign_folder_are_refused(begun, tmp_path):
    with pytest.raises(ValueError, match="name=None, not 'other'"):
        mf.sweep(product, GRID, out=begun[0], name="other")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("text")
    with pytest.raises(ValueError, match="no store of a sweep"):
        mf.sweep(product, GRID, out=tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "text"


def test_a_function_with_other_outputs_is_refused(begun):
    out, _ = begun
    chunk_files(out, "y")[0].unlink()
    for fn in (lambda beta, seed: {"y": beta}, lambda beta, seed: {**product(beta, seed), "y": np.ones(2) * beta}):
        with (
            pytest.warns(UserWarning, match="code of fn changed"),
            pytest.raises(ValueError, match="output '(v|y|count)'"),
        ):
            mf.sweep(fn, GRID, out=out)


def test_changed_code_is_told_and_an_unchanged_one_is_not(begun):
    out, first = begun
    factor = 2.0
    with pytest.warns(UserWarning, match="code of fn changed since 6 points"):
        ds = mf.sweep(lambda beta, seed: {"y": factor * beta}, GRID, out=out)
    xr.testing.assert_equal(ds, first)


def test_a_store_that_another_run_holds_is_refused(begun):
    out, _ = begun
    with locked(out), pytest.raises(ValueError, match=f"held by another run.*{os.getpid()}"):
        mf.sweep(product, GRID, out=out)
    assert resumed(out)[1] == 0


HOLDER = """
import fcntl, os, sys, time
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(handle, fcntl.LOCK_EX)
os.write(handle, b"pid of a test")
print("held", flush=True)
time.sleep(60)
"""


def test_the_lock_of_a_dead_process_is_taken_over(begun):
    out, _ = begun
    lock = out.with_name(".run.zarr.lock")
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(ValueError, match="held by another run .pid of a test"):
            mf.sweep(product, GRID, out=out)
        process.kill()
    assert lock.exists() and resumed(out)[1] == 0 and not lock.exists()


@pytest.mark.parametrize("full_at", ["chunk", "ledger"])
def test_a_full_disk_is_an_error_and_leaves_the_store_intact(tmp_path, monkeypatch, full_at):
    out, calls = tmp_path / "run.zarr", []

    def full(original):
        def write(*args, **kwargs):
            calls.append(1)
            if len(calls) > 4:
                raise OSError(errno.ENOSPC, "No space left on device")
            return original(*args, **kwargs)

        return write

    with monkeypatch.context() as patch:
        if full_at == "chunk":
            patch.setattr(zarr.Array, "__setitem__", full(zarr.Array.__setitem__))
        else:
            patch.setattr(store_module.os, "fsync", full(os.fsync))
        with pytest.raises(OSError, match="No space left") as caught:
            mf.sweep(product, GRID, out=out, chunk=1)
    assert any("are safe in" in note for note in caught.value.__notes__)
    half = xr.open_zarr(out).load()
    good = half["ok"].values
    np.testing.assert_array_equal(half["y"].values[good], mf.sweep(product, GRID)["y"].values[good])
    xr.testing.assert_equal(resumed(out)[0], mf.sweep(product, GRID))


def test_a_torn_ledger_costs_only_its_last_line(begun):
    out, first = begun
    ledger = out / ".meanfield" / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-20])
    ds, computed, reused = resumed(out)
    assert (computed, reused) == (1, 5) and resumed(out)[1:] == (0, 6)
    xr.testing.assert_equal(ds, first)


@pytest.mark.parametrize("name", ["beta", "v"])
def test_a_damaged_description_is_named(begun, name):
    out, _ = begun
    (out / name / "zarr.json").write_text("{")
    with pytest.raises(ValueError, match="description of the store is damaged"):
        mf.sweep(product, GRID, out=out)


KILLED = """
import sys, time, numpy as np, jax, meanfield as mf
def slow(beta, seed):
    wait = lambda b: (time.sleep(0.02), np.asarray(b) * 2)[1]
    return {"y": jax.pure_callback(wait, jax.ShapeDtypeStruct((), np.float32), beta) + seed}
grid = {"beta": np.arange(12, dtype=np.float32), "seed": np.arange(12)}
print(mf.sweep(slow, grid, out=sys.argv[1], chunk=6).attrs["computed"])
"""


def check_half(out: pathlib.Path) -> int:
    """Every point that the store gives out is right, the others are NaN; the number of points given out."""
    half = xr.open_zarr(out).load()
    beta, seed = np.meshgrid(half["beta"], half["seed"], indexing="ij")
    np.testing.assert_array_equal(half["y"].values, np.where(half["ok"], 2 * beta + seed, np.nan))
    return int(half["ok"].sum())


@pytest.mark.slow
def test_kill_9_loses_at_most_a_chunk(tmp_path):
    out = tmp_path / "run.zarr"
    run = [sys.executable, "-c", KILLED, str(out)]
    done = 0
    for delay in (0.0, 0.3, 0.7):
        process = subprocess.Popen(run)
        while process.poll() is None and not out.with_name(".run.zarr.lock").exists():
            time.sleep(0.002)
        while process.poll() is None and not out.exists():
            time.sleep(0.002)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before, done = done, check_half(out)
        assert done >= before
    again = subprocess.run(run, capture_output=True, text=True, check=True)
    # a chunk whose files were written, its line in the ledger not yet, is computed again
    assert 0 <= int(again.stdout) - (144 - done) <= 6 and check_half(out) == 144


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, whatever a test before left behind, and not in a callback of the garbage collector, which drops it."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, handler)


def test_ctrl_c_keeps_what_is_done(tmp_path, interruptible):
    out, calls = tmp_path / "run.zarr", []

    def double(beta):
        calls.append(1)
        if len(calls) == 40:
            _thread.interrupt_main(signal.SIGINT)
        time.sleep(0.01)
        return np.asarray(beta) * 2

    def slow(beta, seed):
        return {"y": jax.pure_callback(double, jax.ShapeDtypeStruct((), beta.dtype), beta) + seed}

    grid = {"beta": np.arange(12.0), "seed": np.arange(12)}
    with pytest.raises(KeyboardInterrupt) as caught:
        mf.sweep(slow, grid, out=out, chunk=6)
    done = check_half(out)
    # a busy machine hands the signal to the main thread late
    assert 30 <= done < 140 and f"{done} of 144 points are safe" in caught.value.__notes__[0]
    assert mf.sweep(slow, grid, out=out).attrs["computed"] == 144 - done and check_half(out) == 144
