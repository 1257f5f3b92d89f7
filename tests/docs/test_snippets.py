"""Every Python block of docs/ runs as a reader runs it (float32) and prints what the page shows, if it shows anything."""

import jax
import pytest
from snippets import ROOT, agrees, run

FAST = ("quickstart.md",)
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def _marks(name: str):
    return () if name in FAST else pytest.mark.slow


NAMES = [str(page.relative_to(ROOT / "docs")) for page in PAGES if "```python\n" in page.read_text("utf-8")]


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in NAMES])
def test_page(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    with jax.enable_x64(False), jax.numpy_dtype_promotion("standard"):
        results = run(ROOT / "docs" / name)
    assert results
    for shown, printed in results:
        assert not shown or agrees(shown, printed), f"the page shows\n{shown}\nand the code prints\n{printed}"
