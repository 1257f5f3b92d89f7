"""Variants that ../shared/data/lm does not have, against Hugging Face transformers 5.24 (torch 2.13, float32).

huggingface.npz holds the logits of AutoModelForCausalLM for the checkpoints that `write(folder, VARIANTS[name], seed=3)` makes; to make it
again, load each folder with `from_pretrained(folder, dtype=torch.float32)` (eager attention; Falcon sdpa, which adds ALiBi once).
MPT is left out: transformers does not read `alibi_bias_max` and `expansion_ratio`.
"""

import pathlib

import numpy as np
import pytest
from pretrained.checkpoints import VARIANTS, write

import meanfield as mf

REFERENCE = np.load(pathlib.Path(__file__).with_name("huggingface.npz"))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(REFERENCE.files) - {"ids"}))
def test_logits(tmp_path, name):
    model = mf.pretrained.load(write(tmp_path, VARIANTS[name], seed=3))
    np.testing.assert_allclose(model.logits(REFERENCE["ids"]), REFERENCE[name], atol=2e-5)
