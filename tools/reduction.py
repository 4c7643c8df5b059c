"""Reduce a config to what a size may follow from, and prove that it still reads the same.

What is certainly irrelevant is dropped: token ids, generation defaults, training and run-time switches,
code references, templates, paths and addresses. Everything else stays, the fields of weights too, and
``transformers_version``: a file that its class saved leaves the class's defaults out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from kvgauge.architecture import ModelArchitecture
from kvgauge.readers.hf import read_config
from kvgauge.readers.hf.config import ReadLog
from kvgauge.readers.hf.nesting import language_view
from kvgauge.readers.hf.rows import class_defaults
from kvgauge.sources.compact import compact_names, expand_names

Json = Mapping[str, object]

_KEPT_PRIVATE = frozenset({"_sliding_window_pattern", "_block_types", "_num_mtp_layers", "_layer_order"})

_DROPPED = re.compile(
    r"_.*"
    # tokens and tokenizers
    r"|.*_token_(ids?|index)|(bos|eos|pad|unk|sep|cls|img|im|image|video|audio|text|mask|eod)(_\w+)?_ids?"
    r"|img_id|image_patch_token|tokenizer_?.*|.*_placeholder|chat_template|template(_version)?|(add|faster)_\w*(instruction|video)"
    # generation
    r"|bad_words_ids|\w*suppress_tokens|forced_\w+|\w*_penalty|(encoder_)?no_repeat_ngram_size|num_beams|num_beam_groups"
    r"|num_return_sequences|early_stopping|do_sample|temperature|top_p|typical_p|(max|min)_length|remove_invalid_values"
    r"|output_(attentions|hidden_states|scores|router_logits)|return_dict\w*|lm_gen_config|num_logits_to_keep"
    # labels and tasks
    r"|id2label|label2id|task_specific_params|finetuning_task|problem_type|prefix|summary_\w+|classifier_dropout|class_num"
    # code, versions, where the file came from
    r"|auto_map|transformers\.js_config|torchscript|tf_legacy_loss|use_bfloat16|onnx_safe|pruned_heads"
    r"|\w*(resume|vit|tower)_path|\w*_url|\w*_version_date"
    # training
    r"|\w*initializer_\w+|init_(?!pos_emb)\w+|emb_init_\w+|\w*_init_scale|\w*dropout\w*|\w*_pdrop|\w*layerdrop|drop_path_rate|\w*loss\w*"
    r"|\w*aux_loss\w*|router_\w*coef|gradient_\w+|use_grad_checkpoint|\w*_checkpoint|time_step_(?!rank)\w+|\w*_jitter\w*"
    r"|freeze_\w+|tune_\w+|\w*_lr|mm_tunable_parts|seq_aux|rescale_prenorm_residual"
    # run time
    r"|use_cache|use_flash_attn|flash_\w+|attn_impl\w*|fused?_\w+|fusedLN|bf16|fp16|fp32|masked_softmax_fusion"
    r"|use_mamba_kernels|validate_runner_input|verbose|inference_runner|runner_\w+|long_factor|short_factor"
    r"|bias_dropout_fusion|is_llama_config"
)  # fmt: skip

#: Text that may be somebody's path, address or mail, or prose.
_UNSAFE_TEXT = re.compile(r"[/\\@]|://|^~|\s.*\s.*\s")
_MAX_TEXT = 120
_MAX_LIST = 10_000


class ReductionError(Exception):
    """The reduced config does not read like the full one."""


def reduce_config(config: Json) -> dict[str, object]:
    """Return the config without what no size follows from.

    Raises:
        KvgaugeError: the config can't be read at all.
    """
    _, model_type = language_view(config, ReadLog())
    protected = frozenset(class_defaults(model_type))
    return _reduce_object(config, protected)


def reduce_quantization(side_file: Json) -> dict[str, object]:
    """Return ``hf_quant_config.json``, lists of names compacted; of its producer the name."""
    producer = side_file.get("producer")
    name = producer.get("name") if isinstance(producer, Mapping) else None
    kept: dict[str, object] = {"producer": {"name": name}} if isinstance(name, str) else {}
    return kept | _reduce_quantization(side_file)


def assert_same_reading(full: Json, quantization: Json | None, row: Json) -> ModelArchitecture:
    """Return the architecture that both configs read to.

    Raises:
        ReductionError: they differ, or other class defaults would apply. KvgaugeError: not readable.
    """
    config = row["config"]
    reduced_quantization = row.get("quantization")
    assert isinstance(config, Mapping)  # noqa: S101 - built above
    assert reduced_quantization is None or isinstance(reduced_quantization, Mapping)  # noqa: S101
    before, after = read_config(full, quantization), read_config(config, reduced_quantization)
    if before != after:
        raise ReductionError(f"{row['id']}: the reduced config reads differently")
    defaults = [dict(language_view(c, ReadLog())[0].class_defaults) for c in (full, config)]
    if defaults[0] != defaults[1]:
        raise ReductionError(f"{row['id']}: other class defaults apply to the reduced config")
    return after


def _reduce_object(config: Json, protected: frozenset[str]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in config.items():
        if key == "quantization_config" and isinstance(value, Mapping):
            result[key] = _reduce_quantization(value)
        elif key in protected or key in _KEPT_PRIVATE or not _DROPPED.fullmatch(key):
            kept = _reduce_value(key, value, protected)
            if kept is not _GONE:
                result[key] = kept
    return result


_GONE = object()


def _reduce_value(key: str, value: object, protected: frozenset[str]) -> object:
    if isinstance(value, Mapping):
        return _reduce_object(value, protected)
    if isinstance(value, list):
        entries = [_reduce_value(key, entry, protected) for entry in value]
        return _GONE if len(value) > _MAX_LIST or _GONE in entries else entries
    if isinstance(value, str):
        unsafe = _UNSAFE_TEXT.search(value) and "pattern" not in key
        return _GONE if unsafe or (len(value) > _MAX_TEXT and "pattern" not in key) else value
    if isinstance(value, float) and not math.isfinite(value):
        return _GONE
    return value


_QUANTIZATION_DROPPED = re.compile(
    r"dataset\w*|tokenizer|model\w*path\w*|\w*version|meta|producer|observer\w*|iters|lr|seqlen|nsamples|batch_size"
)


def _reduce_quantization(block: Json) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in block.items():
        if _QUANTIZATION_DROPPED.fullmatch(key):
            continue
        if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
            result[key] = _checked_names(value)
        elif key in ("quantized_layers", "extra_config") and isinstance(value, Mapping):
            result[key] = _group_by_value(value)
        elif isinstance(value, Mapping):
            result[key] = _reduce_quantization(value)
        elif not (isinstance(value, float) and not math.isfinite(value)):
            result[key] = value
    return result


def _checked_names(names: list[str]) -> list[str]:
    plain = set(expand_names(names))
    compact = compact_names(plain)
    if sorted(plain) != sorted(expand_names(compact)):
        raise ReductionError(f"the names of {names[0]} and others do not survive compaction")
    return compact


def _group_by_value(table: Json) -> dict[str, object]:
    """One entry for all layers of one scheme: names compacted."""
    groups: list[tuple[object, list[str]]] = []
    for name, value in table.items():
        for known, names in groups:
            if known == value:
                names.append(name)
                break
        else:
            groups.append((value, [name]))
    return {compact: value for value, names in groups for compact in _checked_names(names)}
