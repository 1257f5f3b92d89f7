"""The pure core: starts, ascent of all restarts with continuation in β, Newton polish of the best. Vmaps over kernels."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.typing import DTypeLike

from .._check import is_concrete, is_tracing
from .._machine import cores
from .._types import Array, Float, Int, PRNGKey, Scalar
from ..kernels import AbstractKernel, ExpDot
from ..marginal import Marginal
from ..prefix import Prefix
from .curvature import largest_curvature
from .engine import BUDGET, CONVERGED, SADDLE, STALLED, climb, evaluate, stopping
from .implicit import follow
from .landscape import bind
from .methods import AbstractAscent, Newton
from .starts import cool, start_mixture

# pairs evaluated at once: more restarts than this allows run in chunks. On a CPU a chunk waits for its slowest restart and gains little
# from being wide: at n = 60 two at a time took 0.25 to 0.47 of the time of 64 at a time on one core
BATCH_PAIRS, BATCH_PAIRS_CPU = 2**22, 2**13
# on a CPU, XLA gains nothing from many cores at small n: groups of restarts run on threads, up to this many pairs a restart
THREADED_PAIRS = 2**18
STAGES = (0.25, 0.5, 1.0)  # β of the continuation, as factors
STAGE_BUDGET = 80
POLISHED = 4
POLISH_BUDGET = 40


class Found(eqx.Module):
    """What the core returns. `code` indexes `engine.STATUSES`; restarts are sorted by energy, best first."""

    x: Float[Array, "n d"]
    energy: Scalar
    gradient_norm: Scalar
    curvature: Scalar
    escape: Float[Array, "n d"]
    code: Int[Array, ""]
    iterations: Int[Array, ""]
    energies: Float[Array, " R"]
    states: Float[Array, "R n d"]


def search(
    kernel: AbstractKernel,
    rho: Marginal,
    dim: int,
    key: PRNGKey,
    restarts: int,
    x0: Float[Array, "R n d"] | None,
    prefix: Prefix | None,
    method: AbstractAscent,
    budget: int,
    dtype: DTypeLike,
    mesh: Mesh | None = None,
) -> Found:
    """Maximises E over (S^{dim-1})^n. Pure: jit, vmap over kernels, labels, weights and keys, grad (see `follow`)."""
    concrete = is_concrete((kernel, rho, prefix))
    frozen = (kernel, rho, prefix) if concrete else jax.lax.stop_gradient((kernel, rho, prefix))
    continued = x0 is None and _has_temperature(kernel)
    x0 = _draw(*frozen, dim, key, restarts, dtype, mesh) if x0 is None else x0
    plan = schedule(x0.shape[0], continued, budget, x0.dtype)
    on_host = concrete and is_concrete(x0) and not is_tracing()
    ascended = (ascend_starts if on_host else _ascend)(*frozen, x0, *plan, method, mesh)
    found = _finish(*frozen, *ascended, mesh)
    if concrete:
        return found
    # first derivatives of the energy by the envelope theorem, of the states by the implicit function theorem
    energy = bind(kernel, rho, prefix, dim, dtype, mesh)(found.x)[0]
    x = follow(found.x, (kernel, rho, prefix))
    return eqx.tree_at(lambda f: (f.x, f.energy), found, (x, energy))


def schedule(restarts: int, continued: bool, budget: int, dtype: DTypeLike):
    """Factors of β (stages, R) and evaluations (stages,): every other pair of restarts takes the cooler stages."""
    takes_stages = continued & ((np.arange(restarts) // 2) % 2 == 1)
    factors = jnp.asarray([np.where(takes_stages, s, 1.0) for s in STAGES], dtype)
    ends = np.minimum([STAGE_BUDGET * (i + 1) for i in range(len(STAGES) - 1)] + [budget], budget)
    return factors, jnp.asarray(np.diff(ends, prepend=0), jnp.int32)


@eqx.filter_jit
def _draw(kernel, rho, prefix, dim, key, restarts, dtype, mesh) -> Float[Array, "R n d"]:
    return start_mixture(bind(kernel, rho, prefix, dim, dtype, mesh), key, restarts, dim, dtype)


@eqx.filter_jit
def _finish(kernel, rho, prefix, x, energy, code, iterations, mesh) -> Found:
    """Newton polish of the best few restarts, and the curvature at the best of all."""
    landscape = bind(kernel, rho, prefix, x.shape[2], x.dtype, mesh)
    order = jnp.argsort(-jnp.where(jnp.isfinite(energy), energy, -jnp.inf), stable=True)
    x, energy, code, iterations = jax.tree.map(lambda a: a[order], (x, energy, code, iterations))
    top = min(POLISHED, x.shape[0])
    polished = jax.lax.map(partial(_polish, landscape), (x[:top], iterations[:top]))
    iterations = iterations.at[:top].add(polished.iterations)
    x, energy = x.at[:top].set(polished.point.x), energy.at[:top].set(polished.point.energy)
    order = jnp.argsort(-jnp.where(jnp.isfinite(energy), energy, -jnp.inf), stable=True)
    best = order[0]
    curvature, escape = largest_curvature(landscape, x[best])
    final = evaluate(landscape, x[best])
    code, gradient_norm = _judge(landscape, final, code[best], curvature)
    return Found(
        final.x, final.energy, gradient_norm, curvature, escape, code, iterations[best], energy[order], x[order]
    )


def together(n: int) -> int:
    """How many restarts of n tokens are evaluated at once."""
    return (BATCH_PAIRS_CPU if jax.default_backend() == "cpu" else BATCH_PAIRS) // (n * n)


def ascend_starts(
    kernel: AbstractKernel,
    rho: Marginal,
    prefix: Prefix | None,
    x0: Float[Array, "R n d"],
    factors: Float[Array, "stages R"],
    budgets: Int[Array, " stages"],
    method: AbstractAscent,
    mesh: Mesh | None,
) -> tuple[Float[Array, "R n d"], Float[Array, " R"], Int[Array, " R"], Int[Array, " R"]]:
    """(x, energy, code, iterations) of every restart; on a CPU in equal groups, one thread each, the last filled up."""
    restarts, threads = x0.shape[0], 1 if mesh is not None else _threads(x0)
    if threads == 1:
        return _ascend(kernel, rho, prefix, x0, factors, budgets, method, mesh)
    size = -(-restarts // threads)
    groups = np.minimum(np.arange(threads * size), restarts - 1).reshape(threads, size)
    inputs = [(kernel, rho, prefix, x0[group], factors[:, group], budgets, method, mesh) for group in groups]
    # compiled here: a thread has JAX's global settings, not those of a surrounding `with jax.enable_x64()`
    program = _ascend.lower(*inputs[0]).compile()
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(lambda group: jax.block_until_ready(program(*group)), inputs))
    return jax.tree.map(lambda *part: jnp.concatenate(part)[:restarts], *parts)


def _threads(x0: Float[Array, "R n d"]) -> int:
    restarts, n, _ = x0.shape
    if jax.default_backend() != "cpu" or n * n > THREADED_PAIRS:
        return 1
    return min(cores(), restarts)


@eqx.filter_jit
def _ascend(kernel, rho, prefix, x0, factors, budgets, method, mesh):
    """All restarts through the stages; those at full β in every stage just go on."""
    restarts, n, dim = x0.shape
    chunk = max(1, min(restarts, together(n)))

    def stage(x, inputs):
        scales, allowed = inputs

        def one(arguments):
            start, scale = arguments
            landscape = bind(cool(kernel, scale), rho, prefix, dim, x0.dtype, mesh)
            return climb(landscape, start, method, stopping(x0.dtype, allowed))

        ascend = jax.vmap(one) if chunk == restarts else partial(jax.lax.map, one, batch_size=chunk)
        ascent = ascend((x, scales))
        return ascent.point.x, (ascent.point.energy, ascent.status, ascent.iterations)

    x, (energy, code, iterations) = jax.lax.scan(stage, x0, (factors, budgets))
    return x, energy[-1], code[-1], jnp.sum(iterations, axis=0, dtype=jnp.int32)


def _polish(landscape, climbed):
    """Newton steps to the limit of rounding; a start that needed no move is left as it is."""
    x, moves = climbed
    budget = jnp.where(moves > 0, POLISH_BUDGET, 0)
    return climb(landscape, x, Newton(), stopping(x.dtype, budget, sharp=True))


def _judge(landscape, point, code, curvature):
    """The final status: converged by the search's tolerance, a saddle where the Hessian has a positive eigenvalue."""
    gradient_norm, size = landscape.norm(point.gradient), landscape.norm(point.force)
    eps = jnp.finfo(point.x.dtype).eps
    converged = gradient_norm <= stopping(point.x.dtype, 0).gradient * size
    code = jnp.where(converged, CONVERGED, jnp.where(code == BUDGET, BUDGET, STALLED))
    saddle = converged & (curvature > 10 * jnp.sqrt(eps) * size)
    return jnp.where(saddle, SADDLE, code).astype(jnp.int32), gradient_norm


def _has_temperature(kernel) -> bool:
    parts = jax.tree.leaves(kernel, is_leaf=lambda part: isinstance(part, ExpDot))
    return any(isinstance(part, ExpDot) for part in parts)
