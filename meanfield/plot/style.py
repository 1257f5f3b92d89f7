"""One look for all figures: sizes, colours that colour-blind readers tell apart, texts that cannot break, atomic files."""

import contextlib
import os
import pathlib
import warnings
from collections.abc import Iterator, Mapping

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager

from .._types import AnyArray, Real
from ..files import atomic

# Okabe and Ito (2008) with grey for their yellow, which is lost on white: eight colours that colour-blind readers tell apart
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#888888", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
SEQUENTIAL, CYCLIC, DIVERGING = "viridis", "twilight_shifted", "RdBu_r"
FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans", "Noto Emoji")

PARAMETERS = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.5,
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
    "axes.unicode_minus": False,
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """The look of the library's figures, for the length of a `with` block; global settings come back afterwards.

    Examples:
        >>> with mf.plot.style():
        ...     mf.plot.figure()
        <Figure size 500x340 with 0 Axes>
    """
    installed = set(fontManager.get_font_names())
    families = [name for name in FONTS if name in installed]
    with matplotlib.rc_context({**PARAMETERS, "font.family": families or ["sans-serif"]}):
        yield


def figure(width: float = 5.0, height: float = 3.4) -> Figure:
    """An empty figure of that size in inches. It needs no display and belongs to no pyplot state.

    Examples:
        >>> mf.plot.figure(4.0, 3.0)
        <Figure size 400x300 with 0 Axes>
    """
    return Figure(figsize=(width, height), layout="constrained")


def plain(text: object, limit: int = 40) -> str:
    """`text` as matplotlib will draw it literally: `$` escaped, newlines and control characters shown, length limited.

    Examples:
        >>> len(mf.plot.plain("$"))  # escaped
        2
    """
    shown = str(text).replace("\r\n", "↵").replace("\n", "↵").replace("\r", "↵").replace("\t", "→")
    shown = "".join(c if c.isprintable() else "·" for c in shown)
    if len(shown) > limit:
        shown = shown[: limit - 1] + "…"
    return shown.replace("$", r"\$")


def save(fig: Figure, path: str | os.PathLike, data: Mapping[str, Real[AnyArray, "..."]] | None = None) -> pathlib.Path:
    """Writes `fig` (PNG, SVG or PDF by the name's ending) whole or not at all, and `data` beside it as .npz.

    Returns the path. Raises `ValueError` for an unknown ending.

    Examples:
        >>> import pathlib, tempfile
        >>> mf.plot.save(mf.plot.figure(), pathlib.Path(tempfile.mkdtemp()) / "empty.png").name
        'empty.png'
    """
    path = pathlib.Path(path)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"path={str(path)!r}: figures are written as .png, .svg or .pdf")
    with atomic(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a letter without a font is drawn as a box
        fig.savefig(temporary)
    if data is not None:
        with atomic(path.with_suffix(".npz")) as temporary:
            np.savez_compressed(temporary, **{name: np.asarray(value) for name, value in data.items()})
    return path
