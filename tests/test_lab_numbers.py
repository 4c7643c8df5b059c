"""Folders whose weights or fields would make other numbers than their model's: refused, or read as it reads them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kvgauge.cli.app import execute
from kvgauge.errors import DamagedFileError, FeatureUnsupportedError, KvgaugeError
from kvgauge.lab.folder import open_folder, save_folder
from lab_models import CONFIGS, ids, tensors

UP = "model.layers.0.mlp.up_proj.weight"


def logits(path, config, weights):
    save_folder(path, config, weights)
    return open_folder(path).decoder.forward(ids())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3e38])
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_weights_that_make_no_numbers_are_one_line(tmp_path, capsys, value, flags):
    config = CONFIGS["llama_gqa"]
    weights = tensors(config)
    weights[UP] = np.full_like(weights[UP], value)
    with pytest.raises(DamagedFileError, match="finite"):
        logits(tmp_path, config, weights)
    assert execute(["learn", "walk", "--model", str(tmp_path), "--ids", "1,2", *flags]) == 1
    told = capsys.readouterr()
    assert "the weights make no finite numbers" in (told.out if flags else told.err)
    if flags:
        assert json.loads(told.out)["error"]["code"] == "damaged_file"


def test_biases_are_read_where_the_config_has_them_and_only_there(tmp_path):
    config = CONFIGS["llama_mha_bias_tied"]
    weights = tensors(config)
    both = logits(tmp_path / "both", config, weights)
    plain = {**config, "attention_bias": False, "mlp_bias": False}
    ignored = logits(tmp_path / "ignored", plain, weights)
    without = {name: values for name, values in weights.items() if not name.endswith(".bias")}
    assert np.array_equal(ignored, logits(tmp_path / "none", plain, without))
    assert not np.allclose(ignored, both)
    with pytest.raises(KvgaugeError, match=r"lack model\.layers\.0\.self_attn\.q_proj\.bias"):
        logits(tmp_path / "lacking", config, without)


@pytest.mark.parametrize(
    "fields",
    [
        {"partial_rotary_factor": 0.5},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25}},
    ],
)
def test_heads_turned_in_part_are_refused(tmp_path, fields):
    config = {**CONFIGS["llama_gqa"], **fields}
    save_folder(tmp_path, config, tensors(config))
    with pytest.raises(FeatureUnsupportedError, match="in part"):
        open_folder(tmp_path)
