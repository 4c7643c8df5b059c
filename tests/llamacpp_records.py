"""Recorded contexts of llama.cpp v0.5.0 in the words of its flags."""

from __future__ import annotations

import json

from support import SHARED

ORACLE = SHARED / "data" / "oracle"
_FLASH = {1: "on", 0: "off", -1: "auto"}
#: Part of a record -> name of the sub-cache.
PARTS = {
    None: "kv", "non-SWA": "kv", "main": "kv", "SWA": "kv.swa", "indexer": "kv.indexer",
    "DSV4 CSA compressed": "kv.csa", "DSV4 HCA compressed": "kv.hca",
    "DSV4 lightning-indexer": "kv.lightning_indexer",
}  # fmt: skip


def metadata_of(architecture: str, keys: dict) -> dict:
    """Return GGUF metadata of keys without their prefix."""
    return {
        "general.architecture": architecture,
        **{f"{architecture}.{key}": value for key, value in keys.items()},
    }


def flags_of(row: list) -> str:
    """Return the flags of a golden run: see ``test_llamacpp_plans``."""
    context, batch, micro, sequences, k, v, flash, full, unified, outputs, snapshots, offload, gpus = row
    words = (
        f"-c {context} -b {batch} -ub {micro} -np {sequences} -ctk {k} -ctv {v} -fa {_FLASH[flash]} "
        f"--n-outputs-max {outputs} --n-rs-seq {snapshots}"
    )
    more = {"--swa-full": full, "--kv-unified": unified, "-nkvo": not offload, "-dev none": not gpus}
    return " ".join([words, *(flag for flag, is_set in more.items() if is_set)])


def row_of(job: dict, gpus: int) -> list:
    """Return the settings of a record in the order of a golden run."""
    names = ("n_ctx", "n_batch", "n_ubatch", "n_seq_max", "type_k", "type_v", "fa", "swa_full", "kv_unified")
    row = [job[name] for name in names]
    return [*row, job.get("n_outputs_max", 0), job.get("n_rs_seq", 0), job.get("offload_kqv", 1), gpus]


def lines(name: str) -> list[dict]:
    """Return the records of a file."""
    return [json.loads(line) for line in (ORACLE / name).read_text().splitlines()]


def sub_caches(result: dict) -> dict[str, float]:
    """Return the MiB of every sub-cache that a record lists."""
    found: dict[str, float] = {}
    for part in result.get("kv", []):
        name = PARTS[part["part"]]
        for word, size in (("k", part["K_MiB"]), ("v", part["V_MiB"])):
            found[f"{name}.{word}"] = found.get(f"{name}.{word}", 0) + size
    for part in result.get("recurrent", []):
        found["recurrent.r"] = found.get("recurrent.r", 0) + part["R_MiB"]
        found["recurrent.s"] = found.get("recurrent.s", 0) + part["S_MiB"]
    for part in result.get("dsv4_state", []):
        found["dsv4.state"] = found.get("dsv4.state", 0) + part["MiB"]
    return {name: size for name, size in found.items() if size}
