"""Runs the examples of docstrings, each docstring in its own namespace, and compares or rewrites the outputs shown.

python tests/docs/docstrings.py meanfield/energy.py …    # runs the examples of these files and writes their outputs
"""

import ast
import contextlib
import doctest
import io
import pathlib
import sys
import textwrap

PARSER = doctest.DocTestParser()


def namespace() -> dict:
    """What an example may use without importing it."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    import meanfield as mf

    return {"jax": jax, "jnp": jnp, "np": np, "optax": optax, "mf": mf}


def run(text: str) -> list[tuple[doctest.Example, str]]:
    """Every example of a docstring with what it prints."""
    known = namespace()
    results = []
    for example in PARSER.get_examples(text):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(example.source, f"<example {example.source!r}>", "single"), known)
        results.append((example, printed.getvalue()))
    return results


def rewrite(path: pathlib.Path) -> None:
    """Puts what every example prints below it."""
    documented = (ast.FunctionDef, ast.ClassDef)
    nodes = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, documented))
    texts = [ast.get_docstring(node, clean=False) or "" for node in nodes]
    filled = {text: _filled(text) for text in texts if ">>>" in text}
    source = path.read_text("utf-8")  # again: running took a while
    for text, new in filled.items():
        source = source.replace(text, new)
    path.write_text(source, "utf-8")


def _filled(text: str) -> str:
    lines = text.splitlines(keepends=True)
    for example, printed in reversed(run(text)):
        start = example.lineno + len(example.source.splitlines())
        end = start + len(example.want.splitlines())
        lines[start:end] = textwrap.indent(printed, " " * example.indent).splitlines(keepends=True)
    return "".join(lines)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        rewrite(pathlib.Path(name))
