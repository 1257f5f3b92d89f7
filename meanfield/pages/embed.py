"""Pages put together from the files in assets/: styles, scripts and data all inside one HTML file."""

import base64
import html
import importlib.resources
import json
import os
import pathlib
import string

import numpy as np

from ..files import write_text


def write_page(out: str | os.PathLike, template: str, scripts: tuple[str, ...], title: str, data: dict) -> pathlib.Path:
    """Writes assets/`template` with its style, `scripts` in this order, and `data`; returns the path.

    Raises `ValueError` where `out` does not end in .html.
    """
    path = pathlib.Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"out={str(path)!r}: pages are written as .html")
    page = string.Template(_asset(template)).substitute(
        title=html.escape(title),
        style=_asset("style.css"),
        script="\n".join(map(_asset, scripts)),
        data=_json(data),
    )
    return write_text(path, page)


def packed(array: np.ndarray) -> str:
    """The bytes of an array, little-endian, in base64."""
    return base64.b64encode(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()).decode()


def numbers(array: np.ndarray) -> list[float | None]:
    """A short array as JSON numbers; null where a value is not finite."""
    return [float(value) if np.isfinite(value) else None for value in array]


def _json(data: dict) -> str:
    # "<" never appears, so that no text in the data can close the script that holds it
    return json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return importlib.resources.files(__package__).joinpath("assets", name).read_text("utf-8")
