"""What is written into a page, without a browser."""

import base64
import json

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf


def _data(path):
    text = path.read_text("utf-8").split('<script id="data" type="application/json">')[1].split("</script>")[0]
    return json.loads(text)


def _array(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


def test_positions_series_and_labels_survive(tmp_path, make_run):
    run = make_run(30)
    (record,) = _data(mf.view(run, tmp_path / "a.html"))["runs"]
    x = _array(record["x"], "<i2").reshape(11, 30, 3) / 32767
    assert np.abs(x - np.asarray(run.x)).max() < 2e-5
    np.testing.assert_allclose(record["ts"], run.ts)
    np.testing.assert_allclose(record["order"], run.order)
    np.testing.assert_allclose(record["energy"], run.energy)
    assert record["texts"][29] == "1" and record["unit"] and record["even"]


def test_thinning_keeps_first_and_last(tmp_path, make_run):
    run = make_run(5, frames=101)
    (record,) = _data(mf.view(run, tmp_path / "a.html", frames=8))["runs"]
    assert len(record["ts"]) == 8 and record["ts"][0] == 0 and record["ts"][-1] == 5
    assert "8 of 101 saved times" in record["meta"]


def test_unreached_rows_are_left_out_and_said(tmp_path, make_run):
    run = make_run(5, status=mf.FlowStatus.MAX_STEPS)
    reached = jnp.arange(11) < 6
    run = eqx.tree_at(lambda r: r.x, run, jnp.where(reached[:, None, None], run.x, jnp.nan))
    (record,) = _data(mf.view(run, tmp_path / "a.html"))["runs"]
    assert len(record["ts"]) == 6 and "max steps" in record["meta"]


def test_higher_dimensions_show_principal_axes(tmp_path, make_run):
    run = make_run(12, d=6)
    (record,) = _data(mf.view(run, tmp_path / "a.html"))["runs"]
    x = _array(record["x"], "<i2").reshape(11, 12, 3) / 32767
    total = np.einsum("tni,tnj->ij", run.x, run.x)
    np.testing.assert_allclose(np.sum(x**2, (0, 1)), np.sort(np.linalg.eigvalsh(total))[:-4:-1], rtol=1e-3)
    assert not record["unit"] and record["axes_names"][0] == "pc₁"


def test_composite_labels_categories_and_weights(tmp_path, make_run):
    run = make_run(9, labels={"prompt": jnp.ones((9, 2)), "position": jnp.arange(9) % 3})
    run = eqx.tree_at(lambda r: r.weights, run, jnp.asarray([4 / 9] + [5 / 72] * 8))
    (record,) = _data(mf.view(run, tmp_path / "a.html"))["runs"]
    assert record["texts"][4] == "1; (1, 1)"
    assert [kind for kind, _ in record["legend"]["kinds"]] == ["0", "1", "2"]
    assert _array(record["sizes"], "<f4")[0] == 2


def test_texts_cannot_end_the_script(tmp_path, make_run):
    evil = "</script><script>alert(1)</script>&amp;"
    page = mf.view(make_run(2), tmp_path / "a.html", title=evil, label=evil, names=[evil, "π"])
    assert "<script>alert" not in page.read_text("utf-8")
    assert _data(page)["runs"][0]["names"] == [evil, "π"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"out": "a.png"}, "written as .html"),
        ({"names": ["a"]}, "1 texts"),
        ({"colour": np.zeros(3)}, "4 tokens"),
        ({"frames": 1}, "at least 2"),
        ({"runs": {}}, "runs is empty"),
    ],
)
def test_mistakes(tmp_path, make_run, as_user, arguments, words):
    with pytest.raises(ValueError, match=words):
        mf.view(**{"runs": make_run(4), "out": tmp_path / "a.html", **arguments})


def test_nothing_to_show(tmp_path, make_run):
    run = make_run(4)
    with pytest.raises(ValueError, match="save="):
        mf.view(eqx.tree_at(lambda r: r.x, run, None), tmp_path / "a.html")
    with pytest.raises(ValueError, match="every saved row is NaN"):
        mf.view(eqx.tree_at(lambda r: r.x, run, run.x * jnp.nan), tmp_path / "a.html")


def test_runs_are_found_in_folders_groups_and_files(tmp_path, make_run):
    import xarray as xr

    from meanfield.cli import main

    mf.files.write_zarr(tmp_path / "one" / "trajectory.zarr", make_run(4).to_xarray())
    mf.files.write_json(tmp_path / "one" / "run.json", {"arguments": {"labels": "circle"}})
    tree = xr.DataTree.from_dict({"n = 4": make_run(4).to_xarray(), "n = 5": make_run(5).to_xarray()})
    mf.files.write_zarr(tmp_path / "two" / "trajectories.zarr", tree)
    assert main(["view", str(tmp_path / "one")]) == 0
    assert _data(tmp_path / "one" / "view.html")["runs"][0]["legend"]["high"] == "2π"
    assert main(["view", str(tmp_path / "two" / "trajectories.zarr"), "--out", str(tmp_path / "b.html")]) == 0
    assert [run["name"] for run in _data(tmp_path / "b.html")["runs"]] == ["n = 4", "n = 5"]
    page = mf.view(str(tmp_path / "two"), tmp_path / "c.html")
    assert len(_data(page)["runs"]) == 2


def test_command_mistakes(tmp_path, capsys):
    from meanfield.cli import main

    assert main(["view"]) == 2 and "RUN or --profile" in capsys.readouterr().err
    assert main(["view", str(tmp_path / "nothing")]) == 2 and "does not exist" in capsys.readouterr().err
    assert main(["view", str(tmp_path)]) == 2 and "holds no trajectory" in capsys.readouterr().err
    assert main(["view", "--profile", "gpt-9"]) == 2 and "mpt-30b" in capsys.readouterr().err
