"""Forces: which part of the architecture made which part of a profile."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ._inputs import check_index, check_length
from .architecture import Architecture
from .attention import attention
from .biases import ALiBi, NoBias
from .content import Diagonal
from .masks import Causal
from .measures import is_monotone, mean_position, primacy_mass, recency_mass
from .profile import profile_by_depth

STAGES = ("attention only", "+ residuals", "+ position bias", "+ content")


@dataclasses.dataclass(frozen=True)
class Forces:
    """A profile taken apart; S stages of `STAGES`, T layers from the top down, n positions.

    Row t of a per-layer array is the state after passing t layers from the top (row 0: all mass on the row itself); the drift of a
    force is what its stage adds to the stage before, the drift of the first stage what attention adds to the start.

    Source: arXiv 2602.16837.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> result = mf.propagation.forces(arch, 8)
        >>> result.stages, result.profiles.shape
        (('attention only', '+ residuals', '+ position bias', '+ content'), (4, 8))
    """

    profiles: Float[np.ndarray, "S n"]
    mean_position: Float[np.ndarray, "S steps"]
    first_tenth: Float[np.ndarray, "S steps"]
    last_tenth: Float[np.ndarray, "S steps"]
    monotone: tuple[bool, ...]
    predicted: tuple[int, ...]

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages, in order."""
        return STAGES

    @property
    def drift(self) -> Float[np.ndarray, "S steps 3"]:
        """What each force adds, cumulated layer by layer from the top, to three numbers.

        The mean position (0 first token … 1 last), the mass of the first tenth of positions, and that of the last tenth.
        """
        series = np.stack([self.mean_position, self.first_tenth, self.last_tenth], axis=-1)
        return np.concatenate([series[:1] - series[:1, :1], np.diff(series, axis=0)])

    @property
    def total_drift(self) -> Float[np.ndarray, "S 3"]:
        """`drift` after all layers."""
        return self.drift[:, -1]

    @property
    def agrees(self) -> tuple[bool, ...]:
        """Whether each force's drift of mean position has the predicted sign; a force without prediction (0) agrees."""
        tolerance = 1e-9
        observed = self.total_drift[:, 0]
        return tuple(bool(sign * x >= -tolerance) for sign, x in zip(self.predicted, observed, strict=True))


def forces(arch: Architecture, length: int, row: int = -1) -> Forces:
    """Decomposes `profile(arch, length, row)` into attention only, + residuals, + position bias, + content (arXiv 2602.16837).

    Attention only is the mask's uniform attention at λ = 1; residuals bring the mixing coefficients; then bias; then content. For a
    causal mask and ALiBi, stochastic monotonicity of the kernels predicts the signs: attention moves mass to the first token,
    residuals and the bias towards the row, a diagonal ≥ 0 towards the row, a diagonal ≤ 0 away from it.

    Examples:
        >>> arch = mf.propagation.Architecture([0.5, 0.5], slopes=[1.0])
        >>> result = mf.propagation.forces(arch, 8)
        >>> dict(zip(result.stages, np.sign(result.total_drift).astype(int).tolist()))  # −: towards the first token
        {'attention only': [-1, 1, -1], '+ residuals': [1, -1, 1], '+ position bias': [1, -1, 1], '+ content': [0, 0, 0]}
    """
    length = check_length(length)
    row = check_index("row", row, length)
    stages = _stages(arch)
    states = np.stack([np.asarray(profile_by_depth(a, length, row)) for a in stages])
    start = np.broadcast_to(np.arange(length) == row, (len(stages), 1, length)).astype(states.dtype)
    states = np.concatenate([start, states], axis=1)
    return Forces(
        profiles=states[:, -1],
        mean_position=np.asarray(mean_position(states)),
        first_tenth=np.asarray(primacy_mass(states)),
        last_tenth=np.asarray(recency_mass(states)),
        monotone=tuple(_monotone(a, min(length, 128)) for a in stages),
        predicted=_predicted(arch),
    )


def _stages(arch: Architecture) -> list[Architecture]:
    """Every stage with the shapes of the full architecture, so that one compiled program serves those that are ALiBi."""
    bias = _zero(arch.bias) if isinstance(arch.bias, ALiBi) else NoBias()
    content = _zero(arch.content) if isinstance(arch.content, Diagonal) else Diagonal(jnp.zeros_like(arch.temperature))
    bare = eqx.tree_at(lambda a: (a.bias, a.content), arch, (bias, content))
    only = eqx.tree_at(lambda a: a.mixing, bare, jnp.ones_like(arch.mixing))
    biased = eqx.tree_at(lambda a: a.bias, bare, arch.bias)
    return [only, bare, biased, arch]


def _zero(module: eqx.Module) -> eqx.Module:
    return jax.tree.map(jnp.zeros_like, module)


def _predicted(arch: Architecture) -> tuple[int, ...]:
    if not isinstance(arch.mask, Causal):
        return (0, 0, 0, 0)
    content = 0
    if isinstance(arch.content, Diagonal):
        values = np.asarray(arch.content.diagonal)
        content = int((values >= 0).all()) - int((values <= 0).all())
    return (-1, 1, 1 if isinstance(arch.bias, ALiBi) else 0, content)


def _monotone(arch: Architecture, length: int) -> bool:
    """Whether every layer's attention is stochastically monotone, at a length where n × n is cheap."""
    if arch.content.length is not None:
        length = arch.content.length
    layers = range(1 if arch.content.depth is None else arch.depth)
    return all(bool(is_monotone(attention(arch, t, length))) for t in layers)
