"""Every key that shapes the attention is honoured or refused by name; old and new spellings are one model."""

import numpy as np
import pytest
from pretrained.checkpoints import CONFIGS

from meanfield.pretrained import Alibi, Rotary
from meanfield.pretrained.config import Config
from meanfield.pretrained.families import from_config


def spec(name, **changes):
    return from_config(Config(CONFIGS[name] | changes, "config.json"))[0]


@pytest.mark.parametrize(
    "name, changes, message",
    [
        ("llama", {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "rope scaling 'yarn'"),
        ("llama", {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope scaling 'dynamic'"),
        ("llama", {"rope_scaling": {"type": "linear", "factor": 2.0, "attention_factor": 3.0}}, "attention_factor=3.0"),
        ("llama", {"hidden_act": "relu"}, "hidden_act='relu'"),
        ("llama", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping=50.0"),
        ("llama", {"quantization_config": {"bits": 4}}, "quantization_config"),
        ("llama", {"num_key_value_heads": 3}, "not a multiple"),
        ("bloom", {"n_head": 3}, "16 is not a multiple of 3"),
        ("bloom", {"scale_attention_by": 2}, "scale_attention_by=2"),
        ("mpt", {"attn_config": {"alibi": False}}, "alibi=False"),
        ("mpt", {"attn_config": {"alibi": True, "qk_ln": True}}, "qk_ln=True"),
        ("mpt", {"attn_config": {"alibi": True, "prefix_lm": True}}, "prefix_lm=True"),
        ("mpt", {"logit_scale": 0.5}, "logit_scale=0.5"),
        ("mpt", {"norm_type": "rmsnorm"}, "rmsnorm"),
        ("falcon-new", {"parallel_attn": False}, "parallel_attn=false"),
        ("falcon-rw", {"apply_residual_connection_post_layernorm": True}, "post_layernorm=True"),
        ("gpt2", {"activation_function": "mish"}, "mish"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention"),
        ("gpt_neox", {"rotary_pct": 0.4}, "rotary fraction 0.4"),
        ("gpt_neox", {"model_type": "gpt_j"}, "'gpt_j' is not known"),
    ],
)
def test_refused_by_name(name, changes, message):
    with pytest.raises(ValueError, match=message):
        spec(name, **changes)


def test_old_and_new_rope_spellings():
    old = spec("llama", rope_theta=7e4, rope_scaling={"type": "linear", "factor": 3.0})
    new = spec(
        "llama",
        rope_theta=None,
        rope_scaling=None,
        rope_parameters={"rope_theta": 7e4, "rope_type": "linear", "factor": 3.0},
    )
    assert old == new and old.rotary == Rotary(6, 7e4, ("linear", 3.0))
    old = spec("gpt_neox", rotary_pct=0.25, rotary_emb_base=500)
    changes = {"rotary_pct": None, "rotary_emb_base": None}
    new = spec(
        "gpt_neox",
        **changes,
        rope_parameters={"rope_theta": 500, "partial_rotary_factor": 0.25, "rope_type": "default"},
    )
    assert old == new and old.rotary == Rotary(2, 500.0)


def test_old_falcon_spelling():
    new = spec("falcon-new")
    keys = {"num_attention_heads": "n_head", "num_kv_heads": "n_head_kv", "num_hidden_layers": "n_layer"}
    old = {keys.get(k, k): v for k, v in CONFIGS["falcon-new"].items() if k != "new_decoder_architecture"}
    assert from_config(Config(old | {"model_type": "RefinedWeb"}, "config.json"))[0] == new
    assert new.wiring == "parallel" and new.kv_heads == 2
    assert spec("falcon-new", num_ln_in_parallel_attn=1).wiring == "parallel-shared"


def test_keys_that_are_honoured():
    assert spec("mpt").clip == 0.8 and spec("mpt").scale == 0.5 and spec("mpt").hidden == 32
    assert spec("gpt2").scale_by_depth and spec("gpt2", scale_attn_weights=False).scale == 1.0
    assert spec("bloom", apply_residual_connection_post_layernorm=True).wiring == "post-norm"
    assert spec("gpt_neox", use_parallel_residual=False).wiring == "sequential"
    assert spec("llama", model_type="mistral", sliding_window=4).window == 4
    assert spec("llama", model_type="qwen2", attention_bias=False, sliding_window=4).window is None
    assert spec("llama", model_type="qwen2", attention_bias=False).qkv_bias


def test_alibi_slopes():
    twelve = [2.0**-k for k in range(1, 9)] + [2.0**-k for k in (0.5, 1.5, 2.5, 3.5)]
    np.testing.assert_allclose(Alibi().slopes(12), twelve)
    np.testing.assert_allclose(Alibi(bias_max=16).slopes(4)[:2], [2.0**-4, 2.0**-8])
    np.testing.assert_allclose(Alibi(bias_max=16).slopes(8)[:2], [0.25, 0.0625])
    assert len(Alibi().slopes(112)) == 112 and Alibi().slopes(112)[64] == 2.0 ** (-8 / 128)


def test_rotary_scalings():
    plain = Rotary(8, 100.0).frequencies()
    np.testing.assert_allclose(plain, 100.0 ** (-np.arange(4) / 4))
    np.testing.assert_allclose(Rotary(8, 100.0, ("linear", 4.0)).frequencies(), plain / 4)
    np.testing.assert_allclose(Rotary(8, 100.0, factors=(1.0, 2.0, 3.0, 4.0)).frequencies(), plain / [1, 2, 3, 4])
    scaled = Rotary(64, 5e5, ("llama3", 8.0, 1.0, 4.0, 8192.0)).frequencies()
    plain = Rotary(64, 5e5).frequencies()
    wavelength = 2 * np.pi / plain
    np.testing.assert_allclose(scaled[wavelength < 8192 / 4], plain[wavelength < 8192 / 4])
    np.testing.assert_allclose(scaled[wavelength > 8192], plain[wavelength > 8192] / 8)
    between = (wavelength > 8192 / 4) & (wavelength < 8192)
    assert between.any() and (scaled[between] < plain[between]).all() and (scaled[between] > plain[between] / 8).all()
