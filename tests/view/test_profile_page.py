"""The page of profiles computes what propagation.profile computes, in a real browser."""

import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

MIXING, SLOPES = np.linspace(0.1, 0.5, 5), np.asarray([0.25, 0.0625, 0.015625, 0.00390625])
DIAGONAL = np.linspace(-2.0, 3.0, 20).reshape(5, 4)
WEIGHTS, TEMPERATURE = np.asarray([0.1, 0.2, 0.3, 0.4]), 1.5


def _last_row(mixing, slopes, diagonal, n):
    """theory.md 3 by its definition, with matrices."""
    lag = np.subtract.outer(np.arange(n), np.arange(n))
    p = np.eye(n)[-1]
    for t in reversed(range(len(mixing))):
        logits = (diagonal[t][:, None, None] * np.eye(n) - slopes[:, None, None] * lag) / TEMPERATURE
        attention = np.where(lag >= 0, np.exp(logits), 0)
        attention /= attention.sum(-1, keepdims=True)
        p = (1 - mixing[t]) * p + mixing[t] * p @ np.einsum("h,hij->ij", WEIGHTS, attention)
    return p


def test_sliders_move_the_profile(tab, tmp_path):
    arch = mf.propagation.Architecture(
        MIXING, SLOPES, jnp.asarray(DIAGONAL), head_weights=WEIGHTS, temperature=TEMPERATURE
    )
    page = tab.open(mf.pages.view_profile({"mine": arch}, tmp_path / "p.html", length=48))
    shown = np.asarray(page.evaluate("Array.from(meanfield.profile)"))
    np.testing.assert_allclose(shown, _last_row(MIXING, SLOPES, DIAGONAL, 48), rtol=1e-12)
    page.locator("#total").fill("0.75")
    page.locator("#content").fill("1")
    page.locator("#factor").fill("1")
    page.wait_for_function("document.getElementById('content-value').textContent === '1' && !meanfield.waiting")
    shown = np.asarray(page.evaluate("Array.from(meanfield.profile)"))
    changed = _last_row(MIXING / 2, 2 * SLOPES, DIAGONAL + TEMPERATURE, 48)
    np.testing.assert_allclose(shown, changed, rtol=1e-9)
    page.locator("#flat").fill("1")
    page.wait_for_function("document.getElementById('flat-value').textContent === '1' && !meanfield.waiting")
    assert page.evaluate("meanfield.profile[0]") > shown[0]  # flat slopes send more to the first token


def test_presets_lengths_and_the_measurement(tab, tmp_path):
    page = tab.open(mf.pages.view_profile(out=tmp_path / "p.html", selected="bloom"))
    assert page.locator("#name option").all_inner_texts() == list(mf.propagation.presets.NAMES)
    text = page.locator("#table").inner_text()
    distance = float(text.split("measured influence")[1])
    assert 0.03 < distance < 0.04  # theory.md 3: .035 by the checkpoint's slopes
    tab.screenshot("profile-bloom")
    page.locator("#name").select_option("mpt-30b")
    page.locator("#length").fill("6")
    page.locator("#log").check()
    page.wait_for_function("meanfield.profile.length === 64 && !meanfield.waiting")
    assert abs(page.evaluate("meanfield.profile.reduce((s, v) => s + v, 0)") - 1) < 1e-12
    assert page.locator("#measured").is_hidden()
    tab.screenshot("profile-mpt-30b")


def test_what_the_page_cannot_compute_is_refused(tmp_path):
    pp = mf.propagation
    windowed = pp.Architecture(jnp.full(3, 0.2), mask="window", window=4)
    with pytest.raises(ValueError, match="not a causal mask"):
        mf.pages.view_profile({"windowed": windowed}, tmp_path / "p.html")
    with pytest.raises(ValueError, match="at least 2"):
        mf.pages.view_profile(out=tmp_path / "p.html", length=1)
