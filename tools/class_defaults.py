"""Rebuild ``src/kvgauge/data/class_defaults.jsonl`` from an installed Transformers.

A sub-config that Transformers saves leaves out whatever equals its class default, so the defaults are
facts a reader needs. Only scalars that shape the cache are kept, plus a few that every full
file spells out (they tell a full file from an abbreviated one). Defaults that a class derives
from other fields are not defaults and are left out.

Run: ``pip install transformers==5.24.0 && python tools/class_defaults.py``. The result is committed;
neither the package nor its build needs Transformers.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

DATA = Path(__file__).parents[1] / "src/kvgauge/data"
TARGET = DATA / "class_defaults.jsonl"
WEIGHTS_TARGET = DATA / "weight_defaults.jsonl"

#: Fields that no tensor's shape follows from.
NOT_WEIGHTS = re.compile(
    r"(token_id|dropout|initializer|_eps$|epsilon|^rope_|_std$|_loss|pad_idx|freeze|layerdrop|pdrop|temperature|capping|"
    r"use_cache|^output_(attentions|hidden|router)|^return_|chunk_size_feed|z_loss|aux_|jitter|^mask_|mask_time|_prob$)",
    re.IGNORECASE,
)

SHAPE_FIELD = re.compile(
    r"(^|_)(layers?|heads?|n_embd|n_head|n_layer|d_model|d_kv|hidden_size|head_dim|window|rank|kernel|conv|ssm|mamba|"
    r"chunk_size|expand|state|lru|compress|index|indexer|interval|period|pattern|freq|offset|groups?|multi_query|"
    r"max_position|n_positions|positions|cla|use_cla|nextn|mtp|kv|v_head_dim|l_cache|sliding|dim|dims|num_decoder_layers)(_|$)",
    re.IGNORECASE,
)
NOT_SHAPE = re.compile(
    r"(token_id|dropout|_act|init|bias|eps|norm|rope_theta|pad|loss|vision|image|audio|video|chunk_size_feed|"
    r"router|expert|moe|mlp|mask|label|freeze|codebook|resampl|upsampl|lambda|decay|layerdrop)",
    re.IGNORECASE,
)
TELLTALES = (
    "initializer_range", "hidden_act", "hidden_activation", "activation_function", "rms_norm_eps",
    "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "init_std", "attention_dropout", "attention_bias",
    "mlp_bias", "intermediate_size", "vocab_size", "tie_word_embeddings", "activation_dropout", "dropout",
    "layerdrop", "resid_pdrop", "embd_pdrop", "attn_pdrop", "no_bias", "mlp_ratio", "expansion_ratio",
    "rope_theta", "ffn_dim",
)  # fmt: skip


def declared_defaults(config_class: type) -> dict[str, object]:
    """Return the scalar defaults that the class itself declares."""
    defaults: dict[str, object] = {}
    for field in dataclasses.fields(config_class):  # type: ignore[arg-type]
        value = field.default
        if value is dataclasses.MISSING or value is None or not isinstance(value, bool | int | float | str):
            continue
        if field.name in TELLTALES or (SHAPE_FIELD.search(field.name) and not NOT_SHAPE.search(field.name)):
            defaults[field.name] = value
    return defaults


def declared_weight_defaults(config_class: type) -> dict[str, object]:
    """Return the scalar defaults that tensor shapes may follow from."""
    defaults: dict[str, object] = {}
    for field in dataclasses.fields(config_class):  # type: ignore[arg-type]
        value = field.default
        if isinstance(value, str) and not field.name.endswith(
            ("_type", "_act", "_activation", "activation_function")
        ):
            continue
        if isinstance(value, bool | int | float | str) and not NOT_WEIGHTS.search(field.name):
            defaults[field.name] = value
    return defaults


def text_type(config_class: type) -> str | None:
    """Return the model type of the class's text part, where it has one."""
    subs = getattr(config_class, "sub_configs", {}) or {}
    for name in ("text_config", "llm_config", "thinker_config", "language_config", "decoder"):
        sub = subs.get(name)
        model_type = getattr(sub, "model_type", "") if sub is not None else ""
        if model_type:
            return model_type
    return None


def main() -> None:
    """Write the table, one model type a line."""
    import transformers  # noqa: PLC0415
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: PLC0415

    rows: dict[str, dict[str, object]] = {}
    weights: dict[str, dict[str, object]] = {}

    def add(config_class: type) -> None:
        model_type = getattr(config_class, "model_type", "")
        if not model_type or model_type in rows or not dataclasses.is_dataclass(config_class):
            return
        row = declared_defaults(config_class)
        weights[model_type] = declared_weight_defaults(config_class)
        text = text_type(config_class)
        if text:
            row["_text"] = text
        rows[model_type] = row
        for sub in (getattr(config_class, "sub_configs", {}) or {}).values():
            if isinstance(sub, type):
                add(sub)

    for key in list(CONFIG_MAPPING.keys()):
        try:
            add(CONFIG_MAPPING[key])
        except Exception as error:
            print(f"skipped {key}: {error}")
    kept = [
        json.dumps({name: weights[name]}, separators=(",", ":")) for name in sorted(weights) if weights[name]
    ]
    WEIGHTS_TARGET.write_text("\n".join(kept) + "\n", encoding="utf-8")
    lines = [json.dumps({name: rows[name]}, separators=(",", ":")) for name in sorted(rows) if rows[name]]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(
        f"{len(lines)} model types of transformers {transformers.__version__}, {TARGET.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main()
