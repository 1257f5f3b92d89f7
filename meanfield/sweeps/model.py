"""A dynamics written as text, for sweeps from a file: `"RoPE(ExpDot(beta, shift=1), [omega])"` with axes of the grid by name.

The text is parsed, never run: numbers, lists, + − * /, axes of the grid, and the classes listed here; nothing else.
"""

import ast
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import observables, sphere
from ..dynamics import SA, USA
from ..flow import flow
from ..kernels import Cosine, Dot, ExpDot, ExponentialDecay, Gaussian, RoPE, Toeplitz
from ..marginal import Marginal

KERNELS = {c.__name__: c for c in (Dot, ExpDot, RoPE, Toeplitz, Cosine, ExponentialDecay, Gaussian)}
DYNAMICS = {"USA": USA, "SA": SA}
LABELS = {"circle": Marginal.circle, "interval": Marginal.interval, "positions": Marginal.positions}
OUTPUTS = ("order", "energy", "x", "clusters", "dimension", "collapse_time")
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


@dataclass(frozen=True)
class Model:
    """What a point of a file's sweep simulates: fields are keys of its [model] table."""

    kernel: str
    dynamics: str = "USA"
    rotate_values: bool = True
    causal: bool = False
    labels: str = "circle"
    tokens: int = 64
    dim: int = 3
    end: float | str = 10.0
    """Last time, a number or an expression in the axes."""
    saves: int = 11
    """Save times, equispaced from 0."""
    rtol: float = 1e-6
    max_steps: int = 16384
    outputs: tuple[str, ...] = ("order", "energy")
    tolerance: float = 1e-2
    """Angle in radians below which tokens are one cluster."""

    def __post_init__(self):
        for name, value, known in (("dynamics", self.dynamics, DYNAMICS), ("labels", self.labels, LABELS)):
            if value not in known:
                raise ValueError(f"model.{name}={value!r}: one of {sorted(known)}")
        if unknown := [name for name in self.outputs if name not in OUTPUTS]:
            raise ValueError(f"model.outputs names {unknown[0]!r}: of {list(OUTPUTS)}")
        for name in ("tokens", "saves", "max_steps"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1 + (name == "saves"):
                raise ValueError(f"model.{name}={getattr(self, name)!r}: a larger count is needed")

    def check(self, axes: Mapping[str, np.ndarray]) -> None:
        """Reads the expressions once with the first value of every axis, so that a mistake is told before any work."""
        first = {name: float(values[0]) for name, values in axes.items()}
        for name, text in (("kernel", self.kernel), ("end", str(self.end))):
            used = {node.id for node in ast.walk(_parse(name, text)) if isinstance(node, ast.Name)}
            if unknown := used - set(axes) - set(KERNELS):
                raise ValueError(
                    f"model.{name} names {min(unknown)!r}: neither an axis of {list(axes)} nor of {sorted(KERNELS)}"
                )
            evaluate(name, text, first)

    def __call__(self, **point: jax.Array) -> dict[str, Any]:
        """Simulates one point from seeded uniform tokens (`seed` 0 where it is no axis)."""
        x0 = sphere.sample(jax.random.fold_in(jax.random.key(0), point.get("seed", 0)), (self.tokens, self.dim))
        rho = LABELS[self.labels](self.tokens)
        kernel = evaluate("kernel", self.kernel, point)
        dynamics = DYNAMICS[self.dynamics](kernel, rotate_values=self.rotate_values, causal=self.causal)
        ts = evaluate("end", str(self.end), point) * jnp.linspace(0.0, 1.0, self.saves, dtype=x0.dtype)
        traj = flow(dynamics, x0, rho, ts, rtol=self.rtol, max_steps=self.max_steps, throw=False, adjoint="forward")
        good = jnp.where(traj.ok, traj.final, x0)  # observables refuse NaN; the sweep blanks a failed point anyway
        measured = {
            "order": lambda: traj.order,
            "energy": lambda: traj.energy,
            "x": lambda: traj.x,
            "clusters": lambda: observables.count_clusters(good, self.tolerance),
            "dimension": lambda: observables.effective_dimension(good, traj.weights),
            "collapse_time": lambda: jnp.minimum(observables.collapse_time(traj), ts[-1]),
        }
        outputs = {name: measured[name]() for name in self.outputs}
        if "collapse_time" in outputs:  # the end where it did not happen
            outputs["collapsed"] = jnp.isfinite(observables.collapse_time(traj))
        return outputs | {"ok": traj.ok, "status": traj.status, "t": traj.t, "steps": traj.steps}


def evaluate(name: str, text: str, values: Mapping[str, Any]):
    """The value of an expression in the axes `values`; `name` is for messages."""
    return _value(_parse(name, text).body, name, values)


def _parse(name: str, text: str) -> ast.Expression:
    try:
        return ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise ValueError(f"model.{name}={text!r} is no expression: {error.msg}") from error


def _value(node: ast.AST, name: str, values: Mapping[str, Any]):
    match node:
        case ast.Constant(value=bool() | int() | float()):
            return node.value
        case ast.Name(id=word) if word in values:
            return values[word]
        case ast.Name(id=word) if word in KERNELS:
            raise ValueError(f"model.{name}: {word} needs its arguments, as in {word}(…)")
        case ast.List() | ast.Tuple():
            return jnp.stack([jnp.asarray(_value(item, name, values), jnp.result_type(float)) for item in node.elts])
        case ast.BinOp() if type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](_value(node.left, name, values), _value(node.right, name, values))
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, name, values)
        case ast.Call(func=ast.Name(id=word)) if word in KERNELS:
            positional = [_value(item, name, values) for item in node.args]
            named = {str(item.arg): _value(item.value, name, values) for item in node.keywords}
            try:
                return KERNELS[word](*positional, **named)
            except TypeError as error:
                raise ValueError(f"model.{name}: {word}: {error}") from error
    raise ValueError(f"model.{name} holds {ast.unparse(node)!r}: write numbers, axes, + - * /, and {sorted(KERNELS)}")
