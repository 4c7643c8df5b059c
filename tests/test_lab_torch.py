"""The decoder against Transformers' own classes; UPDATE_GOLDEN=1 writes their logits anew.

Needs torch and Transformers (extra ``full``); without them, tests/test_decoder.py holds what they said.
"""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from lab_models import CONFIGS, GOLDEN, PROMPT, golden, ids, make

torch = pytest.importorskip("torch", reason="torch is not here: the decoder is held against recorded logits")
transformers = pytest.importorskip("transformers", reason="transformers is not here")


def reference(path, tokens: np.ndarray) -> np.ndarray:
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    with torch.no_grad():
        return model(torch.tensor(tokens)).logits.numpy()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CONFIGS)
def test_logits_equal_transformers(tmp_path, name):
    decoder = make(tmp_path, name).decoder
    for sequences, tokens in ((1, 1), (1, 9), (3, 9), (2, 40)):
        asked = ids(sequences, tokens)
        expected = reference(tmp_path, asked)
        cache = decoder.new_cache()
        parts = [decoder.forward(asked[:, :PROMPT], cache)]
        parts += [decoder.forward(asked[:, n : n + 1], cache) for n in range(PROMPT, tokens)]
        assert np.abs(decoder.forward(asked) - expected).max() < 1e-4
        assert np.abs(np.concatenate(parts, axis=1) - expected).max() < 1e-4


@pytest.mark.filterwarnings("ignore")
def test_the_recorded_logits_are_theirs(tmp_path):
    found = {}
    for name in CONFIGS:
        make(tmp_path / name, name)
        found[name] = reference(tmp_path / name, ids())
    if os.environ.get("UPDATE_GOLDEN"):
        rows = [{"config": k, "logits": np.round(v.astype(float), 5).tolist()} for k, v in found.items()]
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        GOLDEN.write_text(text, encoding="utf-8")
    recorded = golden()
    assert set(recorded) == set(found)
    for name, logits in found.items():
        assert np.abs(recorded[name] - logits).max() < 2e-5
