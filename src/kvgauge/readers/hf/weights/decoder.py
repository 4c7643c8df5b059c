"""The facts of each decoder layer that tensor shapes depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from kvgauge.readers.hf.block_configs import block_ffn
from kvgauge.readers.hf.config import ConfigView
from kvgauge.readers.hf.decoder import layer_owners
from kvgauge.readers.hf.mixers.attention import attention_geometry, overlaid, per_layer_table, query_heads
from kvgauge.readers.hf.mixers.latent import has_indexer, is_latent, owns_indexer
from kvgauge.readers.hf.patterns import read_pattern
from kvgauge.readers.hf.rows import ModelTypeRow
from kvgauge.readers.hf.weights.expressions import Value
from kvgauge.readers.hf.weights.sparse import has_experts
from kvgauge.readers.hf.weights.symbols import LayerFacts
from kvgauge.readers.hf.words import KINDS, LayerPattern
from kvgauge.readers.values import MAX_LAYERS, MAX_WIDTH, is_int
from kvgauge.values import dataclass

_ATTENDS = frozenset({"full", "sliding", "chunked"})
_RAW = ("layer_types", "layers_block_type")
_UNIQUE = ("per_layer_config", "block_configs")


@dataclass(frozen=True)
class DecoderLayers:
    """The decoder's layers, one after another.

    Args:
        sparse: there are layers with experts.
        patterned: and layers without, which the config or its class must tell apart.
    """

    view: ConfigView
    row: ModelTypeRow
    pattern: LayerPattern
    sparse: bool
    patterned: bool
    defaults: Mapping[str, object]

    @classmethod
    def of(
        cls, view: ConfigView, row: ModelTypeRow, let: Mapping[str, object], defaults: Mapping[str, object]
    ) -> DecoderLayers:
        """Return the layers that a config describes."""
        sparse, patterned = (bool(let.get(name, 0)) for name in ("sparse", "patterned"))
        if row.reader == "recurrent":
            count = view.count("num_hidden_layers", high=MAX_LAYERS)
            return cls(view, row, LayerPattern(("state",) * count), sparse, patterned, defaults)
        _check_pattern(view, row)
        return cls(view, row, read_pattern(view, row), sparse, patterned, defaults)

    @property
    def count(self) -> int:
        """Number of layers, without multi-token prediction."""
        return len(self.pattern.words)

    def __iter__(self) -> Iterator[tuple[object, LayerFacts]]:
        """Yield what tells each layer from the others, and its facts."""
        owners = layer_owners(self.view, self.pattern.words)
        lists = _lists(self.view, self.count)
        unique = any(name in self.view.values for name in _UNIQUE)
        for index, word in enumerate(self.pattern.words):
            facts = self.facts(index, word, shared=owners[index] is not None)
            plain = tuple(facts[name] for name in ("raw", "moe", "indexed", "shared", "first"))
            own = tuple(str(values[index]) for values in lists)
            yield (word, plain, own, index if unique else 0), facts

    def predicting(self) -> LayerFacts:
        """Return the facts of a multi-token-prediction layer: full attention, experts if there are any."""
        indexed = has_indexer(self.view) and is_latent(self.view)
        facts = self.facts(self.count - 1, "full")
        return {**facts, "moe": int(self.sparse), "indexed": int(indexed), "raw": ""}

    def facts(self, index: int, word: str, *, shared: bool = False) -> LayerFacts:
        """Return the facts of one layer."""
        parts = word.split("+")
        kinds: dict[str, Value] = {kind: int(kind in parts) for kind in KINDS if "+" not in kind}
        return {
            **kinds,
            "layer": index,
            "first": int(index == 0),
            "count": self.count,
            "attends": int(any(part in _ATTENDS for part in parts)),
            "raw": _raw_word(self.view, index),
            "moe": int(self.sparse and self._has_experts(index)),
            "indexed": int(_indexed(self.view, index, self.count, word)),
            "shared": int(shared),
            "block_ffn": lambda: block_ffn(self.view, index),
            **self._own_fields(index),
            **self._geometry(index, parts[0]),
        }

    def _own_fields(self, index: int) -> dict[str, Value]:
        """Return the sizes that ``per_layer_config`` states for one layer."""
        table = per_layer_table(self.view, self.count)
        own = {} if table is None else overlaid(self.view, index, self.count).values
        return {
            name: value
            for name, value in own.items()
            if is_int(value) and 0 <= value <= MAX_WIDTH and value is not self.view.values.get(name)
        }

    def _has_experts(self, index: int) -> bool:
        return has_experts(self.view, index, self.count, self.defaults, patterned=self.patterned)

    def _geometry(self, index: int, word: str) -> Mapping[str, Callable[[], Value]]:
        view = overlaid(self.view, index, self.count)

        @lru_cache(maxsize=1)
        def key_value() -> tuple[int, int, int]:
            return attention_geometry(view, self.row, index, self.count, word)

        def queries() -> int:
            name = "swa_num_attention_heads"
            swa = view.optional_count(name) if word == "sliding" else None
            heads = swa or query_heads(view, index)
            if heads is None:
                raise view.missing("num_attention_heads", "gives the shape of the query projection")
            return heads

        return {
            "q_heads": queries,
            "kv_heads": lambda: key_value()[0],
            "k_width": lambda: key_value()[1],
            "v_width": lambda: key_value()[2],
        }


def _check_pattern(view: ConfigView, row: ModelTypeRow) -> None:
    """Refuse a file that lost the list of a design whose layers are not alike."""
    for need in row.needs:
        names = [name.rstrip("?!") for name in need.split("|")]
        if "layer_types" in names and not any(view.mentions(name) for name in names):
            raise view.missing("layer_types", "says which layers keep a state")


def _lists(view: ConfigView, count: int) -> list[Sequence[object]]:
    return [v for v in view.values.values() if isinstance(v, list | tuple) and len(v) >= count]


def _raw_word(view: ConfigView, index: int) -> str:
    for name in _RAW:
        words = view.items(name)
        if words is not None and index < len(words):
            return str(words[index])[:40]
    letters = view.text("hybrid_override_pattern") or ""
    letters = letters.split("|")[0] if "/" not in letters else letters.replace("/", "")
    return {"*": "attention", "M": "mamba", "E": "moe", "-": "mlp"}.get(letters[index : index + 1], "")


def _indexed(view: ConfigView, index: int, count: int, word: str) -> bool:
    if word != "full" or not has_indexer(view) or not is_latent(view):
        return False
    return owns_indexer(view, index, count)
