"""The page of tokens in a real browser."""

import numpy as np
import pytest

import meanfield as mf

RIGHT_UP_NEAR = "meanfield.run.places(meanfield.time, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])"


def _shown(page, axes=3):
    x = np.asarray(list(page.evaluate(f"Array.from({RIGHT_UP_NEAR})"))).reshape(-1, 3)
    return x[:, :axes]


@pytest.mark.parametrize("renderer", ["webgl", "canvas"])
def test_slider_moves_tokens_and_series_follow(tab, tmp_path, make_run, renderer):
    run = make_run(40)
    page = tab.open(mf.view(run, tmp_path / "a.html"), f"?renderer={renderer}")
    kind = page.evaluate("meanfield.points.constructor.name")
    assert kind == {"webgl": "GLPoints", "canvas": "CanvasPoints"}[renderer]
    before = tab.screenshot(f"view-{renderer}-start")
    np.testing.assert_allclose(_shown(page), run.x[0], atol=1e-4)
    page.locator("#time").fill("7")
    np.testing.assert_allclose(_shown(page), run.x[7], atol=1e-4)
    assert page.locator("#now").inner_text() == "t = 3.5"
    assert f"{float(run.order[7]):.4f}" in page.locator("#charts").inner_text()
    assert tab.screenshot(f"view-{renderer}-later") != before


def test_play_and_pause(tab, tmp_path, make_run):
    page = tab.open(mf.view(make_run(8), tmp_path / "a.html"))
    page.locator("#speed").select_option("4")
    page.locator("#play").click()
    page.wait_for_function("meanfield.time > 1")
    page.locator("#play").click()
    stopped = page.evaluate("meanfield.time")
    page.wait_for_timeout(200)
    assert page.evaluate("meanfield.time") == stopped and not page.evaluate("meanfield.playing")
    page.evaluate("meanfield.seek(9.5), meanfield.play()")
    page.wait_for_function("!meanfield.playing")
    assert page.evaluate("meanfield.time") == 10


def test_hover_names_token_and_label(tab, tmp_path, make_run):
    run = make_run(6, d=2)
    page = tab.open(mf.view(run, tmp_path / "a.html", names=[f"word {i}" for i in range(6)], label="position"))
    box = page.locator("#stage").bounding_box()
    scale = page.evaluate("meanfield.globe.scale") * box["width"] / 2
    x, y = np.asarray(run.x[0, 4])
    page.mouse.move(box["x"] + box["width"] / 2 + scale * x, box["y"] + box["height"] / 2 - scale * y)
    text = page.locator("#tip").inner_text()
    assert text.startswith(f"token 4\nword 4\nposition: 0.8\n({x:.3f}, {y:.3f})")
    tab.screenshot("view-hover")


def test_turning_and_zooming_keep_a_rotation(tab, tmp_path, make_run):
    page = tab.open(mf.view(make_run(20), tmp_path / "a.html"))
    box = page.locator("#stage").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 320, box["y"] + 260, steps=5)
    page.mouse.up()
    page.mouse.wheel(0, -300)
    page.wait_for_function("meanfield.globe.zoom > 1")
    m = np.asarray(page.evaluate("meanfield.globe.matrix"))
    np.testing.assert_allclose(m @ m.T, np.eye(3), atol=1e-12)
    page.locator("#reset").click()
    assert np.abs(np.asarray(page.evaluate("meanfield.globe.matrix")) - m).max() > 0.1


def test_menu_of_runs_uneven_times_and_awkward_texts(tab, tmp_path, make_run):
    name = "</script><b>$x_1$\n文"
    runs = {name: make_run(5), "log": make_run(7, d=4, ts=np.geomspace(0.01, 100, 11))}
    page = tab.open(mf.view(runs, tmp_path / "a.html", title=name))
    assert page.locator("#run option").all_inner_texts()[1] == "log"
    page.locator("#run").select_option("1")
    assert page.evaluate("meanfield.run.n") == 7 and "saved times)" in page.locator("#charts").inner_text()
    tab.screenshot("view-menu")


def test_twenty_thousand_tokens(tab, tmp_path, make_run, record_property):
    page = tab.open(mf.view(make_run(20_000, frames=12), tmp_path / "a.html"))
    frames = page.evaluate(
        "() => new Promise((done) => { const [begin, drawn] = [performance.now(), meanfield.drawn]; meanfield.play();"
        " setTimeout(() => done((meanfield.drawn - drawn) / (performance.now() - begin) * 1000), 1500); })"
    )
    record_property("frames per second, software rendering", frames)
    tab.screenshot("view-20000")
    assert frames > 0 and page.evaluate("meanfield.time") > 0
