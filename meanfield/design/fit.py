"""Front door: fits any parameters to any loss by gradients."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from tqdm.auto import tqdm

from .._types import Array, PRNGKey, PyTree, Scalar
from .record import Fit, Record

MODES = ("reverse", "forward")


def fit(
    loss: Callable[..., Any],
    params: PyTree,
    steps: int,
    optimizer: optax.GradientTransformation,
    *,
    key: PRNGKey | None = None,
    mode: str = "reverse",
    patience: int | None = None,
    gradient_tolerance: float | int = 0.0,
    checkpoint: str | os.PathLike | None = None,
    checkpoint_every: int = 100,
    callback: Callable[[int, float, PyTree], object] | None = None,
    progress: bool | None = None,
) -> Fit:
    """Minimises loss(params) by `steps` updates of an optax optimizer, as one compiled step.

    params ← params + update(∇ loss(params)). The loss may integrate a flow, read a maximiser (`mf.ascend` with
    `certify=False`), or anything JAX differentiates.

    Args:
        loss: params ↦ scalar, or (params, key) ↦ scalar where `key` is given (a fresh key at each step).
        params: any pytree, such as an array, the variables of a flax module, a kernel or another `equinox.Module`; its
            floating arrays are fitted, the rest stays.
        optimizer: any optax transformation; line searches (`optax.lbfgs`) get the loss.
        mode: "reverse", or "forward" for a loss with few parameters whose flow has `adjoint="forward"`.
        patience: stop after so many steps without a new best loss.
        gradient_tolerance: stop where ‖∇ loss‖ is below it.
        checkpoint: a folder (Orbax, extra `design`) written every `checkpoint_every` steps and on an interrupt; a call
            with the same folder goes on from there.
        callback: called after each evaluation with (updates made, loss, params); a returned True stops.
        progress: a bar with the loss; default: on a terminal, after a second.

    Returns:
        A `Fit`. A loss or gradient that stops being finite ends the fit with status "not finite" and the last
            parameters that were good.

    Raises:
        ValueError: when the loss is not finite, or no scalar, at the start.

    Examples:
        >>> loss = lambda p: jnp.sum((p - 1) ** 2)
        >>> fit = mf.design.fit(loss, jnp.zeros(2), steps=100, optimizer=optax.adam(0.1))
        >>> print(np.round(fit.best, 2), fit.status)
        [1. 1.] steps
    """
    _check(params, steps, optimizer, mode, patience, checkpoint_every)
    free, fixed = eqx.partition(params, eqx.is_inexact_array)
    stepper = _Stepper(loss, fixed, optax.with_extra_args_support(optimizer), mode)
    record = Record(free, stepper.optimizer.init(free))
    saver = None
    if checkpoint is not None:
        from .checkpoint import Saver  # Orbax belongs to the extra `design`

        saver = Saver(Path(checkpoint), checkpoint_every)
        record = saver.restore(record)
    shown = sys.stdout.isatty() and sys.stderr.isatty() if progress is None else progress
    try:
        with tqdm(total=steps, initial=record.updates, desc="fit", disable=not shown, delay=1) as bar:
            status = _run(stepper, record, steps, key, patience, gradient_tolerance, callback, saver, bar)
    except KeyboardInterrupt as interrupt:
        if saver:
            saver.save(record)
            interrupt.add_note(
                f"{record.updates} steps are safe in {str(checkpoint)!r}: the same call goes on from there"
            )
        raise
    if saver:
        saver.save(record)
    return record.finish(fixed, status)


def _run(stepper, record: Record, steps, key, patience, gradient_tolerance, callback, saver, bar) -> str:
    while True:
        if not record.evaluated:
            value, gradient, norm = stepper.evaluate(record.free, _key(key, record.updates))
            if not (np.isfinite(value) and np.isfinite(norm)):
                if not record.history:
                    raise ValueError(
                        f"the loss is {value} with gradient norm {norm} at the start: begin from other params"
                    )
                return "not finite"
            record.add(value, gradient, norm)
            if callback is not None and callback(record.updates, float(value), eqx.combine(record.free, stepper.fixed)):
                return "callback"
        if record.norms[-1] <= gradient_tolerance:
            return "converged"
        if patience is not None and record.updates - record.best_at >= patience:
            return "patience"
        if record.updates >= steps:
            return "steps"
        state, free = stepper.update(record, _key(key, record.updates))
        record.advance(state, free)
        bar.update()
        bar.set_postfix(loss=f"{record.history[-1]:.3g}", refresh=False)
        if saver:
            saver.maybe_save(record)


class _Stepper:
    """The compiled halves of a step: loss with gradient, and update."""

    def __init__(self, loss, fixed, optimizer: optax.GradientTransformationExtraArgs, mode: str):
        self.optimizer, self.fixed = optimizer, fixed

        def value_of(free, key) -> Scalar:
            params = eqx.combine(free, fixed)
            value = jnp.asarray(loss(params) if key is None else loss(params, key))
            if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
                raise ValueError(f"loss returns {value.dtype}{list(value.shape)}: return one floating number")
            return value

        def evaluate(free, key):
            if mode == "forward":
                value, gradient = value_of(free, key), jax.jacfwd(value_of)(free, key)
            else:
                value, gradient = jax.value_and_grad(value_of)(free, key)
            return value, gradient, optax.tree.norm(gradient)

        def update(gradient, state, free, value, key):
            with jax.numpy_dtype_promotion("standard"):  # optax mixes step counts and floats
                changes, state = optimizer.update(
                    gradient, state, free, value=value, grad=gradient, value_fn=lambda free: value_of(free, key)
                )
                return state, optax.apply_updates(free, changes)

        self._evaluate, self._update = jax.jit(evaluate), jax.jit(update)

    def evaluate(self, free: PyTree, key: Array | None) -> tuple[Scalar, PyTree, Scalar]:
        return self._evaluate(free, key)

    def update(self, record: Record, key: Array | None) -> tuple[PyTree, PyTree]:
        return self._update(record.gradient, record.state, record.free, record.value, key)


def _key(key: PRNGKey | None, step: int) -> Array | None:
    return None if key is None else jax.random.fold_in(key, step)


def _check(params, steps, optimizer, mode, patience, checkpoint_every) -> None:
    if not isinstance(optimizer, optax.GradientTransformation):
        raise ValueError(f"optimizer is {optimizer!r}: pass an optax transformation, such as optax.adam(1e-2)")
    if not any(map(eqx.is_inexact_array, jax.tree.leaves(params))):
        raise ValueError("params holds no floating JAX array, so there is nothing to fit: wrap numbers by jnp.asarray")
    for name, value in (("steps", steps), ("checkpoint_every", checkpoint_every), ("patience", patience)):
        if value is not None and (not isinstance(value, (int, np.integer)) or value < 0):
            raise ValueError(f"{name}={value!r}: give a count of steps")
    if mode not in MODES:
        raise ValueError(f"mode={mode!r}: one of {MODES}")
