"""Which state maximises (offset + cos(kτ)) e^{β(t−1)}/β: from the solver, beside the closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import ascent
from .._types import AnyArray, Array, Float, Int, PRNGKey, ScalarLike
from ..kernels import Cosine, ExpDot, Toeplitz
from ..marginal import Marginal
from .circle import dirac_energy, great_circle_energy, great_circle_threshold, latitude_circle

STATES = ("Dirac", "great circle", "latitude circle", "planar, deformed", "not planar")
SAME = 1e-6  # relative difference of energies below which the state is the closed form
FLAT = 1e-6  # smallest covariance eigenvalue below which a state is planar


class PhaseDiagram(eqx.Module):
    """`energy` (A, B) of the best state found at `offset` (A,) and `beta` (B,), shift 1; `state` (A, B) indexes `STATES`.

    `dirac`, `circle`, `latitude` (A, B): closed-form energies at the same points.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> diagram = mf.theory.toeplitz_phase_diagram(
        ...     np.float32([0.9]), 1.0, np.float32([1.0]), jax.random.key(0), n=16, restarts=2
        ... )
        >>> print(f"{diagram.energy[0, 0]:.4f} against {diagram.dirac[0, 0]:.4f} in closed form")
        0.4500 against 0.4500 in closed form
    """

    offset: Float[Array, " A"]
    beta: Float[Array, " B"]
    energy: Float[Array, "A B"]
    state: Int[Array, "A B"]
    dirac: Float[Array, "A B"]
    circle: Float[Array, "A B"]
    latitude: Float[Array, "A B"]


def toeplitz_phase_diagram(
    offset: Float[AnyArray, " A"],
    frequency: ScalarLike,
    beta: Float[AnyArray, " B"],
    key: PRNGKey | None = None,
    n: int = 48,
    dim: int = 3,
    restarts: int = 16,
) -> PhaseDiagram:
    """The winning state for every offset and β, n uniform labels on the circle, by `ascend` from `restarts` starts.

    One compiled program for all points. The state is named by its energy where a closed form has it, else by whether it
    lies in a plane through the origin. `frequency` k must divide the labels finely: n ≥ 16k. Source: theory.md 2.

    Examples:
        >>> diagram = mf.theory.toeplitz_phase_diagram(
        ...     np.float32([0.0, 0.9]), 1.0, np.float32([1.0]), n=16, restarts=2
        ... )
        >>> [mf.theory.phase.STATES[i] for i in diagram.state[:, 0]]
        ['great circle', 'Dirac']
    """
    if n < 16 * float(frequency):
        raise ValueError(f"n={n} labels do not resolve frequency={float(frequency):g}: pass n ≥ {int(16 * frequency)}")
    offset, beta = jnp.asarray(offset), jnp.asarray(beta)
    key = jax.random.key(0) if key is None else key
    rho = Marginal.circle(n)

    def solve(point):
        a, b = point
        kernel = Toeplitz(Cosine(jnp.asarray(frequency, a.dtype), a), ExpDot(b, 1.0))
        best = ascent.ascend(kernel, rho, dim, key, restarts, certify=False)
        return best.energy, jnp.linalg.eigvalsh(best.x.T @ best.x / n)[dim - 3]

    grid = jnp.meshgrid(offset, beta, indexing="ij")
    flat = tuple(g.ravel() for g in grid)
    energy, thickness = (v.reshape(grid[0].shape) for v in jax.jit(lambda p: jax.lax.map(solve, p, batch_size=8))(flat))
    forms = _closed_forms(np.asarray(offset), np.asarray(beta), dim)
    return PhaseDiagram(offset, beta, energy, _name(energy, thickness, forms, dim), *map(jnp.asarray, forms))


def _closed_forms(offset: np.ndarray, beta: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = np.meshgrid(offset, beta, indexing="ij")
    dirac, circle = np.asarray(dirac_energy(b, a, 1.0)), np.asarray(great_circle_energy(b, a, 1.0))
    if dim == 2:
        return dirac, circle, np.full_like(a, -np.inf)
    points = zip(b.ravel(), a.ravel(), strict=True)
    latitude = np.array([latitude_circle(float(x), float(y), 1.0).energy for x, y in points]).reshape(a.shape)
    return dirac, circle, latitude


def _name(energy, thickness, forms, dim: int) -> Int[Array, "A B"]:
    energy, thickness = np.asarray(energy), np.asarray(thickness)
    same = [np.abs(energy - form) <= SAME * np.abs(energy) for form in forms]
    planar = (thickness < FLAT) | (dim == 2)
    named = np.select([same[0], same[1], same[2], planar], [0, 1, 2, 3], default=4)
    return jnp.asarray(named, jnp.int32)


def dirac_circle_boundary(beta: Float[AnyArray, " B"]) -> Float[Array, " B"]:
    """The offset I_1(β)/(e^β − I_0(β)) at which Dirac and great circle have equal energy.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> print(np.round(mf.theory.dirac_circle_boundary(np.float32([0.1, 1.0])), 4))
        [0.4876 0.3892]
    """
    beta = jnp.asarray(beta)
    scaled0, scaled1 = jax.scipy.special.i0e(beta), jax.scipy.special.i1e(beta)
    return scaled1 / (1 - scaled0)


def deformation_boundary(offset: Float[AnyArray, " A"], mode: int = 2) -> np.ndarray:
    """β_m(offset) above which the great circle is unstable to mode m in its plane.

    Source: theory.md 2; arXiv 2605.30229.

    Examples:
        >>> print(np.round(mf.theory.deformation_boundary(np.float32([0.0, 0.1])), 3))
        [1.787 1.484]
    """
    return np.array([great_circle_threshold(mode, float(a)) for a in np.asarray(offset)])
