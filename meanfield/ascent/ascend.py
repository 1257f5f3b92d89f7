"""The front door of maximisation: best state, certificates, status."""

import contextlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import _check, sphere
from .._callable import cast
from .._types import Array, Devices, Float, PRNGKey
from ..interaction import Plan, place, plan
from ..kernels import AbstractKernel, Gauge, orthogonality_defect, require_kernel
from ..marginal import Marginal
from ..prefix import Prefix
from .bounds import EFFORTS, Bound, upper_bound
from .engine import SADDLE
from .maximiser import Maximiser
from .methods import LBFGS, AbstractAscent
from .search import Found, search

ESCAPES = 3  # attempts to leave a saddle that the search itself ended in
ORTHOGONAL = 1e3  # units of rounding


def ascend(
    kernel: AbstractKernel,
    rho: Marginal,
    dim: int,
    key: PRNGKey,
    restarts: int = 64,
    x0: Float[Array | np.ndarray, "*batch n d"] | None = None,
    prefix: Prefix | None = None,
    certify: bool | str = True,
    method: AbstractAscent | None = None,
    budget: int = 2000,
    devices: Devices = None,
) -> Maximiser:
    """Maximises E over (S^{dim-1})^n at fixed labels and weights, and proves how good the answer is (theory.md 2).

    `restarts` starts (spectral, lifted from the plane, structured, random; a part with continuation in β) ascend
    together, the best few are polished by Newton steps, and a saddle is left along its direction of ascent.

    Args:
        kernel: symmetric interaction of one pair.
        rho: labels and weights of the n tokens.
        dim: d ≥ 2.
        key: randomness of the starts.
        restarts: R, how many starts; they run on as many threads as there are cores.
        x0: (R, n, dim) or (n, dim), start exactly there instead; a saddle is then kept and named (`Maximiser.escape`).
        prefix: frozen tokens that add Σ_i w_i Σ_k c_k φ(⟨x_i, p_k⟩).
        certify: True, "cheap", "tight" (see `bounds.upper_bound`), or False (no bound). With False, the call may be
            jitted, vmapped over kernels, keys or starts, and differentiated: `energy` by the envelope theorem (first
            derivatives), `x` by an implicit solve modulo rotations.
        method: `methods.LBFGS()` (default), `GradientAscent()`, `PowerStep()`, `Newton()`.
        budget: evaluations per restart; the Newton polish of the best few may add some.
        devices: devices, or a one-dimensional mesh, over which the tokens of every restart are shared out.

    Returns:
        A `Maximiser`, in the dtype of `x0` or JAX's default float.

    Raises:
        ValueError: when a kernel is asymmetric, a gauge is not orthogonal, or energies overflow.

    Source: arXiv 2605.30229.

    Examples:
        >>> best = mf.ascend(mf.ExpDot(1.0), mf.Marginal.circle(4), 2, jax.random.key(0), restarts=2)
        >>> print(best.status, f"{best.energy:.4f} <= {best.upper_bound:.4f}, e/2 = {np.e / 2:.4f}")
        converged 1.3591 <= 1.3592, e/2 = 1.3591
    """
    _check.random_key(key)
    dtype = _checked(kernel, rho, dim, restarts, x0, prefix, certify, budget)
    with jax.ensure_compile_time_eval() if _check.is_concrete(x0) else contextlib.nullcontext():
        starts = None if x0 is None else _starts(x0, rho.n, dim)
    method = _method(method)
    chosen = plan("blocked", devices)
    rho, starts, prefix = place((rho, starts, prefix), chosen)
    mesh = chosen.mesh if isinstance(chosen, Plan) else None
    found = search(kernel, rho, dim, key, restarts, starts, prefix, method, budget, dtype, mesh)
    if not _check.is_concrete((found, kernel, rho, prefix, key)):
        return _answer(found, Bound(float("inf"), "", "not certified: traced"))
    if not np.isfinite(np.asarray(found.energies)).any():
        raise ValueError("the energy of every start is NaN or infinite: use ExpDot(beta, shift=1) for large beta")
    if x0 is None:
        copies = np.arange(max(restarts, 2)) % 2  # as many as before: the compiled program is at hand
        found = _leave_saddles(
            found, lambda x: search(kernel, rho, dim, key, 2, x[copies], prefix, method, budget, dtype, mesh)
        )
    if certify is False:
        return _answer(found, Bound(float("inf"), "", "not certified: certify=False"))
    effort = "default" if certify is True else certify
    return _answer(found, upper_bound(kernel, rho, dim, np.asarray(found.x), prefix, effort))


def _method(method) -> AbstractAscent:
    method = LBFGS() if method is None else method
    if not isinstance(method, AbstractAscent):
        raise ValueError(
            f"method is {_check.describe(method)}: pass mf.ascent.LBFGS(), GradientAscent(), PowerStep() or Newton(), "
            "or an object of your own subclass of AbstractAscent"
        )
    return method


def _answer(found: Found, bound: Bound) -> Maximiser:
    return Maximiser(
        x=found.x,
        energy=found.energy,
        energies=found.energies,
        states=found.states,
        gradient_norm=found.gradient_norm,
        curvature=found.curvature,
        ascent_direction=found.escape,
        iterations=found.iterations,
        code=found.code,
        bound=bound,
    )


def _leave_saddles(found: Found, again) -> Found:
    """Ascends from both sides of a saddle along its direction of ascent, and keeps the list of energies."""
    for _ in range(ESCAPES):
        if int(found.code) != SADDLE:
            break
        beside = _answer(found, Bound(0.0, "")).escape()
        better = again(beside)
        energies = found.energies.at[0].set(better.energy)
        states = found.states.at[0].set(better.x)
        found = Found(
            better.x,
            better.energy,
            better.gradient_norm,
            better.curvature,
            better.escape,
            better.code,
            found.iterations + better.iterations,
            energies,
            states,
        )
    return found


def _starts(x0, n: int, dim: int) -> Float[Array, "R n d"]:
    x0 = _check.as_array(x0, "x0")
    x0 = x0[None] if x0.ndim == 2 else x0
    if x0.ndim != 3 or x0.shape[1:] != (n, dim):
        raise ValueError(f"x0 has shape {x0.shape}: pass (restarts, {n}, {dim}), one start each, for {n} labels")
    for start in x0:
        _check.tokens(start, "x0", unit=True)
    # unit rows are kept as they are; rows that are unit only to the caller's precision are made so
    return x0 if _check.is_concrete(x0) and _exact(x0) else sphere.normalize(x0)


def _exact(x0) -> bool:
    norms = np.linalg.norm(np.asarray(x0, np.float64), axis=-1)
    return bool(np.abs(norms - 1).max() <= 4 * np.finfo(np.asarray(x0).dtype).eps)


def _checked(kernel, rho, dim, restarts, x0, prefix, certify, budget):
    """The dtype of the answer; refuses what is known to be wrong before any compilation."""
    require_kernel(kernel)
    _check.marginal(rho)
    if not isinstance(dim, (int, np.integer)) or dim < 2:
        raise ValueError(f"dim={dim!r}: tokens live on S^(dim-1) with an integer dim of at least 2")
    if x0 is None and (not isinstance(restarts, (int, np.integer)) or restarts < 1):
        raise ValueError(f"restarts={restarts!r}: pass a positive integer")
    if not isinstance(budget, (int, np.integer)) or budget < 1:
        raise ValueError(f"budget={budget!r}: pass a positive number of evaluations per restart")
    if certify not in (True, False, *EFFORTS):
        raise ValueError(f"certify={certify!r}: pass True, False, {', '.join(map(repr, EFFORTS))}")
    concrete = _check.is_concrete((kernel, rho, prefix, x0))
    if certify is not False and not concrete:
        raise ValueError("certify=True needs concrete values (bounds are a host step): pass certify=False when tracing")
    dtype = np.dtype(jnp.result_type(float)) if x0 is None else np.dtype(_check.as_array(x0, "x0").dtype)
    if concrete:
        with jax.ensure_compile_time_eval():  # also where the call is being traced over other arguments
            _orthogonal(kernel, rho, dim, dtype)
            _symmetric(kernel, rho, dim, dtype)
    return dtype


def _symmetric(kernel, rho, dim, dtype) -> None:
    """Compares h(z, z') with h(z', z) on random pairs of labels and tokens; h(z, z) must be finite."""
    random = np.random.default_rng(0)
    count = min(64, rho.n * rho.n)
    x, y = random.normal(size=(2, count, dim))
    x, y = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (x, y))
    i, j = random.integers(0, rho.n, (2, count))
    pairs = _both_ways(kernel, rho.labels, x.astype(dtype), i, y.astype(dtype), j)
    forth, back, own = (np.asarray(h) for h in pairs)
    if not np.isfinite(own).all():
        raise ValueError(
            f"h(z, z) overflows {np.dtype(dtype)}: use ExpDot(beta, shift=1), which only rescales the energy"
        )
    defect, size = float(np.max(np.abs(forth - back))), float(np.max(np.abs(forth)))
    if defect > 1e4 * float(jnp.finfo(dtype).eps) * max(size, 1e-30):
        raise ValueError(
            f"the kernel {type(kernel).__name__} is asymmetric (|h(z, z') − h(z', z)| up to {defect:.3g}), so it has no "
            "energy to maximise: symmetrise it, or follow its flow with mf.flow"
        )


@eqx.filter_jit
def _both_ways(kernel, labels, x, i, y, j):
    kernel, labels = cast((kernel, labels), x.dtype)
    xi, zeta = jax.tree.map(lambda a: a[i], labels), jax.tree.map(lambda a: a[j], labels)
    h = jax.vmap(kernel)
    return h(x, xi, y, zeta), h(y, zeta, x, xi), h(x, xi, x, xi)


def _orthogonal(kernel, rho, dim, dtype) -> None:
    gauges = [part for part in _parts(kernel) if isinstance(part, Gauge)]
    for gauge in gauges:
        defects = jax.vmap(lambda xi, g=gauge: orthogonality_defect(g, xi, dim, dtype))(rho.labels)
        worst = float(jnp.max(defects))
        if worst > ORTHOGONAL * float(jnp.finfo(dtype).eps):
            raise ValueError(
                f"the gauge is not orthogonal (max |Q Qᵀ − I| = {worst:.3g} at label index {int(jnp.argmax(defects))}): "
                "return orthogonal matrices, e.g. the Q factor of jax.numpy.linalg.qr"
            )


def _parts(kernel):
    """The kernel and all kernels inside it."""
    yield kernel
    for name in ("a", "b", "inner"):
        inner = getattr(kernel, name, None)
        if isinstance(inner, AbstractKernel):
            yield from _parts(inner)
