"""The shell's front door: commands load lazily, mistakes exit with 2 and a remedy, runs record themselves."""

import json
import subprocess
import sys
import types

import numpy as np
import pytest
import xarray as xr

from meanfield import _experiments, _gallery, _report, _run, cli
from meanfield.files import write_json, write_zarr
from meanfield.plot import figure, save


def test_help_lists_installed_commands_only(capsys, monkeypatch):
    monkeypatch.setitem(cli.COMMANDS, "later", ("meanfield.not_there_yet:later", "not yet"))
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0
    assert "experiment run" in text and "demo" in text and "later" not in text
    assert cli.main(["later"]) == 2
    assert "not part of this installation" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["bogus"], ["experiment", "bogus"], ["--bogus"]])
def test_unknown_commands_name_the_known_ones(capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "experiment list" in capsys.readouterr().err


def test_help_imports_no_plotting_stores_or_tyro():
    code = (
        "import sys; from meanfield import cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('matplotlib', 'xarray', 'zarr', 'tyro', 'ott', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_flow_writes_figures_numbers_and_its_record(tmp_path, capsys):
    out = tmp_path / "run"
    options = [
        "flow",
        "--n",
        "6",
        "--d",
        "2",
        "--end",
        "1.0",
        "--frames",
        "3",
        "--gauge",
        "rope",
        "--factor",
        "cosine",
        "--scale",
        "2",
        "--offset",
        "1.5",
        "--seed",
        "3",
    ]
    assert cli.main([*options, "--out", str(out)]) == 0
    assert "reached t = 1" in capsys.readouterr().out
    record = json.loads((out / "run.json").read_text())
    assert record["status"] == "finished" and record["seed"] == 3 and record["dtype"] == "float64"
    assert record["arguments"]["gauge"] == "rope" and record["wall_seconds"] > 0
    assert {"jax", "meanfield", "diffrax"} <= set(record["versions"]) and record["devices"]
    data = xr.open_zarr(out / "trajectory.zarr", consolidated=False)
    assert dict(data.sizes) == {"time": 3, "token": 6, "coordinate": 2}
    assert (out / "tokens.png").is_file() and (out / "traces.png").is_file()


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ("--beta -1", "pass beta > 0"),
        ("--frames 1", "frames ≥ 2"),
        ("--n 0", "positive integer"),
        ("--beta 1000", "shift=1.0"),
        ("--rtol 1e-20", "rtol"),
    ],
)
def test_mistakes_in_a_flow_exit_with_a_remedy(tmp_path, capsys, options, remedy):
    out = tmp_path / "run"
    assert cli.main(["flow", *options.split(), "--out", str(out)]) == 2
    assert remedy in capsys.readouterr().err
    assert json.loads((out / "run.json").read_text())["status"].startswith("failed: ValueError")


class Claim(types.SimpleNamespace):
    relation, holds = "<=", property(lambda self: self.value <= self.threshold)


def fake_experiment(claims):
    def run(out, smoke, seed):
        assert out.is_dir() and not smoke and seed == 5
        return claims

    return types.SimpleNamespace(run=run)


@pytest.mark.parametrize(("value", "code"), [(0.5, 0), (1.5, 1), (float("nan"), 1)])
def test_a_claim_that_fails_makes_the_exit_code(tmp_path, capsys, monkeypatch, value, code):
    monkeypatch.setattr(
        _experiments, "load", lambda name: fake_experiment([Claim(claim="c", value=value, threshold=1.0)])
    )
    assert cli.main(["experiment", "run", "any", "--out", str(tmp_path / "o"), "--seed", "5"]) == code
    row = json.loads((tmp_path / "o" / "claims.json").read_text())[0]
    assert row == {
        "claim": "c", "value": value if value == value else "nan", "relation": "<=", "threshold": 1.0, "holds": code == 0
    }  # fmt: skip
    assert ("FAIL" in capsys.readouterr().out) == (code == 1)


def test_a_crash_leaves_its_record(tmp_path, capsys, monkeypatch):
    def crash(out, smoke, seed):
        raise FloatingPointError("it broke")

    monkeypatch.setattr(_experiments, "load", lambda name: types.SimpleNamespace(run=crash))
    with pytest.raises(FloatingPointError):
        cli.main(["experiment", "run", "any", "--out", str(tmp_path)])
    assert json.loads((tmp_path / "run.json").read_text())["status"] == "failed: FloatingPointError: it broke"


def test_unknown_experiment_names_the_known_and_the_close_one(capsys):
    assert cli.main(["experiment", "run", "dynamics_colapse"]) == 2
    text = capsys.readouterr().err
    assert "did you mean 'dynamics_collapse'" in text and "meanfield experiment list" in text


def test_an_experiment_without_its_extra_names_the_remedy(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "meanfield.experiments.dynamics_rope", None)
    assert cli.main(["experiment", "run", "dynamics_rope"]) == 2
    assert "pip install 'meanfield[all]'" in capsys.readouterr().err


def test_list_needs_no_imports(capsys):
    assert cli.main(["experiment", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ["dynamics_metastability", "Two"] in [line.split()[:2] for line in lines]
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)


def test_pages_show_claims_failures_and_errors(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    rows = [
        {"claim": "a < b & c | d", "value": 0.25, "relation": "<=", "threshold": 1.0, "holds": True},
        {"claim": "no", "value": "nan", "relation": "<=", "threshold": 1.0, "holds": False},
    ]
    write_json(good / "claims.json", rows)
    write_json(
        good / "run.json", {"wall_seconds": 1.5, "dtype": "float64", "devices": ["cpu:0"], "versions": {"jax": "1"}}
    )
    (good / "one.png").write_bytes(b"png")
    results = [_report.Result("good", "Good <one>", good), _report.Result("bad", "Bad", bad, error="it <broke>")]
    assert not results[0].holds and not results[1].holds
    page = _report.write_html(tmp_path / "index.html", "T&T", "<p>hello</p>", results).read_text()
    for text in (
        "1 of 2 claims hold",
        "a &lt; b &amp; c | d",
        "0.25",
        "Good &lt;one&gt;",
        "it &lt;broke&gt;",
        "base64,cG5n",
        "T&amp;T",
    ):
        assert text in page


def test_gallery_reuses_finished_runs_and_shrinks_pictures(tmp_path):
    """The newest finished full-size run of an experiment is shown, whatever its folder is called."""
    fig = figure(5.0, 4.0)
    fig.subplots().imshow(np.random.default_rng(0).random((120, 120)))
    for folder, started, smoke, status in (
        ("old", "2026-01-01", False, "finished"),
        ("new", "2026-02-01", False, "finished"),
        ("small", "2026-03-01", True, "finished"),
        ("broken", "2026-04-01", False, "failed"),
    ):
        arguments = {"name": "dynamics_rope", "smoke": smoke}
        record = {"command": "experiment run", "arguments": arguments, "status": status, "started": started}
        write_json(tmp_path / "runs" / folder / "run.json", record | {"wall_seconds": 7.2, "dtype": "float64"})
        row = {"claim": "a | b", "value": 0.25, "relation": "<=", "threshold": 1.0, "holds": True}
        write_json(tmp_path / "runs" / folder / "claims.json", [row])
        save(fig, tmp_path / "runs" / folder / "one.png")
    found = _gallery.find_runs([tmp_path], {"dynamics_rope": "RoPE."})
    assert [result.folder.name for result in found.values()] == ["new"]
    lost = _report.Result("lost", "Lost", tmp_path / "lost", error="it broke")
    text = _gallery.write_gallery(tmp_path / "gallery", [*found.values(), lost]).read_text()
    assert "| a \\| b | 0.25 | <= 1 | yes |" in text and "1 of 1 claims hold" in text and "it broke" in text
    assert "![RoPE: one](pictures/dynamics_rope-one.png)" in text and "7 s · float64" in text
    assert 0 < (tmp_path / "gallery/pictures/dynamics_rope-one.png").stat().st_size <= _gallery.SIZE


def test_stores_are_replaced_whole(tmp_path):
    path = tmp_path / "data.zarr"
    write_zarr(path, xr.Dataset({"a": ("t", [1.0, 2.0])}))
    write_zarr(path, xr.Dataset({"b": ("t", [3.0])}))
    assert list(xr.open_zarr(path, consolidated=False)) == ["b"]
    with pytest.raises(AttributeError):
        write_zarr(path, object())
    assert list(xr.open_zarr(path, consolidated=False)) == ["b"] and len(list(tmp_path.iterdir())) == 1


def test_environment_names_versions_and_devices():
    found = _run.environment()
    assert found["dtype"] == "float64" and found["versions"]["python"].startswith("3.")
