"""A headless Chromium, and runs whose positions are known by formula."""

import pathlib
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

import meanfield as mf

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ARTEFACTS = pathlib.Path(__file__).parents[2] / "runs" / "browser"  # ignored by git


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium (`apt-get install chromium`), driven by the Python package `playwright`."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("no browser: chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield chromium
        chromium.close()


class Tab:
    """One page of the browser, with what went wrong in it and what it asked of the network."""

    def __init__(self, browser):
        self.page = browser.new_page(viewport={"width": 1200, "height": 820})
        self.errors, self.requests = [], []
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: pathlib.Path, query: str = ""):
        """Opens a file and waits until the page is there."""
        self.page.goto(path.resolve().as_uri() + query)
        self.page.wait_for_function("window.meanfield !== undefined")
        return self.page

    def screenshot(self, name: str) -> bytes:
        """Keeps a screenshot as an artefact and returns its bytes."""
        return self.page.screenshot(path=ARTEFACTS / f"{name}.png")


@pytest.fixture
def tab(browser):
    """A fresh page; closing it checks that nothing went wrong and nothing was fetched."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    tab = Tab(browser)
    yield tab
    tab.page.close()
    assert tab.errors == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.fixture(scope="session")
def make_run():
    """n tokens of S^{d-1} drawn to the last axis: x = normalise((1 − s) x0 + s e_d), s from 0 to 0.9."""

    def make(n: int, d: int = 3, frames: int = 11, status=mf.FlowStatus.FINISHED, labels=None, ts=None):
        x0 = np.random.default_rng(n).normal(size=(n, d))
        s = np.linspace(0.0, 0.9, frames)[:, None, None]
        x = (1 - s) * x0 / np.linalg.norm(x0, axis=1, keepdims=True) + s * np.eye(d)[-1]
        x = jnp.asarray(x / np.linalg.norm(x, axis=2, keepdims=True))
        order = jnp.linalg.norm(x.mean(1), axis=1)
        ts = jnp.linspace(0.0, 5.0, frames) if ts is None else jnp.asarray(ts)
        labels = jnp.linspace(0.0, 1.0, n) if labels is None else labels
        count = jnp.asarray(7)
        steps = {"steps": count, "accepted": count, "rejected": count}
        code = jnp.asarray(int(status), jnp.int32)
        rho = mf.Marginal(labels)
        return mf.Trajectory(ts, x, order**2 / 2, order, ts[-1], x[-1], code, steps, rho.labels, rho.weights, "dense")

    return make
