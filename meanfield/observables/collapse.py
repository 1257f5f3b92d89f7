"""When tokens have collapsed to one point."""

import jax.numpy as jnp

from .._types import Scalar, ScalarLike
from ..trajectory import FlowStatus, Trajectory


def collapse_time(traj: Trajectory, tolerance: ScalarLike = 1e-3) -> Scalar:
    """The first time with 1 − order ≤ tolerance; inf where the flow ended before, NaN where it failed before.

    Between saved times log(1 − order) is interpolated linearly (it decays exponentially near collapse), so the time is
    differentiable; save densely for a sharp value. Where the flow stopped by `stop="collapse"` between saved times, that
    time is returned. Raises `ValueError` where the order parameter was not saved.

    Examples:
        >>> x = mf.sphere.sample(jax.random.key(0), (4, 3))
        >>> traj = mf.flow(mf.USA(mf.Dot()), x, mf.Marginal.circle(4), jnp.linspace(0.0, 20.0, 41))
        >>> 0 < float(mf.observables.collapse_time(traj)) < 20
        True
    """
    if traj.order is None:
        raise ValueError("the trajectory has no order parameter: call mf.flow with 'order' in save=")
    dtype = traj.order.dtype
    level = jnp.log(jnp.asarray(tolerance, dtype))
    gap = 1 - traj.order
    tiny = jnp.finfo(dtype).tiny
    log_gap = jnp.log(jnp.where(gap > tiny, gap, tiny))
    inside = (log_gap <= level) & jnp.isfinite(traj.order)
    first = jnp.argmax(inside)
    before = jnp.maximum(first - 1, 0)
    fall = log_gap[before] - log_gap[first]
    share = jnp.where(fall > 0, (log_gap[before] - level) / jnp.where(fall > 0, fall, 1), 0)
    crossing = traj.ts[before] + share * (traj.ts[first] - traj.ts[before])
    final_mean = jnp.sum(traj.weights[:, None].astype(dtype) * traj.final, axis=0)
    stopped = (traj.status == FlowStatus.STOPPED) & (jnp.sum(final_mean**2) >= (1 - jnp.exp(level)) ** 2)
    never = jnp.where(stopped, traj.t.astype(dtype), jnp.where(traj.ok, jnp.inf, jnp.nan))
    return jnp.where(inside.any(), crossing, never)
