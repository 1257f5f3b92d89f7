"""Measuring a model of SmolLM2-135M's size: against PyTorch eager with all attentions kept, and memory at 2,048 tokens."""

import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

import meanfield as mf
from meanfield.pretrained.checkpoint.layout import flatten

from .measure import table, timed

SPEC = mf.pretrained.Spec(
    "llama", 49152, 30, 576, 9, 3, 64, 1536, 1e-5, 0.125, norm="rms", norm_bias=False, activation="silu", gated=True,
    qkv_bias=False, out_bias=False, mlp_bias=False, rotary=mf.pretrained.Rotary(64, 100000.0),
)  # fmt: skip


def run(out: pathlib.Path) -> None:
    """Writes pretrained_speed and pretrained_memory."""
    speed(out)
    memory(out)


def speed(out: pathlib.Path, repeats: int = 3) -> None:
    """Forward and influence of 4 windows of 256 tokens, with the same random weights on the same cores."""
    model = mf.pretrained.initialise(SPEC, jax.random.key(0))
    ids = np.asarray(jax.random.randint(jax.random.key(1), (4, 256), 0, SPEC.vocab), np.int32)
    rows = []
    ours = mf.pretrained.measure(model, ids, batch=4, progress=False)
    taken = timed(lambda: mf.pretrained.measure(model, ids, batch=4, progress=False), repeats, 60)
    rows.append({"library": "meanfield", "measured": "λ, mean attention, content, collapse, influence", "time": taken})
    try:
        from ._llama_torch import EagerLlama
    except ImportError:
        rows.append({"library": "PyTorch eager", "measured": "not installed: pip install meanfield[bench]"})
    else:
        peer = EagerLlama(SPEC, *_numpy(model))
        mixing, influence, _ = peer.influence(ids)
        np.testing.assert_allclose(ours.mixing, mixing, atol=1e-5)
        np.testing.assert_allclose(ours.dataset["influence"].values, influence, rtol=2e-3)
        taken = timed(lambda: peer.influence(ids), repeats, 60)
        rows.append({"library": "PyTorch eager", "measured": "λ, all attentions kept, influence", "time": taken})
        rows += _products()
    note = (
        f"{SPEC.layers} layers of {SPEC.dim}, 4 windows of 256 tokens, float32; both give the same λ and influence. PyTorch keeps "
        f"every activation ({SPEC.layers * SPEC.heads * 4 * 256**2 * 4 / 1e6:.0f} MB of attention matrices alone); meanfield keeps the stream "
        "entering each layer and computes the layer again on the way down, all but its last product: the arithmetic of 2.75 forward "
        "passes against 2, for memory that does not grow with the number of layers times n². The last two rows are a layer's widest product "
        "alone: the rest of the gap is XLA's matrix product on CPUs, and its small products of single heads."
    )
    table(rows, out / "pretrained_speed", "Forward and influence of a 135M model", note)


def _products() -> list[dict]:
    import torch

    x, w = (jax.random.normal(jax.random.key(s), (n, SPEC.dim)) for s, n in ((2, 1024), (3, SPEC.hidden)))
    product = jax.jit(lambda x, w: jnp.matmul(x, w.T, precision="highest"))
    peer = [torch.from_numpy(np.array(z)) for z in (x, w)]
    work = f"one product, 1024 × {SPEC.dim} × {SPEC.hidden}"
    return [
        {"library": "meanfield", "measured": work, "time": timed(lambda: product(x, w), 50, 5)},
        {"library": "PyTorch eager", "measured": work, "time": timed(lambda: peer[0] @ peer[1].T, 50, 5)},
    ]


_MEMORY = """
import sys
import jax, numpy as np
import meanfield as mf
from benchmarks.measure import peak_memory
from benchmarks.pretrained import SPEC
start = peak_memory()
model = jax.block_until_ready(mf.pretrained.initialise(SPEC, jax.random.key(0)))
weights = sum(leaf.nbytes for leaf in jax.tree.leaves(model.weights))
ids = np.arange(int(sys.argv[1]), dtype=np.int32)[None]
mf.pretrained.measure(model, ids, transitions=tuple(sys.argv[2].split(",")) if sys.argv[2] else (), progress=False)
print(weights, start, peak_memory())
"""


def memory(out: pathlib.Path, length: int = 2048, transitions: str = "mixing,energy,energy2") -> None:
    """Peak resident memory of measuring one window, in a process of its own."""
    command = [sys.executable, "-c", _MEMORY, str(length), transitions]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    weights, start, peak = map(int, done.stdout.split())
    row = {
        "measured": f"λ, mean attention, content, collapse, influence and {transitions}",
        "weights (MB)": weights / 1e6,
        "imports (MB)": start / 1e6,
        "peak (MB)": peak / 1e6,
        "peak − weights (MB)": (peak - weights) / 1e6,
        "kept by output_attentions (MB)": SPEC.layers * SPEC.heads * length**2 * 4 / 1e6,
    }
    table([row], out / "pretrained_memory", f"Peak memory of measuring {length} tokens", "One window, one process.")


def _numpy(model) -> tuple[np.ndarray, np.ndarray, list[dict[str, np.ndarray]]]:
    blocks = {name: np.asarray(array) for name, array in flatten(model.weights.blocks).items()}
    layers = [{name: array[t] for name, array in blocks.items()} for t in range(SPEC.layers)]
    return np.asarray(model.weights.embedding), np.asarray(model.weights.exit["norm"]["scale"]), layers
