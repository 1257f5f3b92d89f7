"""Every Python block of README.md and docs/ runs as a reader runs it (float32) and prints what the page shows."""

import jax
import pytest
from snippets import ROOT, agrees, run

FAST = ("README.md",)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES if "```python\n" in page.read_text("utf-8")]


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in NAMES])
def test_page(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    with jax.enable_x64(False), jax.numpy_dtype_promotion("standard"):
        results = run(ROOT / name)
    assert results
    for shown, printed in results:
        assert agrees(shown, printed), f"the page shows\n{shown}\nand the code prints\n{printed}"
