"""Imports point down, experiments use what users can use, and `import meanfield` brings nothing heavy."""

import ast
import os
import pathlib
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEAVY = ("xarray", "zarr", "matplotlib.pyplot", "flax", "ott", "orbax", "safetensors", "tokenizers", "tyro")


def test_imports_point_down():
    """The contracts of pyproject.toml: layers from commands down to shapes, no cycles inside a package."""
    command = [pathlib.Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.py")), ids=lambda path: path.stem)
def test_experiments_use_public_names_only(path):
    """An experiment is a script that a user could have written: no private name of the library, and `mf.name` everywhere."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    private = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("meanfield"):
            names = [*node.module.split("."), *(alias.name for alias in node.names)]
            private += [name for name in names if name.startswith("_")]
        if isinstance(node, ast.Attribute) and _chain(node).startswith("mf."):
            private += [name for name in _chain(node).split(".") if name.startswith("_") and name != "__version__"]
    assert not private, f"{path.name} uses {private}"


def _chain(node: ast.Attribute) -> str:
    parts = [node.attr]
    inner = node.value
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    return ".".join([inner.id, *reversed(parts)]) if isinstance(inner, ast.Name) else ""


def test_import_is_light():
    """Submodules that bring heavy packages load on first use."""
    code = f"import sys, meanfield; print(*[name for name in {HEAVY} if name in sys.modules])"
    loaded = _python(code).split()
    assert not loaded, f"import meanfield loads {loaded}"


@pytest.mark.slow
def test_import_costs_little_more_than_its_dependencies():
    """At most 1.3 times `import diffrax, optax`: the best of five each, taken in turn."""
    best = {"import diffrax, optax": float("inf"), "import meanfield": float("inf")}
    for _ in range(5):
        for code in best:
            start = time.perf_counter()
            _python(code)
            best[code] = min(best[code], time.perf_counter() - start)
    theirs, ours = best.values()
    assert ours <= 1.3 * theirs, f"import meanfield takes {ours:.2f} s, import diffrax, optax {theirs:.2f} s"


def _python(code: str) -> str:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout
