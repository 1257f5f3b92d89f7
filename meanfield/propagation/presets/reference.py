"""Reference data: the published measurement of BLOOM-176B's input-token influence."""

import importlib.resources

import numpy as np
from jaxtyping import Float


def measured_influence(name: str = "bloom") -> Float[np.ndarray, " n"]:
    """Measured influence of the 256 input tokens on BLOOM-176B's last position, FineWeb-Edu, summing to 1.

    Read off the vector figure of arXiv 2602.16837 (bloom_measured_influence.csv beside this file). No measured profile of the other
    models is published in numbers: `meanfield measure <checkpoint>` measures one.

    Examples:
        >>> p = mf.propagation.measured_influence()
        >>> p.shape, f"{p.sum():.4f}"
        ((256,), '1.0000')
    """
    if name not in ("bloom", "bloom-176b"):
        raise ValueError(
            f"name = {name!r}: only 'bloom' has a published measurement; run `meanfield measure CHECKPOINT`"
        )
    with importlib.resources.files(__package__).joinpath("bloom_measured_influence.csv").open() as file:
        return np.loadtxt(file, comments="#", delimiter=",")
