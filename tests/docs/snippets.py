"""Runs the Python blocks of a page of docs/ in order, in one namespace, and compares or rewrites the outputs shown.

python tests/docs/snippets.py docs/quickstart.md …    # runs the pages and writes the outputs into them
"""

import contextlib
import io
import os
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<shown>.*?)```\n)?", re.DOTALL)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def run(page: pathlib.Path) -> list[tuple[str, str]]:
    """(shown, printed) of every block of a page; each page runs in an empty folder."""
    namespace: dict = {"__name__": page.stem}
    results = []
    text = page.read_text("utf-8")
    here = pathlib.Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block in BLOCK.finditer(text):
                line = text.count("\n", 0, block.start()) + 1
                code = compile("\n" * line + block["code"], str(page), "exec")
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(code, namespace)
                results.append((block["shown"] or "", printed.getvalue()))
        finally:
            os.chdir(here)
    return results


def agrees(shown: str, printed: str) -> bool:
    """Equal texts, numbers within 2 % (another machine rounds differently)."""
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(abs(float(a) - float(b)) <= 0.02 * abs(float(a)) + 1e-6 for a, b in pairs)


def rewrite(page: pathlib.Path) -> None:
    """Puts what every block prints below it."""
    outputs = iter([printed for _, printed in run(page)])

    def filled(block: re.Match) -> str:
        printed = next(outputs)
        shown = f"\n```text\n{printed}```\n" if printed else ""
        return f"```python\n{block['code']}```\n{shown}"

    page.write_text(BLOCK.sub(filled, page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        rewrite(pathlib.Path(name).resolve())
