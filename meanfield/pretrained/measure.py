"""Front door: mixing, attention, content, collapse and influence of a model on a set of sequences."""

import pathlib

import numpy as np
from tqdm import tqdm

from .._check import is_concrete
from .measurement import Measurement, assemble
from .model import Ids, Mask, Model, checked
from .passes import measure_batch
from .store import BatchStore, identity
from .targets import TARGETS, Target
from .transitions import TRANSITIONS

_SCORES_BYTES = 2**25


def measure(
    model: Model,
    ids: Ids,
    mask: Mask = None,
    *,
    target: Target = "probability",
    token: int | np.ndarray | None = None,
    transitions: tuple[str, ...] = (),
    batch: int | None = None,
    out: str | pathlib.Path | None = None,
    progress: bool = True,
) -> Measurement:
    """Measures λ_t, mean attention, content scores and the influence of every position, in one pass up and one down per batch.

    λ_t = mean over positions, then over sequences, of ‖a‖/(‖x‖+‖a‖), x the raw stream entering block t and a what its attention
    adds; influence of token j = ‖∂ target/∂e_j‖₂, e_j the embedding look-up ([PB], arXiv 2602.16837).

    Args:
        model: from `load`; a streamed model is read from disk twice per batch, layer by layer.
        ids: token ids (sequences, n).
        mask: (sequences, n), 1 for real tokens; padding on the left, so that last tokens line up.
        target: at the last position, the "probability" (published), "log_probability" or "logit" of a token, or the stream's "norm".
        token: the token, one or one per sequence; default the argmax.
        transitions: predictors to carry along per sequence, of `TRANSITIONS` ("backprop" and "alti" cost most).
        batch: sequences at a time; default by the size of their attention.
        out: a folder for the results of every batch: an interrupted run resumes there, a different one is refused.
        progress: show a bar on a terminal when it takes longer than a second.

    Returns:
        A `Measurement`.

    Raises:
        ValueError: as `Model.logits`, and where the padding is not on the left, a name is unknown, or traced values are given.

    Examples:
        >>> spec = mf.pretrained.Spec(
        ...     family="example", vocab=16, layers=2, dim=8, heads=2, kv_heads=2, head_dim=4, hidden=16,
        ...     eps=1e-5, scale=0.5, alibi=mf.pretrained.Alibi(),
        ... )
        >>> model = mf.pretrained.initialise(spec, jax.random.key(0))
        >>> m = mf.pretrained.measure(model, np.arange(6)[None], progress=False)
        >>> m.mixing.shape, m.rollout.shape, f"{m.influence.sum():.4f}"
        ((2,), (6, 6), '1.0000')
    """
    if not is_concrete(ids, mask):
        raise ValueError(
            "ids and mask are traced: measure runs on the host layer by layer; call it outside jit and vmap"
        )
    ids, mask = (np.asarray(array) for array in checked(model, ids, mask))
    _check_padding(mask)
    _check_names(target, transitions)
    sequences, length = ids.shape
    token = _tokens(token, sequences, model.spec.vocab)
    if batch is not None and batch < 1:
        raise ValueError(f"batch={batch} must be at least 1")
    size = batch or max(1, min(sequences, _SCORES_BYTES // (model.spec.heads * length**2 * model.dtype.itemsize)))
    run = (target, None if token is None else token.tolist(), transitions, size)
    store = BatchStore(out, identity(model, ids, mask, *run)) if out is not None else None
    starts = range(0, sequences, size)
    results = []
    with tqdm(
        total=2 * model.spec.layers * len(starts), unit="layer", delay=1, disable=None if progress else True
    ) as bar:
        for number, start in enumerate(starts):
            done = store.read(number) if store else None
            if done is None:
                done = _one(model, ids, mask, token, start, size, target, transitions, lambda: bar.update())
                if store:
                    store.write(number, done)
            else:
                bar.update(2 * model.spec.layers)
            results.append(done)
    return assemble(model, results, ids, mask, target, transitions)


def _one(model, ids, mask, token, start, size, target, transitions, tick) -> dict[str, np.ndarray]:
    # The last batch is filled up with its first sequence, so that one compiled program serves all.
    real = np.arange(start, min(start + size, len(ids)))
    index = np.concatenate([real, np.full(size - len(real), start)])
    keep = (np.arange(size) < len(real)).astype(np.float32)
    chosen = None if token is None else token[index]
    found = measure_batch(model, ids[index], mask[index], keep, target, chosen, transitions, tick)
    return {name: value if name == "attention" else value[: len(real)] for name, value in found.items()}


def _check_padding(mask: np.ndarray) -> None:
    wrong = np.flatnonzero((np.diff(mask.astype(np.int8), axis=1) < 0).any(axis=1) | ~mask[:, -1])
    if len(wrong):
        raise ValueError(
            f"mask of sequence {wrong[0]} has padding that is not on the left: move all padding to the left "
            "(influence is measured at the last position)"
        )


def _check_names(target: str, transitions: tuple[str, ...]) -> None:
    if target not in TARGETS:
        raise ValueError(f"target={target!r} is not one of {', '.join(TARGETS)}")
    if isinstance(transitions, str):
        raise ValueError(f"transitions={transitions!r} is a string: pass a tuple, ({transitions!r},)")
    unknown = [name for name in transitions if name not in TRANSITIONS]
    if unknown:
        raise ValueError(f"transitions has {unknown[0]!r}, which is not one of {', '.join(TRANSITIONS)}")


def _tokens(token, sequences: int, vocab: int) -> np.ndarray | None:
    if token is None:
        return None
    tokens = np.broadcast_to(np.asarray(token), (sequences,)).astype(np.int32)
    if tokens.min() < 0 or tokens.max() >= vocab:
        raise ValueError(f"token={token} is outside the vocabulary 0 … {vocab - 1}")
    return tokens
