"""Typed, bounded access to the words of a config, with aliases, nesting and class defaults.

Every value that shapes the cache passes through here: a wrong type, an absurd number or two aliases
that contradict each other become one clear error that names the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from kvgauge.errors import InvalidFieldError, MissingFieldError
from kvgauge.readers.values import MAX_HEADS, MAX_LAYERS, MAX_WIDTH, MAX_WINDOW, as_count, is_int, short
from kvgauge.values import dataclass

#: Spellings of one fact, the first present and not null wins.
ALIASES: dict[str, tuple[str, ...]] = {
    "num_hidden_layers": (
        "num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers", "decoder_layers",
        "num_decoder_layers",
    ),
    "num_attention_heads": (
        "num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads", "attention_heads",
        "encoder_attention_heads", "num_query_heads",
    ),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "dim", "model_dim", "embed_dim", "n_embed"),
    "head_dim": ("head_dim", "attention_head_dim", "kv_channels", "attn_head_dim", "d_kv", "head_size"),
    "sliding_window": (
        "sliding_window", "sliding_window_size", "attention_window_size", "window_size", "local_window_size",
    ),
    "max_position_embeddings": (
        "max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length",
        "model_max_length", "max_target_positions", "n_ctx", "max_seq_length", "max_context_length",
        "context_length",
    ),
    "num_nextn_predict_layers": (
        "num_nextn_predict_layers", "mtp_num_hidden_layers", "_num_mtp_layers", "num_mtp_layers",
    ),
}  # fmt: skip


#: Facts of the whole model that composite configs state outside the language model's own level.
_OUTER_FACTS = frozenset(
    {
        "dtype", "torch_dtype", "max_position_embeddings", "num_nextn_predict_layers", "is_encoder_decoder",
        "cross_attn_every_n_layers",
    }
)  # fmt: skip


@dataclass
class ReadLog:
    """What was read, for explanations: dotted path -> value. Local to one reading."""

    used: dict[str, object] = field(default_factory=dict)
    defaulted: dict[str, object] = field(default_factory=dict)
    checked: dict[tuple[int, int, int], tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class ConfigView:
    """One level of a config, with its parents behind it and its class defaults last.

    Args:
        values: the JSON object of this level.
        path: dotted prefix of this level, empty at the top.
        outer: levels outside this one, nearest first; asked for what holds for the whole model.
        class_defaults: what the model class uses for an omitted field; only consulted where the file
            is an abbreviated one (see ``readers.hf.defaults``).
    """

    values: Mapping[str, object]
    log: ReadLog
    path: str = ""
    outer: tuple[ConfigView, ...] = ()
    class_defaults: Mapping[str, object] = field(default_factory=dict)

    # -- lookup ---------------------------------------------------------------------------------

    def find(self, name: str) -> tuple[str, object] | None:
        """Return (dotted path, value) of the first spelling that is present and not null.

        Raises:
            InvalidFieldError: two spellings at one level contradict each other.
        """
        spellings = ALIASES.get(name, (name,))
        found = None
        for view in self._levels(name):
            found = view._find_here(spellings)
            if found is not None:
                break
        if found is None:
            return self._find_default(spellings)
        self.log.used[found[0]] = found[1]
        return found

    def _levels(self, name: str) -> tuple[ConfigView, ...]:
        """Return the levels that may answer: shapes are this level's own, other parts have theirs outside."""
        return (self, *self.outer) if name in _OUTER_FACTS else (self,)

    def _find_here(self, spellings: Sequence[str]) -> tuple[str, object] | None:
        present = [(s, self.values[s]) for s in spellings if self.values.get(s) is not None]
        if not present:
            return None
        first_name, first = present[0]
        for other_name, other in present[1:]:
            if is_int(first) and is_int(other) and first != other and other_name not in _LOOSE_ALIASES:
                raise InvalidFieldError(
                    f"{self.path}{first_name} is {first} and {other_name} is {other}, but they are one fact",
                    hint=f"correct one of them, or --override {other_name}=null",
                    field=self.path + other_name,
                )
        return self.path + first_name, first

    def _find_default(self, spellings: Sequence[str]) -> tuple[str, object] | None:
        if any(name in self.values for name in spellings):
            return None  # null says none, it does not say the default
        for name in spellings:
            value = self.class_defaults.get(name)
            if value is not None:
                self.log.defaulted[self.path + name] = value
                return self.path + name, value
        return None

    def has(self, name: str) -> bool:
        """Whether any spelling of ``name`` is present and not null, here or outside."""
        spellings = ALIASES.get(name, (name,))
        return any(view._find_here(spellings) is not None for view in self._levels(name))

    def mentions(self, name: str) -> bool:
        """Whether this level holds the key at all, null included."""
        return any(spelling in self.values for spelling in ALIASES.get(name, (name,)))

    # -- typed access ---------------------------------------------------------------------------

    def count(self, name: str, *, low: int = 1, high: int = MAX_WIDTH, because: str = "") -> int:
        """Return a required whole number.

        Raises:
            MissingFieldError: absent. InvalidFieldError: wrong type or out of range.
        """
        value = self.optional_count(name, low=low, high=high)
        if value is None:
            raise self.missing(name, because)
        return value

    def optional_count(self, name: str, *, low: int = 1, high: int = MAX_WIDTH) -> int | None:
        """Return a whole number, or None where it is absent or null."""
        found = self.find(name)
        return None if found is None else as_count(found[1], found[0], low=low, high=high)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a truth value."""
        found = self.find(name)
        if found is None:
            return default
        if isinstance(found[1], bool) or found[1] in (0, 1):
            return bool(found[1])
        raise InvalidFieldError(f"{found[0]} must be true or false, not {short(found[1])}", field=found[0])

    def text(self, name: str) -> str | None:
        """Return a string, or None."""
        found = self.find(name)
        if found is None:
            return None
        if not isinstance(found[1], str):
            raise InvalidFieldError(f"{found[0]} must be text, not {short(found[1])}", field=found[0])
        return found[1]

    def items(self, name: str) -> Sequence[object] | None:
        """Return a list, or None. Lists of more than 10,000 entries are refused."""
        found = self.find(name)
        if found is None:
            return None
        if not isinstance(found[1], list | tuple):
            raise InvalidFieldError(f"{found[0]} must be a list, not {short(found[1])}", field=found[0])
        if len(found[1]) > MAX_LAYERS:
            raise InvalidFieldError(f"{found[0]} has {len(found[1])} entries", field=found[0])
        return found[1]

    def counts(self, name: str, *, low: int = 0, high: int = MAX_WIDTH) -> tuple[int, ...] | None:
        """Return a list of whole numbers, or None; each list is checked once, however many layers ask."""
        entries = self.items(name)
        return None if entries is None else self.checked_counts(entries, self.path + name, low=low, high=high)

    def checked_counts(
        self, entries: Sequence[object], where: str, *, low: int = 0, high: int = MAX_WIDTH
    ) -> tuple[int, ...]:
        """Return a list as whole numbers, checked once."""
        if len(entries) > MAX_LAYERS:
            raise InvalidFieldError(f"{where} has {len(entries)} entries", field=where)
        key = (id(entries), low, high)
        if key not in self.log.checked:
            counts = (as_count(v, f"{where}[{i}]", low=low, high=high) for i, v in enumerate(entries))
            self.log.checked[key] = tuple(counts)
        return self.log.checked[key]

    def section(self, name: str) -> ConfigView | None:
        """Return a nested object as a view of its own (no fallback to this level), or None."""
        found = self.find(name)
        if found is None:
            return None
        if not isinstance(found[1], Mapping):
            raise InvalidFieldError(f"{found[0]} must be an object, not {short(found[1])}", field=found[0])
        self.log.used.pop(found[0], None)
        return ConfigView(found[1], self.log, found[0] + ".")

    def missing(self, name: str, because: str = "") -> MissingFieldError:
        """Return the error for an absent field (to raise)."""
        where = f"{self.path}{name}"
        reason = f", which {because}" if because else ""
        return MissingFieldError(
            f"the config has no {where}{reason}",
            hint=f"add it to the file or pass --override {where}=VALUE",
            field=where,
        )

    def sources(self, *names: str) -> tuple[str, ...]:
        """Return the dotted paths that ``names`` were read from, for explanations."""
        paths: list[str] = []
        for name in names:
            spellings = ALIASES.get(name, (name,))
            for view in self._levels(name):
                found = view._find_here(spellings)
                if found is not None:
                    paths.append(found[0])
                    break
            else:
                if any(self.path + s in self.log.defaulted for s in spellings):
                    paths.append(self.path + name)
        return tuple(paths)


# Spellings that some files use beside the main one for something else.
_LOOSE_ALIASES = frozenset(
    {
        "encoder_attention_heads", "decoder_layers", "num_decoder_layers", "num_heads", "head_size",
        "d_kv", "embed_dim", "window_size", "num_layers",
        "max_sequence_length", "seq_length", "model_max_length", "max_target_positions", "n_ctx",
        "max_seq_len", "max_seq_length", "context_length", "n_positions", "max_context_length", "dim",
        "attention_head_dim", "_num_mtp_layers",
    }
)  # fmt: skip


__all__ = [
    "MAX_HEADS",
    "MAX_LAYERS",
    "MAX_WIDTH",
    "MAX_WINDOW",
    "ConfigView",
    "ReadLog",
    "as_count",
    "is_int",
    "short",
]
