"""Front door: predicted influence as a page with sliders, computed in the page."""

import os
import pathlib
from collections.abc import Mapping

import numpy as np

from ..propagation import ALiBi, Architecture, Causal, Diagonal, NoBias, measured_influence, preset
from ..propagation.presets import NAMES
from .embed import numbers, write_page

SCRIPTS = ("chart.js", "recurrence.js", "profile.js")


def view_profile(
    architectures: Mapping[str, Architecture] | None = None,
    out: str | os.PathLike = "profile.html",
    selected: str | None = None,
    length: int = 256,
    title: str = "Where influence comes from",
) -> pathlib.Path:
    """Writes one self-contained HTML file with p = last row of R^(T)…R^(1) and sliders for what shapes it.

    R^(t) = (1 − λ_t)I + λ_t A^(t) (arXiv 2602.16837). Sliders: length n, Σ_t λ_t (all λ_t scaled, each kept below 1), the
    share of attention on the flatter half of the slopes, a factor on all slopes, and content added to the diagonal logits.
    The page runs the recurrence of `propagation.profile` itself, in double precision.

    Args:
        architectures: {name: architecture} for the menu; default the five presets. Causal masks with ALiBi or no bias
            and diagonal content only.
        out: path of the page, ending in .html.
        selected: name shown first.
        length: the n shown first.

    Returns:
        The path.

    Raises:
        ValueError: when an architecture is of another kind, a name is unknown or length < 2.

    Examples:
        >>> import pathlib, tempfile
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> mf.pages.view_profile({"mine": arch}, pathlib.Path(tempfile.mkdtemp()) / "profile.html", length=32).name
        'profile.html'
    """
    chosen = {name: preset(name) for name in NAMES} if architectures is None else dict(architectures)
    selected = next(iter(chosen), None) if selected is None else selected
    if selected not in chosen:
        raise ValueError(f"selected={selected!r} is unknown: use one of {', '.join(chosen)}")
    if length < 2:
        raise ValueError(f"length={length}: pass at least 2 tokens")
    data = {
        "architectures": {name: _numbers(name, arch) for name, arch in chosen.items()},
        "measured": {"bloom": numbers(measured_influence())} if "bloom" in chosen else {},
        "selected": selected,
        "length": length,
    }
    return write_page(out, "profile.html", SCRIPTS, title, data)


def _numbers(name: str, arch: Architecture) -> dict:
    """λ (T,), slopes (H,), diagonal (T or 1, H or 1) and head weights (H,), after the temperature."""
    if not (
        isinstance(arch.mask, Causal) and isinstance(arch.bias, (ALiBi, NoBias)) and isinstance(arch.content, Diagonal)
    ):
        raise ValueError(
            f"architecture {name!r} is not a causal mask with slopes and a diagonal, which the page computes: "
            "use meanfield.propagation.profile"
        )
    temperature = float(arch.temperature)
    slopes = np.zeros(1) if isinstance(arch.bias, NoBias) else np.asarray(arch.bias.slopes, np.float64)
    slopes = np.broadcast_to(slopes, (arch.num_heads,))
    return {
        "mixing": numbers(np.asarray(arch.mixing, np.float64)),
        "slopes": numbers(slopes / temperature),
        "diagonal": [numbers(row) for row in np.asarray(arch.content.table, np.float64) / temperature],
        "weights": numbers(np.asarray(arch.head_weights, np.float64)),
    }
