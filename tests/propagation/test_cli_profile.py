"""`meanfield profile`: what it writes, and how it refuses malformed files."""

import json

import numpy as np
import pytest

import meanfield as mf
from meanfield.cli_profile import profile

pp = mf.propagation


def test_profile_of_a_file(tmp_path, capsys):
    np.savez(tmp_path / "scores.npz", d=np.full((3, 4), 8.0))
    (tmp_path / "arch.toml").write_text(
        "mixing = {depth = 3, scale = 0.5, exponent = 1}\nheads = 4\ndiagonal = {file = 'scores.npz', key = 'd', scale = 0.125}\n"
    )
    expected = pp.profile(pp.Architecture(pp.power_mixing(3, 0.5, 1), pp.alibi_slopes(4), diagonal=1.0), 40)
    (tmp_path / "measured.csv").write_text(
        "# by hand\nposition,influence\n" + "".join(f"{j},{2 * x}\n" for j, x in enumerate(expected))
    )
    assert (
        profile(str(tmp_path / "arch.toml"), length=40, compare=str(tmp_path / "measured.csv"), out=tmp_path / "out")
        == 0
    )
    table = np.genfromtxt(tmp_path / "out/profile.csv", delimiter=",", names=True)
    np.testing.assert_allclose(table["influence"], expected, atol=1e-15)
    record = json.loads((tmp_path / "out/run.json").read_text())
    assert record["status"] == "finished" and abs(record["results"]["Wasserstein to the measured"]) < 1e-12
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {"profile.png", "forces.png"}
    assert "U-shaped" in capsys.readouterr().out


def test_choices_of_a_preset_do_not_go_with_a_file(tmp_path):
    (tmp_path / "arch.toml").write_text("mixing = [0.1]\n")
    with pytest.raises(ValueError, match="--content mean belongs to a preset.*arch.toml"):
        profile(str(tmp_path / "arch.toml"), content="mean", out=tmp_path / "out")


@pytest.mark.parametrize(
    "text,words",
    [
        ("mixing = [0.1, 1.2]\n", ("mixing[1] = 1.2",)),
        ("mixing = [0.1]\nheads = 2\nslopes = [0.1]\n", ("slopes and heads",)),
        ("mixing = [0.1]\nlambda = 2\n", ("'lambda' is unknown", "mixing")),
        ("mixing = [0.1, 'a']\n", ("mixing", "numbers")),
        ("mixing = {value = 0.1}\n", ("'depth' is missing",)),
        ("mixing = [0.1\n", ("cannot be read",)),
        ("heads = 4\n", ("mixing is missing",)),
        ("preset = 'gpt-5'\n", ("gpt-5", "mpt-30b")),
        ("mixing = [0.1]\nbias = {kind = 'kerple'}\n", ("kerple", "rotary")),
        ("mixing = [0.1]\ndiagonal = {file = 'no.npz', key = 'd'}\n", ("no.npz", "cannot be read")),
        ("mixing = [0.1]\ndiagonal = {file = 'bad.npz', key = 'd'}\n", ("bad.npz", "cannot be read")),
        ("mixing = [0.1]\ndiagonal = {file = 'good.npz', key = 'd'}\n", ("no array 'd' among e",)),
        ("mixing = [0.1]\nbias = 't5'\n", ("'table' is missing",)),
        ("mixing = [0.1]\nslopes = [-0.1]\n", ("slopes[0] = -0.1", "≥ 0")),
        ("mixing = [0.1, 0.2]\ndiagonal = [1, 2, 3]\n", ("3 layers", "mixing has 2")),
    ],
)
def test_malformed_descriptions(text, words, tmp_path):
    (tmp_path / "a.toml").write_text(text)
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 cut off")
    np.savez(tmp_path / "good.npz", e=np.zeros(1))
    with pytest.raises(ValueError) as error:
        pp.load_architecture(tmp_path / "a.toml")
    assert all(word in str(error.value) for word in ("a.toml", *words)), str(error.value)


def test_other_descriptions(tmp_path):
    (tmp_path / "a.json").write_text(
        '{"preset": "mpt-7b", "mask": "window", "window": 3, "bias": {"kind": "rotary", "dim": 8}}'
    )
    arch = pp.load_architecture(tmp_path / "a.json")
    assert isinstance(arch.bias, pp.RotaryDecay) and arch.mask.width == 3 and arch.depth == 32


@pytest.mark.parametrize(
    "text,words",
    [("0.1\n0.2\n", ("2 positions", "--length 2")), ("0.1\nx\n0.2\n", ("'x'", "number")), ("1\n1\n-1\n", ("≥ 0",))],
)
def test_malformed_profiles(text, words, tmp_path):
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(ValueError) as error:
        pp.load_profile(tmp_path / "m.csv", 3)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_a_measurement_is_a_profile(tmp_path):
    """influence.npz, as `meanfield measure` writes it."""
    influence = np.array([0.5, 0.2, 0.3])
    np.savez(tmp_path / "influence.npz", influence=influence, mixing=np.zeros(2))
    np.testing.assert_array_equal(pp.load_profile(tmp_path / "influence.npz", 3), influence)
    with pytest.raises(ValueError, match="--length 3"):
        pp.load_profile(tmp_path / "influence.npz", 4)
