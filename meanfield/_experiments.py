"""Finds the experiments: `meanfield/experiments` in a wheel, the top-level folder in a checkout; one module name for both."""

import ast
import difflib
import importlib
import importlib.util
import pathlib
import sys
import types

import jax

from . import _run

PACKAGE = "meanfield.experiments"


def folder() -> pathlib.Path:
    """The folder of the experiment scripts."""
    here = pathlib.Path(__file__).parent
    for candidate in (here / "experiments", here.parent / "experiments"):
        if (candidate / "_claims.py").is_file():
            return candidate
    raise ValueError(f"no experiments beside {here}: reinstall meanfield, they are part of the wheel")


def descriptions() -> dict[str, str]:
    """{name: first line of its docstring}, read without importing anything."""
    found = {}
    for path in sorted(folder().glob("[!_]*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[path.stem] = text.split("\n")[0]
    return found


def load(name: str) -> types.ModuleType:
    """The module of one experiment. Raises `ValueError` naming the known ones, `ImportError` naming a missing extra."""
    known = descriptions()
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"experiment {name!r} is unknown: {hint}`meanfield experiment list` names all {len(known)}")
    _package()
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    except ModuleNotFoundError as error:
        raise ImportError(f"experiment {name!r} needs {error.name}: pip install 'meanfield[all]'") from error


def run(name: str, out: pathlib.Path, smoke: bool, seed: int, dtype: str = "float64") -> list:
    """The claims of one experiment, which writes figures, numbers, claims.json and run.json to `out`."""
    arguments = {"name": name, "out": str(out), "smoke": smoke, "dtype": dtype}
    with jax.enable_x64(dtype == "float64"):
        module = load(name)
        with _run.recorded(out, "experiment run", arguments, seed) as results:
            claims = module.run(out, smoke=smoke, seed=seed)
            _run.write_claims(out, claims)
            results |= {"claims": len(claims), "hold": sum(claim.holds for claim in claims)}
    return claims


def _package() -> None:
    if PACKAGE in sys.modules:
        return
    init = folder() / "__init__.py"
    spec = importlib.util.spec_from_file_location(PACKAGE, init, submodule_search_locations=[str(folder())])
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load the experiments from {init}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)
