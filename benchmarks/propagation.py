"""Profiles of influence: against a NumPy program, up to a million tokens, their gradients, and many architectures at once."""

import pathlib
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf

from .measure import compared, peak_memory, table, timed

pp = mf.propagation


def run(out: pathlib.Path) -> None:
    """Writes propagation_numpy, propagation_length, propagation_gradient and propagation_family (Markdown and CSV)."""
    with jax.enable_x64(True):
        against_numpy(out)
        lengths(out)
        gradients(out)
        family(out)


def numpy_profile(mixing: np.ndarray, slopes: np.ndarray, n: int, every_layer: bool) -> np.ndarray:
    """Every head's n × n softmax, their mean, and one product per layer; every_layer=False keeps the mean for all layers."""
    distance = np.arange(n)[:, None] - np.arange(n)[None, :]
    p, mean = np.eye(n)[-1], None
    for mix in mixing[::-1]:
        if mean is None or every_layer:
            mean = np.zeros((n, n))
            for slope in slopes:
                scores = np.where(distance >= 0, np.exp(-slope * np.maximum(distance, 0)), 0.0)
                mean += scores / scores.sum(1, keepdims=True) / len(slopes)
        p = (1 - mix) * p + mix * (p @ mean)
    return p


def against_numpy(out: pathlib.Path) -> None:
    """BLOOM-176B, 70 layers of 112 heads, 256 tokens."""
    arch, n = pp.preset("bloom"), 256
    mixing, slopes = np.asarray(arch.mixing), np.asarray(arch.bias.slopes)
    ours = timed(lambda: pp.profile(arch, n), repeats=30)
    per_layer = timed(lambda: numpy_profile(mixing, slopes, n, True), repeats=2, budget=15)
    hoisted = timed(lambda: numpy_profile(mixing, slopes, n, False), repeats=3)
    error = float(np.abs(np.asarray(pp.profile(arch, n)) - numpy_profile(mixing, slopes, n, False)).max())
    rows = [
        {"program": "meanfield", "time": ours, "times slower": 1.0, "largest difference": 0.0},
        {"program": "NumPy, softmax of every head in every layer", "time": per_layer, "times slower": per_layer.median / ours.median, "largest difference": error},
        {"program": "NumPy, softmax of every head once for all layers", "time": hoisted, "times slower": hoisted.median / ours.median, "largest difference": error},
    ]  # fmt: skip
    table(rows, out / "propagation_numpy", "Profile of BLOOM-176B, 256 tokens, float64")


def lengths(out: pathlib.Path) -> None:
    """mpt-7b, 32 layers of 32 heads, 2^14 … 2^20 tokens; the peak memory is that of a fresh process at the largest length."""
    arch, rows = pp.preset("mpt-7b"), []
    sizes = [2**k for k in range(14, 21)]
    for n in sizes:
        rows.append({"tokens": n, "time": timed(lambda n=n: pp.profile(arch, n), repeats=3, budget=8)})
    exponent = np.polyfit(np.log(sizes), np.log([row["time"].median for row in rows]), 1)[0]
    command = [sys.executable, "-m", "benchmarks.propagation", str(sizes[-1])]
    peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    rows[-1]["peak memory of the process"] = f"{float(peak) / 1e9:.2f} GB"
    table(
        rows,
        out / "propagation_length",
        "Profile of mpt-7b, float64",
        f"Fitted exponent of the cost in n: {exponent:.3f}.",
    )


def gradients(out: pathlib.Path) -> None:
    """Gradient in λ and slopes, with a diagonal per layer and head in it too, against the profile alone; temporary memory as compiled."""
    rows, random = [], np.random.default_rng(0)
    cases = [
        ("bloom", 256, False),
        *(("mpt-7b", 2**k, False) for k in (14, 16, 18)),
        *(("mpt-7b", 2**k, True) for k in (14, 16)),
    ]
    for name, n, per_head in cases:
        arch = pp.preset(name)
        diagonal = random.normal(size=(arch.depth, arch.num_heads)) if per_head else np.zeros(())
        parameters = (arch.mixing, arch.bias.slopes, jnp.asarray(diagonal))

        def profile(mixing: jax.Array, slopes: jax.Array, diagonal: jax.Array, n: int = n) -> jax.Array:
            return pp.profile(pp.Architecture(mixing, slopes, diagonal=diagonal), n)

        def loss(*parameters: jax.Array, n: int = n, profile=profile) -> jax.Array:
            return profile(*parameters)[: n // 2].sum()

        value = jax.jit(profile).lower(*parameters).compile()
        gradient = jax.jit(jax.grad(loss, argnums=(0, 1, 2) if per_head else (0, 1))).lower(*parameters).compile()
        forward, backward, ratio = compared(lambda f=value, x=parameters: f(*x), lambda f=gradient, x=parameters: f(*x))
        memory = gradient.memory_analysis().temp_size_in_bytes
        rows.append({
            "architecture": name, "tokens": n, "content": "per layer and head" if per_head else "one number",
            "profile": forward, "gradient": backward, "gradient / profile": ratio,
            "temporary memory of the gradient (MB)": memory / 1e6, "per token (bytes)": memory / n,
        })  # fmt: skip
    table(
        rows,
        out / "propagation_gradient",
        "Gradient of a profile in λ, slopes and a diagonal per layer and head, float64",
    )


def family(out: pathlib.Path) -> None:
    """1,000 architectures of 32 layers and 32 heads at 256 tokens, in one compiled program."""
    traces = []

    @jax.jit
    @jax.vmap
    def profiles(arch: pp.Architecture) -> jax.Array:
        traces.append(None)
        return pp.profile(arch, 256)

    base = pp.preset("mpt-7b")
    scales = jnp.linspace(0.1, 1.0, 1000)
    archs = jax.vmap(lambda s: eqx.tree_at(lambda a: a.mixing, base, s * base.mixing))(scales)
    time = timed(lambda: profiles(archs), repeats=3)
    profiles(jax.tree.map(lambda leaf: leaf * 0.5, archs))
    rows = [{"architectures": 1000, "time": time, "per architecture (ms)": time.median, "compilations": len(traces)}]
    table(rows, out / "propagation_family", "Architectures under vmap (32 layers, 32 heads, 256 tokens), float64")


def main() -> None:
    """Profile of mpt-7b at argv[1] tokens in this fresh process; prints the peak resident memory in bytes."""
    with jax.enable_x64(True):
        jax.block_until_ready(pp.profile(pp.preset("mpt-7b"), int(sys.argv[1])))
    sys.stdout.write(f"{peak_memory()}\n")


if __name__ == "__main__":
    main()
