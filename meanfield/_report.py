"""Runs several experiments side by side and reports them on one page."""

import base64
import concurrent.futures
import contextlib
import html
import importlib.resources
import io
import json
import multiprocessing
import os
import pathlib
import string
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import _experiments
from ._compiling import quick_to_compile
from .files import write_text


@dataclass(frozen=True)
class Result:
    """What one experiment left in `folder`: claims, figures, run time, and its error where it failed."""

    name: str
    description: str
    folder: pathlib.Path
    error: str | None = None

    @property
    def claims(self) -> list[dict]:
        """Rows of claims.json."""
        path = self.folder / "claims.json"
        return json.loads(path.read_text(encoding="utf-8")) if self.error is None and path.is_file() else []

    @property
    def record(self) -> dict:
        """run.json."""
        path = self.folder / "run.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    @property
    def figures(self) -> list[pathlib.Path]:
        """Pictures and films: tokens, films, then the rest."""
        pictures = [path for ending in ("gif", "png") for path in sorted(self.folder.glob(f"*.{ending}"))]
        return sorted(pictures, key=lambda path: path.stem != "tokens")

    @property
    def holds(self) -> bool:
        """Whether it ran and every claim holds."""
        return self.error is None and all(row["holds"] for row in self.claims)


def run_all(
    names: Sequence[str], out: pathlib.Path, smoke: bool, seed: int, jobs: int, quick: bool = False
) -> list[Result]:
    """Runs the experiments in `jobs` processes into out/NAME, with a progress bar on a terminal.

    `quick`: for experiments that take seconds. A process runs several of them, which saves what it has imported, and
    programs are compiled faster and run slower. Else every experiment has its own process.
    """
    import tqdm

    known = _experiments.descriptions()
    with (
        tempfile.TemporaryDirectory() as cache,
        _environment({"MPLBACKEND": "Agg"} | (quick_to_compile(cache) if quick else {})),
    ):
        pool = concurrent.futures.ProcessPoolExecutor(
            jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=None if quick else 1
        )
        with pool:
            # the last first: stories end with the long ones
            pending = {pool.submit(_run_one, name, out / name, smoke, seed): name for name in reversed(names)}
            finished = concurrent.futures.as_completed(pending)
            bar = tqdm.tqdm(finished, total=len(names), unit="experiment", disable=None)
            errors = {pending[future]: _last_words(future) for future in bar}
    return [Result(name, known[name], out / name, errors[name]) for name in names]


def _run_one(name: str, out: pathlib.Path, smoke: bool, seed: int) -> None:
    """One experiment, as `meanfield experiment run` runs it, without what it prints."""
    for stale in ("claims.json", "run.json"):
        (out / stale).unlink(missing_ok=True)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        _experiments.run(name, out, smoke, seed)


def _last_words(future: concurrent.futures.Future) -> str | None:
    """None where the experiment ran to its end (claims may fail), else how it ended."""
    error = future.exception()
    return None if error is None else f"{type(error).__name__}: {error}".splitlines()[0]


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables for the processes started inside."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def write_html(
    path: pathlib.Path, title: str, introduction: str, results: Sequence[Result], closing: str = ""
) -> pathlib.Path:
    """One self-contained page: pictures embedded, claims with measured values, run times."""
    template = string.Template(importlib.resources.files("meanfield").joinpath("report.html").read_text("utf-8"))
    sections = "\n".join(_html_section(result) for result in results)
    holding, total = count_claims(results)
    record = next((result.record for result in results if result.record), {})
    made = ", ".join(f"{name} {version}" for name, version in record.get("versions", {}).items())
    return write_text(
        path,
        template.substitute(
            title=html.escape(title),
            introduction=introduction,
            summary=f"{holding} of {total} claims hold",
            sections=sections,
            closing=closing,
            machine=html.escape(f"{record.get('dtype', '')}, {', '.join(record.get('devices', []))}; {made}"),
        ),
    )


def _html_section(result: Result) -> str:
    pictures = "".join(
        f'<img src="{_embedded(path)}" alt="{html.escape(f"{result.name}: {path.stem}")}" loading="lazy">'
        for path in result.figures
    )
    rows = "".join(
        f'<tr class="{"ok" if row["holds"] else "fail"}"><td>{"✓" if row["holds"] else "✗"}</td>'
        f"<td>{html.escape(row['claim'])}</td><td class=number>{number(row['value'])}</td>"
        f"<td class=number>{html.escape(row['relation'])} {number(row['threshold'])}</td></tr>"
        for row in result.claims
    )
    table = f"<table><tr><th></th><th>claim</th><th>measured</th><th>threshold</th></tr>{rows}</table>" if rows else ""
    error = f'<p class="fail">did not finish: {html.escape(result.error)}</p>' if result.error else ""
    seconds = result.record.get("wall_seconds", "?")
    return (
        f'<section id="{result.name}"><h2>{html.escape(result.description)}</h2>'
        f"<p class=meta><code>meanfield experiment run {result.name}</code> · {seconds} s</p>"
        f"{error}<div class=pictures>{pictures}</div>{table}</section>"
    )


def _embedded(path: pathlib.Path) -> str:
    return f"data:image/{path.suffix[1:]};base64,{base64.b64encode(path.read_bytes()).decode()}"


def count_claims(results: Sequence[Result]) -> tuple[int, int]:
    """How many claims hold, and how many there are."""
    rows = [row["holds"] for result in results for row in result.claims]
    return sum(rows), len(rows)


def number(value: float | str) -> str:
    """A measured value in four digits."""
    return value if isinstance(value, str) else f"{value:.4g}"
