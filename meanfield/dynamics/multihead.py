"""Multi-head attention with matrices shared in depth."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .. import _check, sphere
from .._callable import as_parameter
from .._types import AnyArray, Array, Float, PRNGKey, ScalarLike
from ..interaction import AbstractMethod, Causal, Plan, Sources, Targets, choose, mean
from ..interaction.bound import cast_parts, visibility
from ..kernels import ExpDot, Term
from ..marginal import Marginal
from .base import AbstractDriftField, AbstractDynamics, CausalRule


class MultiHead(AbstractDynamics):
    """ẋ_i = P_{x_i} Σ_h V_h Σ_j a^h_ij x_j, a^h_ij ∝ w_j e^{β⟨Q_h x_i, K_h x_j⟩}, rows summing to 1 (theory.md 4).

    A dynamics, not the gradient of a pair energy, so `traj.energy` is None. One head of identities is `SA(ExpDot(beta))`.

    Args:
        queries: Q (H, k, d), any head dimension k.
        keys: K (H, k, d).
        values: V (H, d, d), output projections included.
        beta: inverse temperature; a model with logits ⟨q, k⟩/√k has β = 1/√k for its own matrices.
        causal: as in `SA`.

    Raises:
        ValueError: when shapes disagree.

    Examples:
        >>> heads = mf.MultiHead.random(jax.random.key(0), heads=2, d=4, head_dim=2)
        >>> x = mf.sphere.sample(jax.random.key(1), (5, 4))
        >>> mf.velocity(heads, x, mf.Marginal.positions(5)).shape
        (5, 4)
    """

    queries: Float[AnyArray, "H k d"]
    keys: Float[AnyArray, "H k d"]
    values: Float[AnyArray, "H d d"]
    beta: Float[Array, ""] = eqx.field(converter=as_parameter, default=1.0)
    causal: CausalRule = eqx.field(static=True, default=False)
    kernel: None = None
    prefix: None = None

    def __check_init__(self):
        q, k, v = self.queries.shape, self.keys.shape, self.values.shape
        if len(q) != 3 or q != k or v != (q[0], q[2], q[2]):
            raise ValueError(
                f"queries {q}, keys {k} and values {v} disagree: pass queries and keys (H, k, d) and values (H, d, d)"
            )

    @classmethod
    def random(cls, key: PRNGKey, heads: int, d: int, head_dim: int, beta: ScalarLike = 1.0, dtype=None) -> "MultiHead":
        """Gaussian heads: entries of Q_h, K_h of variance 1/√(d·head_dim), so that logits have variance β² at independent
        uniform tokens up to the factor head_dim/d; entries of V_h of variance 1/(d·heads), so that ‖A‖ ≤ about 1."""
        dtype = _check.float_dtype(dtype)
        a, b, c = jax.random.split(key, 3)
        scale = (d * head_dim) ** -0.25
        queries = scale * jax.random.normal(a, (heads, head_dim, d), dtype)
        keys = scale * jax.random.normal(b, (heads, head_dim, d), dtype)
        values = (d * heads) ** -0.5 * jax.random.normal(c, (heads, d, d), dtype)
        return cls(queries, keys, values, beta)

    def bind(self, rho: Marginal, d: int, dtype, method: str | Plan) -> "MultiHeadField":
        """The vector field for fixed labels; each head's Q_hᵀK_h is multiplied out once."""
        if self.queries.shape[2] != d:
            raise ValueError(f"the heads act on R^{self.queries.shape[2]} but tokens have d={d}: use one dimension")
        kernel, rho, _ = cast_parts(ExpDot(self.beta), rho, None, dtype)
        term = Term(jnp.ones((), dtype), kernel)
        visible = visibility(self.causal)
        summing, why = choose(method, (term,), rho.n, d, dtype, visible)
        queries, keys, values = (jnp.asarray(m, dtype) for m in (self.queries, self.keys, self.values))
        forms = jnp.einsum("hka,hkb->hab", queries, keys)
        return MultiHeadField(forms, values, term, rho, visible, summing, why)


class MultiHeadField(AbstractDriftField):
    """The multi-head velocity."""

    forms: Float[Array, "H d d"]
    values: Float[Array, "H d d"]
    term: Term
    rho: Marginal
    visible: Causal | None
    summing: AbstractMethod
    method: str = eqx.field(static=True)

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """P_x A(x)."""
        return sphere.project(x, self.drift(x))

    def drift(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Σ_h V_h Σ_j a^h_ij x_j, one head at a time."""
        sources = Sources(x, x, self.rho.labels, self.rho.weights)

        def head(total, matrices):
            form, value = matrices
            average = self.summing.average(self.term, Targets(x @ form, self.rho.labels), sources, self.visible)
            return total + mean(average) @ value.T, None

        return jax.lax.scan(head, jnp.zeros_like(x), (self.forms, self.values))[0]
