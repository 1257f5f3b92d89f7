"""The engine of `coarsen`: arc length as the clock, and tokens that have met moved as one."""

from typing import Any

import diffrax
import equinox as eqx
import jax.numpy as jnp

from ._integrate import worst_token
from ._types import Array, Bool, Float, Int, Scalar
from ._wrapped import AbstractTransparentSolver
from .dynamics import AbstractDriftField, AbstractField, rows_to_sphere


class Setting(eqx.Module):
    """What the equations need: the field, weights, which tokens may be joined, and the scales.

    `leader` (n,) is the first token of each token's group of joined tokens; `unit` the time unit of the logarithmic clock.
    """

    field: AbstractField
    weights: Float[Array, " n"]
    joinable: Bool[Array, "n n"] | None
    distance: Scalar
    unit: Scalar
    leader: Int[Array, " n"]


def velocity(setting: Setting, x: Float[Array, "n d"]) -> tuple[Float[Array, "n d"], Scalar]:
    """ẋ of joined tokens, those of a group exactly equal, and the speed √Σ_i w_i ‖ẋ_i‖².

    Stages leave the sphere; the field is taken at their directions, because off the sphere it contracts radii at a rate
    that no plateau slows down, which would limit explicit steps.
    """
    v = setting.field(rows_to_sphere(x)[setting.leader])[setting.leader]
    return v, weighted_norm(setting, v)


def weighted_norm(setting: Setting, v: Float[Array, "n d"]) -> Scalar:
    """√Σ_i w_i ‖v_i‖²."""
    return jnp.sqrt(jnp.dot(setting.weights, jnp.sum(v * v, axis=-1)))


def by_arc_length(s, state, setting: Setting):
    """dx/ds = ẋ/speed and dL/ds = e^{−L}/(speed·unit), L = log(1 + t/unit), in the arc length ds = speed·dt."""
    x, clock = state
    v, speed = velocity(setting, x)
    safe = jnp.where(speed > 0, speed, 1)
    return jnp.where(speed > 0, v / safe, 0), jnp.exp(-jnp.maximum(clock, 0)) / (safe * setting.unit)


def leaders(setting: Setting, x: Float[Array, "n d"], reach: Scalar) -> Int[Array, " n"]:
    """The first joinable token within `reach` of every token (itself where it is alone)."""
    difference = x[:, None, :] - x[None, :, :]
    near = jnp.sum(difference * difference, axis=-1) <= reach * reach
    if setting.joinable is not None:
        near = near & setting.joinable
    return jnp.argmax(near, axis=1)


def join(setting: Setting, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Tokens within `distance` put at the weighted mean of their group: the law's mean is kept, the error is second order."""
    leader = leaders(setting, x, setting.distance)
    # tokens without weight still have a place in a group that has none
    weights = jnp.maximum(setting.weights, jnp.finfo(x.dtype).eps ** 2)
    return rows_to_sphere(jnp.zeros_like(x).at[leader].add(weights[:, None] * x))[leader]


class Joining(AbstractTransparentSolver):
    """A solver whose steps end on the sphere with tokens joined.

    Joined tokens have no relative motion left, so what limits an explicit step is the motion between clusters, not the
    contraction inside them: steps grow with the time scale of a plateau.
    """

    solver: diffrax.AbstractSolver

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """One step; the first stage is evaluated anew, because joining moved the tokens after the last one."""
        setting = eqx.tree_at(lambda a: a.leader, args, leaders(args, y0[0], jnp.zeros_like(args.distance)))
        y1, error, dense, state, result = self.solver.step(terms, t0, t1, y0, setting, solver_state, True)
        x, clock = y1
        error = _beyond_rounding(setting, y0, error, t1 - t0)
        return (join(setting, rows_to_sphere(x)), clock), error, dense, state, result


def rounding(setting: Setting, x: Float[Array, "n d"]) -> Scalar:
    """The speed that rounding alone gives: eps times the size of the drift, of which ẋ is the small tangent part."""
    eps = jnp.finfo(x.dtype).eps
    if isinstance(setting.field, AbstractDriftField):
        return eps * weighted_norm(setting, setting.field.drift(x))
    return eps / setting.unit


def _beyond_rounding(setting: Setting, state, error, step: Scalar):
    """The error estimate less what rounding of the field contributes, which no smaller step would mend."""
    x, clock = state
    v, speed = velocity(setting, x)
    noise = 4 * step * rounding(setting, x) / jnp.where(speed > 0, speed, 1)
    rate = jnp.exp(-jnp.maximum(clock, 0)) / (jnp.where(speed > 0, speed, 1) * setting.unit)
    size = worst_token(error[0])
    share = jnp.where(size > noise, 1 - noise / jnp.where(size > 0, size, 1), 0)
    # a NaN estimate must stay one
    share = jnp.where(jnp.all(jnp.isfinite(error[0])), share, jnp.nan)
    return share * error[0], jnp.sign(error[1]) * jnp.maximum(jnp.abs(error[1]) - noise * rate, 0)


def _worst(error: tuple[Array, Array]) -> Scalar:
    """The larger of the worst token's error and the clock's; infinite where a stage left the finite numbers."""
    worst = jnp.maximum(worst_token(error[0]), jnp.abs(error[1]))
    finite = jnp.all(jnp.isfinite(error[0])) & jnp.isfinite(error[1])
    return jnp.where(finite, worst, jnp.inf)


class Course(eqx.Module):
    """The static choices of one run."""

    solver: diffrax.AbstractSolver
    max_steps: int = eqx.field(static=True)


def follow(course: Course, setting: Setting, x0, t1, tolerance, observe) -> Any:
    """The diffrax solution from time 0, saved after every step, until t1, one point, or the field's rounding."""

    def over(s, state, setting, **kwargs):
        x, clock = state
        late = setting.unit * jnp.expm1(clock) >= t1
        together = jnp.all(x == x[:1])
        return late | together | (weighted_norm(setting, setting.field(x)) <= 64 * rounding(setting, x))

    def kept(s, state, setting):
        x, clock = state
        return {"t": setting.unit * jnp.expm1(clock), "speed": weighted_norm(setting, setting.field(x)), **observe(x)}

    start = jnp.zeros((), x0.dtype)
    return diffrax.diffeqsolve(
        diffrax.ODETerm(by_arc_length),
        Joining(course.solver),
        start,
        jnp.full((), 1e6, x0.dtype),
        None,
        (join(setting, x0), start),
        args=setting,
        saveat=diffrax.SaveAt(subs=diffrax.SubSaveAt(t0=True, steps=True, fn=kept)),
        stepsize_controller=diffrax.PIDController(rtol=jnp.zeros_like(tolerance), atol=tolerance, norm=_worst),
        event=diffrax.Event(over),
        max_steps=course.max_steps,
        throw=False,
    )
