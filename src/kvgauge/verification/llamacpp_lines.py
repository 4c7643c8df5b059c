"""Lines of llama.cpp and its kin that bring several figures at once: caches, buffers by device, metadata."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from kvgauge.verification import phrases

#: Keys of printed hyperparameters -> keys of a GGUF.
_KEYS = {
    "n_layer": "block_count", "n_head": "attention.head_count", "n_head_kv": "attention.head_count_kv",
    "n_embd": "embedding_length", "n_embd_head_k": "attention.key_length",
    "n_embd_head_v": "attention.value_length",
    "n_swa": "attention.sliding_window", "n_ctx_train": "context_length", "n_vocab": "vocab_size",
    "n_expert": "expert_count", "n_expert_used": "expert_used_count", "n_ff": "feed_forward_length",
    "ssm_d_conv": "ssm.conv_kernel", "ssm_d_inner": "ssm.inner_size", "ssm_d_state": "ssm.state_size",
    "ssm_n_group": "ssm.group_count", "ssm_dt_rank": "ssm.time_step_rank",
}  # fmt: skip
_MAX_KEYS = 400
_OLLAMA_KINDS = {"model weights": "model", "kv cache": "KV", "compute graph": "compute"}
_IN_MIB = {"GiB": 1024.0, "MiB": 1.0, "KiB": 1 / 1024, "B": 1 / (1 << 20)}
_NEW_FILE = re.compile(r"loaded meta data with \d+ key-value pairs")


@dataclass
class LlamaLines:
    """What these lines said so far; the last line of a kind holds, as a dry pass prints its own first."""

    caches: dict[str, dict[str, str | None]] = field(default_factory=dict)
    state: dict[str, str | None] | None = None
    buffers: dict[str, dict[str, float]] = field(default_factory=dict)
    metadata: dict[str, object] = field(default_factory=dict)
    printed: dict[str, object] = field(default_factory=dict)
    breakdown: dict[str, tuple[float, float]] = field(default_factory=dict)
    kind: str = "main"
    of_ollama: dict[str, float] = field(default_factory=dict)

    def is_new_model(self, line: str) -> bool:
        """Whether another file is being read."""
        return bool(self.metadata) and _NEW_FILE.search(line) is not None

    def read(self, line: str) -> bool:
        """Read a line; return whether it is one of these."""
        return (
            self._pool(line) or self._cache(line) or self._buffer(line) or self._key(line) or self._row(line)
        )

    def _pool(self, line: str) -> bool:
        match = phrases.LLAMA_POOLS.search(line)
        if match is None:
            return False
        word = (match["kind"] or "").lower()
        self.kind = "window" if word.startswith("swa") else "index" if word == "indexer" else "main"
        return True

    def _cache(self, line: str) -> bool:
        match = phrases.LLAMA_CACHE.search(line)
        if match is None:
            return False
        if match["r_mib"] is not None or "recurrent" in line or "llama_memory_recurrent" in line:
            self.state = match.groupdict()
        else:
            name = "index" if "indexer" in line else self.kind
            self.caches[name] = match.groupdict()
        return True

    def _buffer(self, line: str) -> bool:
        match = phrases.LLAMA_BUFFER.search(line)
        if match is None:
            return self._of_ollama(line)
        self.buffers.setdefault(match["kind"], {})[match["device"]] = float(match["mib"])
        return True

    def _of_ollama(self, line: str) -> bool:
        match = phrases.OLLAMA_BUFFER.search(line)
        if match is None:
            return False
        kind = _OLLAMA_KINDS[match["kind"]]
        size = float(match["size"]) * _IN_MIB[match["unit"]]
        self.buffers.setdefault(kind, {})[match["device"]] = size
        if kind == "KV":
            self.of_ollama[match["device"]] = size
        return True

    def _key(self, line: str) -> bool:
        match = phrases.LLAMA_KV.search(line)
        if match is not None:
            if len(self.metadata) < _MAX_KEYS:
                value = _value(match["type"], match["value"].strip())
                if value is not None:
                    self.metadata[match["key"]] = value
            return True
        match = phrases.LLAMA_INFO.search(line)
        if match is None:
            return False
        self.printed[match["key"]] = (
            _value("u32", match["value"].strip()) if match["key"] != "arch" else match["value"]
        )
        return True

    def _row(self, line: str) -> bool:
        """Read a row of the memory breakdown: MiB of model, context and compute of a device."""
        match = phrases.LLAMA_BREAKDOWN.search(line)
        if match is None:
            return False
        self.breakdown[match["device"]] = (float(match["context"]), float(match["compute"]))
        return True

    def fields(self) -> dict[str, object]:
        """Return the fields of a record that these lines give."""
        found: dict[str, object] = {}
        main, window, state = self.caches.get("main"), self.caches.get("window"), self.state
        if main is not None:
            found |= {
                "kv_mib": _float(main["mib"]),
                "cells": _int(main["cells"]),
                "kv_layers": _int(main["layers"]),
            }
            found |= {f"{side}_mib": _float(main[f"{side}_mib"]) for side in "kv"}
        if window is not None:
            found["swa_kv_mib"] = _float(window["mib"])
        for cache in (window, main):
            if cache is not None:
                found |= {"n_seq_max": _int(cache["seqs"]), "n_stream": _int(cache["streams"])}
                found |= {"k_type": cache["k_type"], "v_type": cache["v_type"]}
        if self.of_ollama and main is None:
            found["kv_mib"] = sum(self.of_ollama.values())
        if self.breakdown and "compute" not in self.buffers:
            found["compute_mib"] = {device: compute for device, (_, compute) in self.breakdown.items()}
        if state is not None:
            found |= {"rs_mib": _float(state["mib"]), "rs_seqs": _int(state["seqs"])}
        for kind, name in (("compute", "compute_mib"), ("model", "model_buffer_mib")):
            if kind in self.buffers:
                found[name] = dict(self.buffers[kind])
        found["gguf_metadata"] = self.gguf()
        return {name: value for name, value in found.items() if value not in (None, {})}

    def gguf(self) -> dict[str, object]:
        """Return the printed metadata: its keys, else the hyperparameters under the keys of a GGUF."""
        if "general.architecture" in self.metadata:
            return self.metadata
        arch = self.printed.get("arch")
        if not isinstance(arch, str):
            return {}
        named = {
            f"{arch}.{_KEYS[key]}": value for key, value in self.printed.items() if key in _KEYS and value
        }
        return {"general.architecture": arch, **named}


def _value(kind: str, text: str) -> object:
    """Return a metadata value; of lists, those of numbers that are printed whole."""
    if kind == "str":
        return text
    if kind == "bool":
        return text == "true"
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, int | float | list) else None


def _float(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _int(text: str | None) -> int | None:
    return int(text) if text is not None else None
