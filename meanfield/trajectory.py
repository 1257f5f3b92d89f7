"""What a flow returns."""

import enum

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._types import Array, Float, Int, Labels, Scalar


class FlowStatus(enum.IntEnum):
    """How a flow ended; `Trajectory.status` holds the number, so that sweeps can keep it per point.

    Examples:
        >>> mf.FlowStatus(2).name
        'MAX_STEPS'
    """

    FINISHED = 0
    STOPPED = 1
    MAX_STEPS = 2
    NOT_FINITE = 3
    SOLVER_FAILED = 4


class FlowError(RuntimeError):
    """A flow that did not reach its last time; the message says how far it came and what to do.

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> try:
        ...     mf.flow(mf.USA(mf.ExpDot(4.0)), x, mf.Marginal.circle(4), jnp.asarray([0.0, 9.0]), max_steps=2)
        ... except mf.FlowError as error:
        ...     print(str(error).split(": ")[1].split(",")[0])
        raise max_steps or rtol
    """


class Trajectory(eqx.Module):
    """A flow at its save times.

    - `ts` (T,) the times asked for; `x` (T, n, d) unit rows; `energy` (T,); `order` (T,) = ‖Σ_i w_i x_i‖. What was not
      saved is None; rows at times that were not reached are NaN. `radius` (T, n) for pre- and peri-norm tokens, else None.
    - `t`, `final`: the time reached and the tokens (n, d) there; `flow(dynamics, trajectory, rho, ts)` goes on from it.
    - `status`: a `FlowStatus` number; `ok`: the last time was reached, or the stop that was asked for.
    - `stats`: steps, accepted and rejected, and the summing method with its reason.

    Source: theory.md 1.

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> rho = mf.Marginal.circle(4)
        >>> traj = mf.flow(mf.SA(mf.ExpDot(1.0)), x, rho, jnp.asarray([0.0, 1.0]))
        >>> traj.final.shape, mf.FlowStatus(int(traj.status)).name
        ((4, 3), 'FINISHED')
        >>> traj.stats["method"]
        'dense: n = 4 tokens are few'
    """

    ts: Float[Array, " T"]
    x: Float[Array, "T n d"] | None
    energy: Float[Array, " T"] | None
    order: Float[Array, " T"] | None
    t: Scalar
    final: Float[Array, "n d"]
    status: Int[Array, ""]
    steps: dict[str, Int[Array, ""]]
    labels: Labels
    weights: Float[Array, " n"]
    method: str = eqx.field(static=True)
    radius: Float[Array, "T n"] | None = None

    @property
    def ok(self) -> Array:
        """Whether the flow reached its last time, or stopped where it was asked to (bool array)."""
        return self.status <= FlowStatus.STOPPED

    @property
    def stats(self) -> dict:
        """Steps, accepted and rejected steps (arrays), and the summing method."""
        return {**self.steps, "method": self.method}

    def explain(self) -> str:
        """One sentence on how the flow ended: the time reached, the steps taken, the remedy."""
        status = FlowStatus(int(np.max(np.asarray(self.status))))
        t, last = float(np.min(np.asarray(self.t))), float(np.asarray(self.ts).max())
        counts = {name: int(np.max(np.asarray(value))) for name, value in self.steps.items()}
        head = f"reached t = {t:.6g} of {last:.6g} with {counts['accepted']} accepted and {counts['rejected']} rejected steps"
        remedy = {
            FlowStatus.FINISHED: "",
            FlowStatus.STOPPED: ": stopped where asked",
            FlowStatus.MAX_STEPS: ": raise max_steps or rtol, stop='steady' or 'collapse' ends early; speeds grow like "
            "e^{beta (1 − shift)}, so for large beta use ExpDot(beta, shift=1.0), which only rescales time",
            FlowStatus.NOT_FINITE: ": the velocity is not finite; e^{beta} overflows at beta = 88.7 in float32 and 709 in "
            "float64, use ExpDot(beta, shift=1.0); mf.SA needs φ' > 0 at every ⟨x, y⟩; check parameters and factors for NaN",
            FlowStatus.SOLVER_FAILED: ": the solver gave up; loosen rtol, or pass another solver",
        }[status]
        return head + remedy

    def to_xarray(self):
        """The trajectory as a labelled `xarray.Dataset` (dimensions time, token, coordinate) with its attributes."""
        import xarray as xr

        variables = {}
        if self.x is not None:
            variables["x"] = (("time", "token", "coordinate"), np.asarray(self.x), {"long_name": "token on the sphere"})
        if self.energy is not None:
            variables["energy"] = (("time",), np.asarray(self.energy), {"long_name": "interaction energy E"})
        if self.order is not None:
            variables["order"] = (("time",), np.asarray(self.order), {"long_name": "order parameter |sum_i w_i x_i|"})
        if self.radius is not None:
            variables["radius"] = (("time", "token"), np.asarray(self.radius), {"long_name": "norm of the token"})
        variables["weight"] = (("token",), np.asarray(self.weights))
        leaves = jax.tree.leaves(self.labels)
        for i, leaf in enumerate(leaves):
            name = "label" if len(leaves) == 1 else f"label_{i}"
            extra = tuple(f"{name}_{k}" for k in range(leaf.ndim - 1))
            variables[name] = (("token", *extra), np.asarray(leaf))
        coords = {"time": ("time", np.asarray(self.ts), {"long_name": "time", "units": "1 (dimensionless)"})}
        attrs = {"status": FlowStatus(int(self.status)).name, "t_reached": float(self.t), "method": self.method}
        attrs |= {name: int(value) for name, value in self.steps.items()}
        return xr.Dataset(variables, coords, attrs)


def failure_message() -> str:
    """What a compiled flow says when it fails (times and counts are in the trajectory)."""
    return (
        "the flow did not reach its last time: raise max_steps, loosen rtol, use ExpDot(beta, shift=1.0) for large beta, "
        "or pass throw=False and read traj.status, traj.t and traj.stats"
    )


def unreached(values: Array | None, ts: Array, reached: Array) -> Array | None:
    """`values` with the rows of times that were not reached set to NaN."""
    if values is None:
        return None
    return jnp.where(reached.reshape(reached.shape + (1,) * (values.ndim - 1)), values, jnp.nan)
