"""Figures and films without a display, with texts that would break mathtext, whole or not at all."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import meanfield as mf
from meanfield import plot

NASTY = ["$x_1$", "a_b^c{", "line\nbreak", "日本語", "", "tab\t%#&", "\\frac{", "$"]


def trajectory(d=3, n=8, frames=4):
    """A made-up flow: tokens turning about the first axes; the rows after the third time were not reached."""
    angle = jnp.linspace(0.0, 1.0, frames)[:, None] + jnp.linspace(0.0, 6.0, n)
    x = jnp.concatenate([jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1), jnp.zeros((frames, n, d - 2))], -1)
    x = x.at[3:].set(jnp.nan)
    order = jnp.linspace(0.1, 0.9, frames).at[3:].set(jnp.nan)
    rho = mf.Marginal.circle(n)
    return mf.Trajectory(
        jnp.linspace(0.0, 1.5, frames),
        x,
        order,
        order,
        jnp.asarray(1.0),
        x[2],
        jnp.asarray(1),
        {},
        rho.labels,
        rho.weights,
        "dense",
    )


def size(path):
    with Image.open(path) as image:
        return image.size


@pytest.mark.parametrize("d", [2, 3, 5])
def test_tokens_on_every_sphere_with_nasty_texts(tmp_path, d):
    fig = plot.tokens(trajectory(d), cyclic=d == 2, names=NASTY, title="$unclosed_{\n", label="ξ_$")
    path = plot.save(fig, tmp_path / "tokens.png", data={"x": np.eye(2)})
    assert min(size(path)) > 300
    np.testing.assert_array_equal(np.load(tmp_path / "tokens.npz")["x"], np.eye(2))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["tokens.npz", "tokens.png"]


def test_tokens_draw_the_near_side_solid_and_the_far_side_faded():
    x = np.array([[0.0, -1.0, 0.0], [0.0, 1.0, 0.0]])  # towards the reader, away from the reader
    fig = plot.tokens(x, colour=np.array([0, 1]))
    far, near = [c for c in fig.axes[0].collections if len(c.get_offsets()) == 1][:2]
    assert far.get_facecolors()[0, 3] < 0.5 < near.get_facecolors()[0, 3]
    np.testing.assert_allclose(far.get_offsets()[0], -near.get_offsets()[0], atol=1e-12)


def test_traces_show_what_was_saved(tmp_path):
    run = trajectory()
    fig = plot.traces({"a$": run, "b_c": run}, gap=True)
    assert [ax.get_ylabel() for ax in fig.axes] == ["distance from collapse 1 − R", "energy E"]
    assert fig.axes[-1].get_xlabel() == "time t (dimensionless)"
    np.testing.assert_allclose(fig.axes[0].lines[0].get_ydata()[:3], 1 - run.order[:3])
    plot.save(fig, tmp_path / "traces.svg")
    empty = mf.Trajectory(run.ts, None, None, None, run.t, run.final, run.status, {}, run.labels, run.weights, "dense")
    with pytest.raises(ValueError, match="save="):
        plot.traces(empty)


def test_film_has_one_frame_per_reached_time(tmp_path):
    path = plot.animate(trajectory(n=4), tmp_path / "film.gif", dpi=40, title="$")
    with Image.open(path) as film:
        assert film.n_frames == 3
    with pytest.raises(ValueError, match="gif or .mp4"):
        plot.animate(trajectory(), tmp_path / "film.avi")


def test_mp4_without_ffmpeg_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr("matplotlib.animation.FFMpegWriter.isAvailable", lambda: False)
    with pytest.raises(ValueError, match="ffmpeg"):
        plot.animate(trajectory(), tmp_path / "film.mp4")


def test_mistakes_name_argument_and_remedy(tmp_path):
    x = np.eye(3)
    with pytest.raises(ValueError, match="written as .png"):
        plot.save(plot.figure(), tmp_path / "figure.bmp")
    with pytest.raises(ValueError, match="one text per token"):
        plot.tokens(x, names=["a"])
    run = trajectory()
    nowhere = jax.tree.map(lambda a: a, run)
    with pytest.raises(ValueError, match="no finite state"):
        plot.tokens(mf.Trajectory(run.ts, run.x * jnp.nan, *[None] * 2, run.t, *_rest(nowhere)))


def _rest(run):
    return (
        run.final,
        run.status,
        {"accepted": jnp.asarray(0), "rejected": jnp.asarray(0)},
        run.labels,
        run.weights,
        "dense",
    )


def test_a_failed_write_leaves_the_old_figure(tmp_path, monkeypatch):
    path = plot.save(plot.figure(1.0, 1.0), tmp_path / "figure.png")
    before = path.read_bytes()

    def fails(self, target, **kwargs):
        pathlib.Path(target).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fails)
    with pytest.raises(OSError, match="No space"):
        plot.save(plot.figure(1.0, 1.0), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["figure.png"]
