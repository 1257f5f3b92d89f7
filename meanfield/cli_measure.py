"""`meanfield measure`: a checkpoint and a text in; table, figures, Zarr store and run.json out."""

import pathlib
from typing import Annotated

import numpy as np
import tyro

from ._run import recorded
from .files import write_text


def measure(
    path: Annotated[pathlib.Path, tyro.conf.Positional],
    text: pathlib.Path | None = None,
    ids: pathlib.Path | None = None,
    windows: int = 24,
    length: int = 256,
    shuffle: bool = False,
    stream: bool = False,
    batch: int | None = None,
    transitions: tuple[str, ...] = ("mixing", "energy", "energy2", "backprop", "alti", "attention-only", "half"),
    out: pathlib.Path = pathlib.Path("runs/measure"),
    seed: int = 0,
) -> int:
    """Measure mixing, attention and influence of a language model on a text, and compare predictions with the measurement.

    Args:
        path: Hugging Face folder (config.json and safetensors) or .gguf file.
        text: a UTF-8 text, cut into windows by the checkpoint's own tokenizer.
        ids: token ids as a .npy file, in place of a text, for checkpoints without a tokenizer.
        windows: number of windows, evenly spaced over the text.
        length: tokens per window.
        shuffle: permute the tokens of the text first.
        stream: leave the weights on disk and read them layer by layer (models larger than memory).
        batch: windows at a time (default: by the size of their attention).
        transitions: predictors to carry along.
        out: folder for table, figures, measurement.zarr and run.json; an interrupted run resumes there.
        seed: of the shuffle and of the bootstrap.
    """
    from . import plot, pretrained
    from .plot import pretrained as figures

    if (text is None) == (ids is None):
        raise ValueError("give either --text FILE or --ids FILE.npy")
    settings = {
        "path": path,
        "text": text,
        "ids": ids,
        "windows": windows,
        "length": length,
        "shuffle": shuffle,
        "stream": stream,
    }
    with recorded(out, "measure", settings, seed) as results:
        model = pretrained.load(path, stream=stream)
        tokens = (
            model.encode(text.read_text(encoding="utf-8")) if text is not None else np.load(ids, allow_pickle=False)
        )
        chosen = pretrained.windows(tokens, windows, length, shuffle=shuffle, seed=seed)
        found = pretrained.measure(model, chosen, transitions=transitions, batch=batch, out=out / "batches")
        table = pretrained.compare(found, seed=seed)
        results |= {"family": model.spec.family, "layers": model.spec.layers, "mixing": found.mixing.tolist()}
    found.save(out / "measurement.zarr")
    write_text(out / "table.csv", table.to_dataframe().to_csv())
    arrays = {"influence": found.influence, "sequences": found.profile("sequences"), "mixing": found.mixing}
    title = f"{path.name}: {windows} windows of {length}{' (shuffled)' if shuffle else ''}"
    plot.save(figures.influence(found, table, title), out / "influence.png", arrays)
    plot.save(figures.layers(found, title), out / "layers.png", {"mixing": found.dataset["mixing"].values})
    print(pretrained.format_table(table))
    print(f"\ntable, figures, measurement.zarr and run.json are in {out}")
    return 0
