"""The gallery: every experiment with its pictures, its claims with measured values, and its run time, in Markdown."""

import io
import json
import pathlib
import shutil
from collections.abc import Iterable, Sequence

from ._report import Result, count_claims, number
from .files import atomic, write_text

WIDTH = 1000
"""Of a picture in the gallery, in pixels, at most."""
SIZE = 80_000
"""Of a picture in the gallery, in bytes, at most."""


def find_runs(folders: Iterable[pathlib.Path], descriptions: dict[str, str]) -> dict[str, Result]:
    """{name: newest finished full-size run} of `meanfield experiment run` anywhere under `folders`."""
    found: dict[str, tuple[str, Result]] = {}
    for file in (file for folder in folders for file in sorted(folder.rglob("run.json"))):
        record = json.loads(file.read_text(encoding="utf-8"))
        arguments = record.get("arguments", {})
        name = arguments.get("name")
        whole = record.get("status") == "finished" and not arguments.get("smoke")
        if record.get("command") != "experiment run" or name not in descriptions or not whole:
            continue
        if not (file.parent / "claims.json").is_file():
            continue
        if name not in found or found[name][0] < record["started"]:
            found[name] = record["started"], Result(name, descriptions[name], file.parent)
    return {name: result for name, (_, result) in found.items()}


def write_gallery(out: pathlib.Path, results: Sequence[Result]) -> pathlib.Path:
    """`out`/index.md with one section per experiment, pictures made small beside it."""
    pictures = out / "pictures"
    if pictures.is_dir():
        shutil.rmtree(pictures)
    holding, total = count_claims(results)
    parts = [
        "# Gallery",
        "",
        f"{len(results)} experiments at full size: {holding} of {total} claims hold. A claim is a number measured in the run against a stated",
        "threshold. `meanfield experiment run NAME` repeats one, with full figures, numbers and films;",
        "`make gallery` repeats all and writes this page.",
        "",
    ]
    for result in results:
        parts += _section(result, pictures)
    return write_text(out / "index.md", "\n".join(parts))


def _section(result: Result, pictures: pathlib.Path) -> list[str]:
    title, record = result.description.rstrip("."), result.record
    seconds = record.get("wall_seconds")
    ran = "" if seconds is None else f" · {seconds:.0f} s · {record.get('dtype', '')}"
    heading = result.name.replace("_", " ").capitalize()
    parts = [f"## {heading}", "", f"{title}.", "", f"`meanfield experiment run {result.name}`{ran}", ""]
    if result.error:
        parts += [f"Did not finish: {result.error}", ""]
    for path in result.figures:
        if path.suffix == ".png":
            small = shrink(path, pictures / f"{result.name}-{path.stem}.png")
            parts += [f"![{title}: {path.stem}](pictures/{small.name})", ""]
    if result.claims:
        parts += ["| claim | measured | threshold | holds |", "|---|---|---|---|"]
    for row in result.claims:
        claim = row["claim"].replace("|", "\\|")
        threshold = f"{row['relation']} {number(row['threshold'])}"
        parts.append(f"| {claim} | {number(row['value'])} | {threshold} | {'yes' if row['holds'] else '**no**'} |")
    return [*parts, ""]


def shrink(path: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """A PNG of at most `WIDTH` pixels and `SIZE` bytes with a palette of its own."""
    from PIL import Image

    with Image.open(path) as opened:
        picture = opened.convert("RGB")
    width = min(WIDTH, picture.width)
    while True:
        scaled = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        scaled.quantize(128, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
        if buffer.tell() <= SIZE or width < 200:
            break
        width = int(0.85 * width)
    with atomic(out) as temporary:
        temporary.write_bytes(buffer.getvalue())
    return out
