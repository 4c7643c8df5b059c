"""Which config field stands behind a symbol of a formula, and how a state is made of its fields.

A form from the table is only used where the config's own values reproduce the symbol exactly; elsewhere the
plain definition of ``formulas`` stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from kvgauge.architecture import LayerGroup, ModelArchitecture
from kvgauge.arithmetic import evaluate, symbol_names
from kvgauge.formulas import Definition, GroupFormula, Number
from kvgauge.layers import Mechanism
from kvgauge.readers.hf.rows import class_defaults
from kvgauge.units import json_number
from kvgauge.values import dataclass

_LAYER_PATTERNS = (
    "block_configs", "layer_types", "layers_block_type", "hybrid_override_pattern", "block_types",
    "attn_type_list", "full_attn_layers", "full_attention_interval", "attn_layer_period",
    "attn_layer_indices", "full_attn_idxs", "hybrid_layer_pattern", "compress_ratios", "no_rope_layers",
    "no_rope_layer_interval", "sliding_window_pattern", "layer_group_size", "mb_per_layer",
    "cross_attention_layers", "attention.recurrent_layers", "attention.indexer.types",
    "attention.shared_kv_layers",
)  # fmt: skip
_LAYER_COUNTS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers", "num_decoder_layers",
    "decoder_layers", "decoder_block_count", "block_count",
)  # fmt: skip
_KEY_VALUE_HEADS = (
    "swa_num_key_value_heads", "swa_num_kv_heads", "num_global_key_value_heads", "global_num_key_value_heads",
    "num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "kv_n_heads", "num_multi_query_heads",
    "num_query_groups", "multi_query_group_num", "multi_query", "block_configs", "num_attention_heads",
    "num_heads", "n_head", "n_heads", "decoder_attention_heads", "attention.head_count_kv",
    "attention.head_count",
)  # fmt: skip
_HEAD_WIDTHS = (
    "swa_head_dim", "global_head_dim", "head_dim", "kv_channels", "attention_head_dim", "d_kv", "hidden_size",
    "n_embd", "d_model", "n_embed", "attention.key_length_swa", "attention.key_length", "embedding_length",
)  # fmt: skip
_KERNELS = (
    "linear_conv_kernel_dim", "short_conv_kernel_size", "conv_kernel", "mamba_d_conv", "mamba_conv_kernel",
    "d_conv", "conv_L_cache", "conv1d_width", "conv_size", "sconv_kernel_size", "conv_kernel_size",
    "l_cache",
)  # fmt: skip
_STATE_SIZES = ("ssm_state_size", "mamba_d_state", "state_size")

#: Symbol -> last parts of the dotted paths that may state it, most specific first.
SYMBOL_FIELDS: Mapping[str, tuple[str, ...]] = {
    "L": (*_LAYER_PATTERNS, *_LAYER_COUNTS),
    "H_kv": _KEY_VALUE_HEADS,
    "D": _HEAD_WIDTHS,
    "D_k": _HEAD_WIDTHS,
    "D_v": ("swa_v_head_dim", "global_v_head_dim", "v_head_dim", "attention.value_length_swa",
            "attention.value_length", *_HEAD_WIDTHS),
    "W": ("sliding_window", "sliding_window_size", "attention_window_size", "window_size",
          "local_window_size", "attention_chunk_size"),
    "m": ("compress_ratios", "compress_rates", "index_kpool", "indexer_compress_ratio"),
    "r": ("kv_lora_rank", "kv_lora_rank_swa"),
    "d_rope": ("qk_rope_head_dim", "rope.dimension_count"),
    "d_rec": ("head_dim", "attention.key_length"),
    "d_qk": ("qk_nope_head_dim",),
    "H_q": ("num_attention_heads", "num_heads", "n_head", "n_heads", "decoder_attention_heads",
            "attention.head_count"),
    "d_idx": ("index_head_dim", "indexer_head_dim", "sparse_index_dim", "indexer.key_length"),
    "H_d_idx": ("indexer_kv_heads",),
    "K": _KERNELS,
    "C": ("conv_dim", "hidden_size", "lru_width", "embedding_length"),
    "H_S": ("num_heads", "num_attention_heads", "mamba_n_heads", "mamba_num_heads", "n_heads"),
    "S": ("lru_width", "hidden_size"),
    "b_S": ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"),
    "H_lv": ("linear_num_value_heads",),
    "H_lk": ("linear_num_key_heads",),
    "D_lv": ("linear_value_head_dim",),
    "D_lk": ("linear_key_head_dim",),
    "H_s": ("linear_attn_config.num_heads", "linear_num_heads", "num_attention_heads",
            "attention.head_count"),
    "D_s": ("linear_attn_config.head_dim", "linear_head_dim", "head_dim", "head_size",
            "attention.key_length"),
    "H_m": ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads"),
    "P_m": ("mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim"),
    "N_m": _STATE_SIZES,
    "G_m": ("n_groups", "mamba_n_groups", "mamba_ngroups", "ssm_n_groups", "ssm.group_count"),
    "d_inner": ("d_inner", "intermediate_size", "ssm.inner_size"),
    "d_model": ("hidden_size", "d_model", "n_embd", "embedding_length"),
    "E": ("mamba_expand", "expand"),
}  # fmt: skip

#: Mechanism -> how its S and C are made of config fields.
STATE_FORMS: Mapping[Mechanism, Mapping[str, str]] = {
    Mechanism.GATED_DELTA_NET: {"S": "H_lv × D_lv × D_lk", "C": "2 × H_lk × D_lk + H_lv × D_lv"},
    Mechanism.KIMI_DELTA: {"S": "H_s × D_s × D_s", "C": "3 × H_s × D_s"},
    Mechanism.LIGHTNING: {"S": "H_s × D_s × D_s"},
    Mechanism.MAMBA2: {"S": "H_m × P_m × N_m", "C": "H_m × P_m + 2 × G_m × N_m"},
    Mechanism.MAMBA1: {"S": "d_inner × N_m", "C": "d_inner"},
    Mechanism.RWKV: {"C": "2 × d_model"},
    Mechanism.INKLING_CONVOLUTIONS: {"C": "2 × H_kv × D + 2 × d_model"},
}

#: The same where the inner width is not stated and follows from another field.
_INNER_FORMS: Mapping[Mechanism, Mapping[str, str]] = {
    Mechanism.MAMBA2: {"S": "E × d_model × N_m", "C": "E × d_model + 2 × G_m × N_m"},
    Mechanism.MAMBA1: {"S": "E × d_model × N_m", "C": "E × d_model"},
}

#: The same in GGUF keys, which state the inner width of every design of this kind.
_GGUF_FORMS: Mapping[Mechanism, Mapping[str, str]] = {
    Mechanism.MAMBA2: {"S": "d_inner × N_m", "C": "d_inner + 2 × G_m × N_m"},
    Mechanism.GATED_DELTA_NET: {"S": "d_inner × N_m", "C": "d_inner + 2 × G_m × N_m"},
    Mechanism.RWKV: {"S": "d_model × D_s"},
}


#: Forms of symbols that no field states; the first that comes to the symbol's value is used.
DERIVED_FORMS: Mapping[str, tuple[str, ...]] = {
    "D": ("d_model / H_q", "d_qk + d_rope"),
    "D_k": ("d_qk + d_rope", "d_model / H_q"),
    "D_v": ("d_model / H_q",),
    "d_nope": ("d_rec - d_rope",),
    "n_ring": ("m", "2 × m"),
    "d_ring": ("2 × d_idx", "4 × d_idx", "2 × (d_nope + d_rope)", "4 × (d_nope + d_rope)"),
}

#: Symbols whose field must hold the very number; others may name a list or a switch that it follows from.
_EXACT = frozenset({"S", "C", "H_q", "H_S", "N_S", "d_rec"})


@dataclass(frozen=True)
class ConfigFields:
    """The fields that a reader used."""

    values: Mapping[str, object]

    @classmethod
    def of(cls, architecture: ModelArchitecture, config: Mapping[str, object]) -> ConfigFields:
        """Collect what was read from a config, class defaults of fields that the file leaves out included."""
        values = dict(architecture.fields)
        defaults = class_defaults(architecture.model_type)
        groups = (*architecture.groups, *architecture.mtp_groups)
        for path in (path for group in groups for path in group.sources):
            name = path.rpartition(".")[2]
            if path not in values and not _holds(config, path) and defaults.get(name) is not None:
                values[path] = defaults[name]
        return cls(values)

    def of_group(self, group: LayerGroup) -> dict[str, object]:
        """Return path -> value for the fields behind a group's shape; nested objects by their members."""
        found: dict[str, object] = {}
        for path in group.sources:
            if path in self.values:
                found[path] = self.values[path]
            found |= {p: v for p, v in self.values.items() if p.startswith(path + ".")}
        return found

    def path_of(self, symbol: str, value: Number | None, group: LayerGroup | None) -> str | None:
        """Return the path that states a symbol: the group's own fields first, an equal number preferred."""
        pool = self.values if group is None or symbol == "L" else self.of_group(group) or self.values
        paths = [p for tail in _tails(symbol) for p in pool if p == tail or p.endswith("." + tail)]
        equal = [p for p in paths if pool[p] == value and not isinstance(pool[p], bool)]
        if not paths:  # nested geometry that the group does not list
            everywhere = (p for t in _tails(symbol) for p in self.values if p == t or p.endswith("." + t))
            paths = [p for p in everywhere if self.values[p] == value and value is not None]
        loose = [p for p in paths if symbol == "L" or not isinstance(pool.get(p), int) or pool[p] is True]
        return next(iter(equal if symbol in _EXACT else equal or loose), None)

    def exact_path(self, symbol: str, value: Number) -> str | None:
        """Return a path that states the symbol with this very number."""
        paths = (p for t in _tails(symbol) for p in self.values if p == t or p.endswith("." + t))
        return next((p for p in paths if self.values[p] == value and self.values[p] is not True), None)

    @property
    def dtype_path(self) -> str | None:
        """The path that states the dtype of the model."""
        return next((p for p in self.values if p.rpartition(".")[2] in ("dtype", "torch_dtype")), None)

    def number(self, symbol: str, group: LayerGroup | None) -> tuple[str, Number] | None:
        """Return (path, value) of a symbol that one field states as a number."""
        pool = (self.of_group(group) if group else None) or self.values
        for tail in _tails(symbol):
            for path, value in pool.items():
                if path != tail and not path.endswith("." + tail):
                    continue
                if isinstance(value, int | float) and not isinstance(value, bool):
                    return path, value
        return None

    def spell_out(self, formula: GroupFormula, group: LayerGroup) -> GroupFormula:
        """Return the formula with S and C made of config fields where the fields' values agree."""
        symbols = dict(formula.symbols)
        definitions = {d.symbol: d for d in formula.definitions}
        for forms in (STATE_FORMS, _INNER_FORMS, _GGUF_FORMS):
            for symbol, text in forms.get(group.mechanism, {}).items():
                values = self._values(text, group)
                if symbol not in symbols or values is None or evaluate(text, values) != symbols[symbol]:
                    continue
                if definitions.get(symbol) is None or "N_S" in definitions[symbol].formula:
                    definitions[symbol] = Definition(symbol, text)
                    symbols |= values
        if not any("N_S" in d.formula for d in definitions.values()):
            symbols = {k: v for k, v in symbols.items() if k not in ("H_S", "N_S")}
        for symbol, derived in DERIVED_FORMS.items():
            if symbol not in symbols or symbol in definitions or self._states(symbol, symbols[symbol], group):
                continue
            for text in derived:
                values = self._derived_values(text, symbols, group)
                if values is not None and evaluate(text, values) == symbols[symbol]:
                    definitions[symbol] = Definition(symbol, text)
                    symbols |= values
                    break
        return replace(formula, symbols=symbols, definitions=tuple(definitions.values()))

    def _states(self, symbol: str, value: Number, group: LayerGroup) -> bool:
        path = self.path_of(symbol, value, group)
        return path is not None and self.values[path] == value

    def _derived_values(
        self, text: str, symbols: Mapping[str, Number], group: LayerGroup
    ) -> dict[str, Number] | None:
        found: dict[str, Number] = {}
        for name in symbol_names(text):
            pair = self.number(name, group) or self.number(name, None)
            value = symbols.get(name, pair[1] if pair else None)
            if value is None:
                return None
            found[name] = json_number(Fraction(value))
        return None if 0 in found.values() else found

    def _values(self, text: str, group: LayerGroup) -> dict[str, Number] | None:
        found = {name: self.number(name, group) for name in symbol_names(text)}
        values = {name: pair[1] for name, pair in found.items() if pair}
        return {k: json_number(Fraction(v)) for k, v in values.items()} if len(values) == len(found) else None


def _holds(config: Mapping[str, object], path: str) -> bool:
    level: object = config
    for part in path.split("."):
        if not isinstance(level, Mapping) or part not in level:
            return False
        level = level[part]
    return level is not None


def _tails(symbol: str) -> tuple[str, ...]:
    return SYMBOL_FIELDS.get(symbol, ())
