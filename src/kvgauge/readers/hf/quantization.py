"""Which KV dtype a checkpoint's quantisation asks for."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.readers.hf.config import ConfigView, short

_ALGORITHMS = {
    "fp8": "fp8_e4m3",
    "fp8_e4m3": "fp8_e4m3",
    "fp8_e5m2": "fp8_e5m2",
    "nvfp4": "nvfp4",
    "int8": "int8",
}


def prescribed_kv_dtype(view: ConfigView, side_file: Mapping[str, object] | None) -> tuple[str | None, str]:
    """Return (canonical dtype, field that says so), or (None, "").

    Read from ``kv_cache_scheme`` (8 or 4 bit float; or a word) and ``kv_cache_quant_algo`` of
    ``quantization_config``, else of ``hf_quant_config.json``.
    """
    for path, block in _blocks(view, side_file):
        for name in ("kv_cache_scheme", "kv_cache_quant_algo"):
            dtype = _dtype_of(block.get(name))
            if dtype is not None:
                return dtype, f"{path}.{name}"
    return None, ""


def modelopt_kv_dtype(view: ConfigView, side_file: Mapping[str, object] | None) -> str | None:
    """Return the KV dtype that a ModelOpt block asks for, canonical, or None.

    vLLM obeys no other scheme unasked (0.33, ``resolve_kv_cache_dtype_string``), and looks into the side file
    only where the config has no ``quantization_config`` at all.
    """
    found = (level.values.get("quantization_config") for level in (*reversed(view.outer), view))
    block = next((b for b in found if isinstance(b, Mapping)), side_file)
    if block is None or not _is_modelopt(block):
        return None
    inner = block.get("quantization")
    for name in ("kv_cache_scheme", "kv_cache_quant_algo"):
        for part in (block, inner):
            dtype = _dtype_of(part.get(name)) if isinstance(part, Mapping) else None
            if dtype is not None:
                return dtype
    return None


def _is_modelopt(block: Mapping[str, object]) -> bool:
    """Whether vLLM takes a block for ModelOpt's: by its method, else by producer and algorithm."""
    method = block.get("quant_method")
    if isinstance(method, str) and method:
        return method.lower().startswith("modelopt")
    producer, inner = block.get("producer"), block.get("quantization")
    named = isinstance(producer, Mapping) and producer.get("name") == "modelopt"
    stated = isinstance(inner, Mapping) and bool(inner.get("quant_algo"))
    return (named and stated) or "modelopt_quant_config" in block


def _blocks(
    view: ConfigView, side_file: Mapping[str, object] | None
) -> list[tuple[str, Mapping[str, object]]]:
    blocks: list[tuple[str, Mapping[str, object]]] = []
    for level in (view, *view.outer):
        block = level.values.get("quantization_config")
        if isinstance(block, Mapping):
            blocks.append((f"{level.path}quantization_config", block))
            inner = block.get("quantization")
            if isinstance(inner, Mapping):
                blocks.append((f"{level.path}quantization_config.quantization", inner))
    if side_file is not None:
        inner = side_file.get("quantization")
        blocks.append(("hf_quant_config.json", inner if isinstance(inner, Mapping) else side_file))
    return blocks


def _dtype_of(value: object) -> str | None:
    if isinstance(value, str):
        return _ALGORITHMS.get(value.lower())
    if isinstance(value, Mapping) and value.get("type") == "float" and not value.get("dynamic"):
        return {8: "fp8_e4m3", 4: "nvfp4"}.get(value.get("num_bits"))  # type: ignore[arg-type]
    return None


def unknown_kv_word(view: ConfigView, side_file: Mapping[str, object] | None) -> str | None:
    """Return a KV dtype that the checkpoint prescribes in a word that is not known, or None."""
    for path, block in _blocks(view, side_file):
        value = block.get("kv_cache_quant_algo")
        if isinstance(value, str) and value.lower() not in (*_ALGORITHMS, "none", ""):
            return f"{path}.kv_cache_quant_algo = {short(value)}"
    return None
