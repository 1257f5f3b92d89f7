"""Files that lie: a clear error at once, no large allocation, nothing outside the folder, nothing unpickled."""

import json
import struct
import time

import numpy as np
import pytest
from pretrained.checkpoints import CONFIGS, write
from safetensors.numpy import load_file, save_file

import meanfield as mf


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "model", CONFIGS["bloom"])


@pytest.fixture(autouse=True)
def quick():
    start = time.process_time()
    yield
    assert time.process_time() - start < 10


def header(folder, change):
    """Rewrites the safetensors header of a folder by `change(dict)`; the data stay."""
    path = folder / "model.safetensors"
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    table = json.loads(data[8 : 8 + length])
    change(table)
    text = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def refused(folder, *words):
    with pytest.raises((ValueError, FileNotFoundError)) as error:
        mf.pretrained.load(folder)
    for word in words:
        assert word in str(error.value)


def test_truncated(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    refused(folder, "model.safetensors")


def test_empty(folder):
    (folder / "model.safetensors").write_bytes(b"")
    refused(folder, "model.safetensors")


def test_header_of_2_to_the_60_bytes(folder):
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", 2**60) + path.read_bytes()[8:])
    refused(folder, "model.safetensors")


def test_offsets_outside(folder):
    def change(table):
        table["transformer.ln_f.bias"]["data_offsets"] = [2**40, 2**40 + 64]

    header(folder, change)
    refused(folder, "model.safetensors")


def test_offsets_overlapping(folder):
    def change(table):
        table["transformer.ln_f.bias"]["data_offsets"] = table["transformer.ln_f.weight"]["data_offsets"]

    header(folder, change)
    refused(folder, "model.safetensors")


def test_nan_weights(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["transformer.h.1.mlp.dense_h_to_4h.bias"][3] = np.nan
    save_file(tensors, folder / "model.safetensors")
    refused(folder, "transformer.h.1.mlp.dense_h_to_4h.bias has NaN")


@pytest.mark.parametrize(
    "key, value", [("n_layer", 10**6), ("hidden_size", 2**30), ("vocab_size", 2**30), ("n_layer", 2**40)]
)
def test_absurd_config(folder, key, value):
    (folder / "config.json").write_text(json.dumps(CONFIGS["bloom"] | {key: value}))
    refused(folder, str(value))


@pytest.mark.parametrize("value", [0, -3, 2.5, "4", True, None, [2]])
def test_config_of_the_wrong_type(folder, value):
    (folder / "config.json").write_text(json.dumps(CONFIGS["bloom"] | {"n_head": value}))
    refused(folder, "n_head")


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100000])
def test_config_that_is_no_json_object(folder, text):
    (folder / "config.json").write_text(text)
    refused(folder, "config.json")


@pytest.mark.parametrize(
    "file", ["../secret.safetensors", "/etc/passwd", "a/b.safetensors", "weights.bin", 7, "..\\x.safetensors"]
)
def test_index_cannot_leave_the_folder(folder, file):
    index = {"weight_map": {"transformer.ln_f.bias": file}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, "transformer.ln_f.bias", "own folder")


def test_index_cannot_leave_by_a_link(folder, tmp_path):
    (folder / "model.safetensors").rename(tmp_path / "outside.safetensors")
    (folder / "model.safetensors").symlink_to(tmp_path / "outside.safetensors")
    index = {"weight_map": {"transformer.ln_f.bias": "model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, "own folder")


def test_index_that_lies(folder):
    index = {"weight_map": {"transformer.ln_g.bias": "model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, "transformer.ln_g.bias")


def test_wrong_shape_and_unused_are_named(tmp_path):
    def edit(tensors):
        tensors["transformer.ln_f.bias"] = np.zeros(15, np.float32)
        tensors["transformer.h.0.extra.weight"] = np.zeros(3, np.float32)
        name = "transformer.h.0.self_attention.query_key_value.weight"
        tensors[name] = np.ascontiguousarray(tensors[name].T)

    folder = write(tmp_path, CONFIGS["bloom"], edit=edit)
    refused(folder, "transformer.ln_f.bias (15,)", "h.0.extra.weight", "query_key_value.weight (16, 48)")


def test_integers_are_no_weights(tmp_path):
    def edit(tensors):
        tensors["transformer.ln_f.bias"] = np.zeros(16, np.int64)

    refused(write(tmp_path, CONFIGS["bloom"], edit=edit), "transformer.ln_f.bias")


GGUF = b"GGUF" + struct.pack("<I", 3)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GGUX" + bytes(40),
        GGUF + struct.pack("<QQ", 2**60, 0) + bytes(40),
        GGUF + struct.pack("<QQ", 0, 2**60) + bytes(40),
        GGUF + struct.pack("<QQQ", 0, 1, 2**60) + bytes(40),
        GGUF + struct.pack("<QQQ", 0, 1, 1) + b"a" + struct.pack("<IIQ", 9, 8, 2**60) + bytes(40),
        GGUF + struct.pack("<QQQ", 0, 1, 1) + b"a" + struct.pack("<IIQ", 9, 0, 2**60) + bytes(40),
        GGUF + struct.pack("<QQQ", 0, 1, 1) + b"a" + struct.pack("<IIQ", 9, 9, 2**60) + bytes(40),
        GGUF + struct.pack("<QQQ", 0, 1, 1) + b"a" + struct.pack("<I", 77) + bytes(40),
        GGUF + struct.pack("<QQQ", 1, 0, 1) + b"t" + struct.pack("<IQQIQ", 2, 2**39, 2**39, 0, 0) + bytes(40),
        GGUF + struct.pack("<QQQ", 1, 0, 1) + b"t" + struct.pack("<IQIQ", 1, 8, 0, 2**60) + bytes(40),
        GGUF + struct.pack("<QQQ", 1, 0, 1) + b"t" + struct.pack("<IQIQ", 1, 8, 9999, 0) + bytes(40),
        GGUF + struct.pack("<QQQ", 1, 0, 1) + b"t" + struct.pack("<IQIQ", 900, 8, 0, 0) + bytes(40),
    ],
)
def test_gguf_that_lies(tmp_path, data):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    refused(path, "model.gguf")


def test_nothing_is_unpickled(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["bloom"]))
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    refused(tmp_path, "pytorch_model.bin", "never opened", "safetensors")


def test_nothing_there(tmp_path):
    refused(tmp_path, "config.json")
    refused(tmp_path / "absent", "absent")
