"""What `coarsen` returns: a run over long times, with its merges and plateaus."""

import enum
from typing import NamedTuple

import equinox as eqx
import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.stats import linregress

from ._types import AnyArray, Array, Float, Int, Scalar


class CoarseningStatus(enum.IntEnum):
    """How a run over long times ended."""

    FINISHED = 0  # t1 reached
    ONE_CLUSTER = 1  # all tokens in one point
    FROZEN = 2  # nothing moves faster than rounding
    MAX_STEPS = 3
    NOT_FINITE = 4
    SOLVER_FAILED = 5


class Merge(NamedTuple):
    """Two clusters that met: when, their weights, and how many clusters are left."""

    t: float
    weights: tuple[float, float]
    left: int


class Plateau(NamedTuple):
    """A time during which no cluster is born or lost.

    `weights` W_c of its clusters, heaviest first; `energy` the mean of E over log t, `predicted` = ½h(z,z) Σ W_c² (theory.md
    1.7: clusters that do not feel each other).
    """

    start: float
    end: float
    weights: tuple[float, ...]
    energy: float
    predicted: float


class Coarsening(eqx.Module):
    """A run over exponentially long times, one row per step (S = max_steps + 1 rows, those not taken NaN).

    - `ts` (S,) true times; `x` (S, n, d) unit rows, joined tokens exactly equal; `energy`, `order` as of a `Trajectory`;
      `speed` (S,) = √Σ w_i‖ẋ_i‖².
    - `status`: a `CoarseningStatus` number; `ok`: t1, one point, or the field's rounding was reached.
    - `top`: ½ Σ w_i h(z_i, z_i), the energy of a single cluster.

    `clusters`, `merges` and `plateaus` work on the host, on one run: index a batch with `jax.tree.map(lambda a: a[i], run)`.
    """

    ts: Float[Array, " S"]
    x: Float[Array, "S n d"]
    energy: Float[Array, " S"]
    order: Float[Array, " S"]
    speed: Float[Array, " S"]
    status: Int[Array, ""]
    steps: dict[str, Int[Array, ""]]
    weights: Float[Array, " n"]
    top: Scalar
    method: str = eqx.field(static=True)

    @property
    def ok(self) -> Array:
        """Whether the run ended where it should (bool array)."""
        return self.status <= CoarseningStatus.FROZEN

    def explain(self) -> str:
        """One sentence on how the run ended, with the remedy."""
        status = CoarseningStatus(int(np.max(np.asarray(self.status))))
        taken = int(np.max(np.asarray(self.steps["accepted"])))
        reached = float(np.nanmax(np.asarray(self.ts))) if taken else 0.0
        end = {
            CoarseningStatus.FINISHED: "",
            CoarseningStatus.ONE_CLUSTER: ": all tokens are in one point",
            CoarseningStatus.FROZEN: ": nothing moves faster than rounding; an equilibrium, or use float64",
            CoarseningStatus.MAX_STEPS: ": raise max_steps or rtol; tokens whose labels forbid joining keep explicit steps short",
            CoarseningStatus.NOT_FINITE: ": the velocity is not finite; for large beta use ExpDot(beta, shift=1.0)",
            CoarseningStatus.SOLVER_FAILED: ": the solver gave up; loosen rtol, or pass another solver",
        }[status]
        return f"reached t = {reached:.6g} with {taken} steps{end}"

    def at(self, ts: Float[AnyArray, " K"], name: str = "energy") -> Float[np.ndarray, " K"]:
        """`energy`, `order` or `speed` at chosen times, linear in log t between steps; NaN outside the run."""
        t, values = self._rows("ts"), self._rows(name)
        first = t[1] * 1e-3  # the start has no logarithm
        log, wanted = np.log(np.maximum(t, first)), np.log(np.maximum(np.asarray(ts, np.float64), first))
        return np.interp(wanted, log, values, right=np.nan)

    def clusters(self, radius: float = 0.1) -> Int[np.ndarray, " S"]:
        """Number of clusters at every row, tokens within the angle `radius` (radians) chained together; 0 where padded."""
        counts = np.zeros(self.ts.shape[0], int)
        partitions = self._partitions(radius)
        counts[: len(partitions)] = [p.max() + 1 for p in partitions]
        return counts

    def merges(self, radius: float = 0.1) -> list[Merge]:
        """The merges in order of time, each when two clusters come within the angle `radius`.

        Between steps the logarithm of their distance is taken linear in t.
        """
        t, x, w = self._rows("ts"), self._rows("x"), np.asarray(self.weights, np.float64)
        partitions = self._partitions(radius)
        events: list[Merge] = []
        for k in range(len(partitions) - 1):
            before, after = partitions[k], partitions[k + 1]
            if after.max() < before.max():
                events += _joined(t[k : k + 2], x[k : k + 2], w, before, after, _chord(radius))
        return events

    def plateaus(self, radius: float = 0.1, ratio: float = 2.0) -> list[Plateau]:
        """The stretches without a merge that last at least to `ratio` times the time of their start."""
        t, energy, w = self._rows("ts"), self._rows("energy"), np.asarray(self.weights, np.float64)
        partitions = self._partitions(radius)
        changes = [k for k in range(1, len(partitions)) if not np.array_equal(partitions[k], partitions[k - 1])]
        found = []
        for low, high in zip([0, *changes], [*changes, len(partitions)], strict=True):
            start, end = t[low], t[high - 1]
            if high - low < 2 or end < ratio * start or start == 0:
                continue
            masses = tuple(sorted(np.bincount(partitions[low], w).tolist(), reverse=True))
            log = np.log(t[low:high])
            mean = np.trapezoid(energy[low:high], log) / (log[-1] - log[0])
            found.append(Plateau(start, end, masses, mean, float(self.top) * sum(m * m for m in masses)))
        return found

    def _rows(self, name: str) -> np.ndarray:
        if self.status.ndim:
            raise ValueError("this is a batch of runs: take one with jax.tree.map(lambda a: a[i], run)")
        values = np.asarray(getattr(self, name), np.float64)
        return values[np.isfinite(np.asarray(self.ts))]

    def _partitions(self, radius: float) -> list[np.ndarray]:
        if not 0 < radius < np.pi:
            raise ValueError(f"radius={radius}: pass an angle between 0 and π")
        real = np.isfinite(np.asarray(self.ts))
        return [_partition(x, _chord(radius)) for x in np.asarray(self.x)[real]]


class ExponentialFit(NamedTuple):
    """T ≈ prefactor · e^{rate·β}, with the standard error of the rate and R² of log T."""

    rate: float
    prefactor: float
    error: float
    r_squared: float


def exponential_fit(beta: Float[AnyArray, " K"], times: Float[AnyArray, " K"]) -> ExponentialFit:
    """Least squares of log T on β: metastable times grow like e^{rate·β} (theory.md 1.4). Needs three points or more.

    Examples:
        >>> fit = mf.longtime.exponential_fit(np.asarray([1.0, 2.0, 3.0]), np.exp([2.0, 4.0, 6.0]))
        >>> print(f"{fit.rate:.3f}")
        2.000
    """
    beta, times = np.asarray(beta, float), np.asarray(times, float)
    if beta.shape != times.shape or beta.size < 3 or not (times > 0).all():
        raise ValueError(
            f"beta has shape {beta.shape} and times {times.shape}: pass as many positive times as β, at least 3"
        )
    fit = linregress(beta, np.log(times))
    return ExponentialFit(float(fit.slope), float(np.exp(fit.intercept)), float(fit.stderr), float(fit.rvalue**2))


def _chord(angle: float) -> float:
    return 2 * np.sin(angle / 2)


def _partition(x: np.ndarray, chord: float) -> np.ndarray:
    """Cluster index of every token, numbered by first token. Joined tokens are one point, so most rows are small."""
    points, first, place = np.unique(x, axis=0, return_index=True, return_inverse=True)
    near = ((points[:, None] - points[None]) ** 2).sum(-1) <= chord * chord
    count, labels = connected_components(near, directed=False)
    start = np.full(count, len(x))
    np.minimum.at(start, labels, first)
    return np.argsort(np.argsort(start))[labels[place.ravel()]]


def _joined(t, x, w, before, after, chord) -> list[Merge]:
    """The merges between two rows: pairs of old clusters in order of the time at which their distance is `chord`."""
    events = []
    for cluster in range(after.max() + 1):
        parts = np.unique(before[after == cluster])
        for a in parts:
            for b in parts[parts > a]:
                gaps = [_gap(row[before == a], row[before == b]) for row in x]
                if gaps[1] <= chord < gaps[0]:
                    share = np.log(gaps[0] / chord) / np.log(gaps[0] / max(gaps[1], 1e-300))
                    events.append((t[0] + share * (t[1] - t[0]), a, b))
    weight = np.bincount(before, w)
    group = np.arange(before.max() + 1)
    merges = []
    for time, a, b in sorted(events):
        one, two = group[a], group[b]
        if one != two:
            pair = (float(weight[group == one].sum()), float(weight[group == two].sum()))
            group[group == two] = one
            merges.append(Merge(float(time), (max(pair), min(pair)), len(np.unique(group))))
    return merges


def _gap(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a[:, None] - b[None], axis=-1).min())
