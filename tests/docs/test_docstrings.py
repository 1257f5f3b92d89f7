"""Every public name has an example in its docstring, and the examples print what they show (float32, as a reader runs them)."""

import importlib
import re

import jax
import pytest
from docstrings import run
from snippets import ROOT, agrees

import meanfield as mf

MODULES = ("sphere", "coarsening", *(name for name in mf._LAZY if name != "cli"))
# what calls return and parts of what they take: shown where they are used
SHOWN_ELSEWHERE = {
    "AbstractAscent",
    "Alibi",
    "Coarsening",
    "CoarseningStatus",
    "ExponentialFit",
    "Merge",
    "Plateau",
    "Rotary",
    "phase_diagram",  # half a minute: experiments/maximisers_phase_diagram.py
}


def public() -> dict[str, object]:
    """{qualified name: object} of the functions and classes that users call, each once, by its shortest name."""
    found, seen = {}, set()
    modules = [("mf", mf)] + [(f"mf.{name}", importlib.import_module(f"meanfield.{name}")) for name in MODULES]
    for prefix, module in modules:
        for name in dir(module):
            value = getattr(module, name)
            home = str(getattr(value, "__module__", None))
            exported = (
                hasattr(module, "__path__") or home == module.__name__
            )  # a plain module's imports are not its own
            if name.startswith("_") or not callable(value) or not home.startswith("meanfield") or not exported:
                continue
            if id(value) in seen:
                continue
            seen.add(id(value))
            found[f"{prefix}.{name}"] = value
    return found


def test_every_public_name_has_an_example():
    names = public()
    assert len(names) > 150
    undocumented = [name for name, value in names.items() if not value.__doc__]
    without = [
        name
        for name, value in names.items()
        if ">>>" not in (value.__doc__ or "") and name.split(".")[-1] not in SHOWN_ELSEWHERE
    ]
    assert not undocumented and not without, f"no docstring: {undocumented}, no example: {without}"


def test_every_public_name_is_in_the_reference():
    pages = "\n".join(page.read_text("utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md")))
    whole = {f"mf.{name}" for name in re.findall(r"::: meanfield\.(\w+)$", pages, re.MULTILINE)}
    listed = set(re.findall(r"::: meanfield\S*\.(\w+)$", pages, re.MULTILINE))
    missing = [name for name in public() if name.split(".")[-1] not in listed and name.rpartition(".")[0] not in whole]
    assert not missing, f"not in docs/api: {missing}"


def _examples() -> list:
    return [pytest.param(value.__doc__, id=name) for name, value in public().items() if ">>>" in (value.__doc__ or "")]


@pytest.mark.slow
@pytest.mark.parametrize("text", _examples())
def test_examples_are_true(text):
    with jax.enable_x64(False), jax.numpy_dtype_promotion("standard"):
        results = run(text)
    assert any(example.want for example, _ in results), "an example shows what it prints"
    for example, printed in results:
        assert agrees(example.want, printed), f"{example.source}shows\n{example.want}and prints\n{printed}"
