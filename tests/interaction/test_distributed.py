"""`meanfield … --distributed`: two processes give one process's numbers; an absent or killed peer ends in an error."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from meanfield import cli, distributed

FLOW = ["flow", "--n", "101", "--d", "3", "--frames", "3", "--dtype", "float32", "--rtol", "1e-5"]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(*arguments: str) -> subprocess.Popen:
    env = dict(os.environ, JAX_PLATFORMS="cpu", MPLBACKEND="Agg")
    command = [sys.executable, "-m", "meanfield.cli", *FLOW, *arguments]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def pair(out: pathlib.Path, *arguments: str) -> list[subprocess.Popen]:
    cluster = ["--distributed", "--coordinator", f"127.0.0.1:{free_port()}", "--processes", "2"]
    return [start(*arguments, "--out", str(out), *cluster, "--rank", str(rank)) for rank in (0, 1)]


def energies(out: pathlib.Path) -> np.ndarray:
    import xarray

    return xarray.open_zarr(out / "trajectory.zarr", consolidated=False)["energy"].values


@pytest.mark.slow
def test_two_processes_give_the_numbers_of_one(tmp_path):
    both = pair(tmp_path / "two", "--end", "1")
    outputs = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    alone = start("--end", "1", "--out", str(tmp_path / "one"))
    assert alone.wait(300) == 0
    np.testing.assert_allclose(energies(tmp_path / "two"), energies(tmp_path / "one"), rtol=1e-6)
    assert "energy" in outputs[0][0] and "energy" not in outputs[1][0]  # only rank 0 speaks


@pytest.mark.slow
def test_a_killed_peer_is_an_error_within_a_minute(tmp_path):
    out = tmp_path / "killed"
    first = start("--end", "0.1", "--out", str(out))
    assert first.wait(300) == 0
    saved = energies(out)
    both = pair(out, "--end", "1e7", "--n", "4000", "--frames", "100")
    deadline = time.monotonic() + 120
    while not _running(out) and time.monotonic() < deadline:
        time.sleep(0.5)
    time.sleep(15)  # both are in the flow's collectives
    both[1].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    _, errors = both[0].communicate(timeout=60)
    assert time.monotonic() - killed < 60
    assert both[0].returncode != 0 and errors
    json.loads((out / "run.json").read_text(encoding="utf-8"))
    np.testing.assert_array_equal(energies(out), saved)


@pytest.mark.slow
def test_an_absent_peer_is_an_error(tmp_path):
    cluster = ["--distributed", "--coordinator", f"127.0.0.1:{free_port()}", "--processes", "2", "--rank", "0"]
    alone = start("--end", "1", "--out", str(tmp_path), *cluster, "--timeout", "10")
    _, errors = alone.communicate(timeout=90)
    assert alone.returncode != 0 and errors


def test_options_are_checked(capsys, monkeypatch):
    rest, cluster = distributed.requested(["--n", "4", "--distributed", "--processes", "2", "--rank", "1",
                                           "--coordinator", "host:1", "--timeout", "9"], "flow")  # fmt: skip
    assert rest == ["--n", "4"] and cluster == distributed.Cluster("host:1", 2, 1, 9)
    assert distributed.requested(["--n", "4"], "flow") == (["--n", "4"], None)
    with pytest.raises(ValueError, match="start 'sweep' once per host"):
        distributed.requested(["--distributed", "--processes", "2"], "sweep")
    for name in distributed.LAUNCHERS:
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["flow", "--distributed", "--processes", "2"]) == 2
    assert "--coordinator and --rank" in capsys.readouterr().err
    monkeypatch.setenv("SLURM_NTASKS", "2")
    monkeypatch.setenv("SLURM_PROCID", "0")
    assert distributed.requested(["--distributed"], "flow")[1] == distributed.Cluster()


def _running(out: pathlib.Path) -> bool:
    record = json.loads((out / "run.json").read_text(encoding="utf-8"))
    return record["status"] == "running" and record["arguments"]["n"] == 4000
