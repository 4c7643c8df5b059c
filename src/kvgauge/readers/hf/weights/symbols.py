"""What a name in the tensor tables stands for: the layer at hand, an entry of ``let``, a config field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite

from kvgauge.errors import InvalidFieldError
from kvgauge.readers.hf.config import ConfigView, short
from kvgauge.readers.hf.weights.expressions import Value, evaluate
from kvgauge.readers.values import MAX_LAYERS, MAX_WIDTH

LayerFacts = Mapping[str, Value | Callable[[], Value]]

#: What a full file states: where it lacks one it is lost, and the class's default is another model's.
MAIN_SIZES = frozenset(
    {
        "vocab_size", "hidden_size", "d_model", "n_embd", "num_attention_heads", "num_hidden_layers",
        "num_layers", "encoder_layers", "decoder_layers", "hidden_size_per_layer_input",
        "intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim",
        "moe_intermediate_size", "shared_intermediate_size", "num_experts", "num_local_experts",
        "n_routed_experts", "moe_num_experts",
    }
)  # fmt: skip

#: Facts of a layer that stand for fields of the config, for explanations.
_STANDS_FOR = {
    "q_heads": ("num_attention_heads",),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "num_attention_heads"),
    "k_width": ("head_dim", "hidden_size"),
    "v_width": ("v_head_dim", "head_dim", "hidden_size"),
}


class Symbols:
    """Looks names up, in this order: facts of the layer, ``let``, the config, class defaults."""

    def __init__(
        self,
        view: ConfigView,
        let: Mapping[str, object],
        layer: LayerFacts,
        defaults: Mapping[str, object],
        top: ConfigView | None = None,
        implied: dict[str, object] | None = None,
    ) -> None:
        self.view = view
        self.top = top
        self.implied = {} if implied is None else implied
        self.let = let
        self.layer = layer
        self.defaults = defaults
        self.pending: list[str] = []
        self.known: dict[str, Value] = {}
        self.used: dict[str, object] = {}

    def value(self, name: str) -> Value:
        """Return the value of a symbol.

        Raises:
            MissingFieldError: neither the config nor a default has it. InvalidFieldError: it is no number.
        """
        if name in self.known and name not in self.pending:
            return self.known[name]
        if name in self.layer:
            fact = self.layer[name]
            found = fact() if callable(fact) else fact
            self._note_fact(name)
        elif name in self.let and name not in self.pending:
            found = self._let(name)
        else:
            return self._field(name)
        self.known[name] = found
        return found

    def evaluate(self, text: str) -> Value:
        """Return the value of an expression."""
        return evaluate(text, self.value)

    def _let(self, name: str) -> Value:
        text = self.let[name]
        if not isinstance(text, str):
            return text  # type: ignore[return-value]
        self.pending.append(name)
        try:
            return evaluate(text, self.value)
        finally:
            self.pending.pop()

    def _field(self, name: str) -> Value:
        if name.startswith("num__"):
            return self._length(name.removeprefix("num__"))
        if name.startswith(("item0__", "item1__")):
            return self._item(name)
        view: ConfigView | None = self.view
        *path, leaf = name.split("__")
        if path[:1] == ["top"]:  # a composite says how its parts are joined outside of them
            view, path = self.top, path[1:]
        for step in path:
            view = view.section(step) if view is not None else None
        if view is None:
            raise self.view.missing(name.replace("__", "."), "gives the shape of a tensor")
        found = view.find(leaf)
        value = found[1] if found is not None else None
        if value is None and view is self.view and not view.mentions(leaf):
            value = self.defaults.get(leaf)
            if value is not None and leaf in MAIN_SIZES:
                self.implied[view.path + leaf] = value
        if value is None:
            raise view.missing(leaf, "gives the shape of a tensor")
        self.used[found[0] if found is not None else view.path + leaf] = value
        return self._scalar(value, view.path + leaf)

    def _note_fact(self, name: str) -> None:
        """Note the field that a fact of the layer stands for: the first of its names that the file has."""
        found = next((f for field in _STANDS_FOR.get(name, ()) if (f := self.view.find(field))), None)
        if found is not None:
            self.used[found[0]] = found[1]

    def _length(self, name: str) -> int:
        top = name.startswith("top__") and self.top is not None
        view = self.top if top and self.top is not None else self.view
        entries = view.values.get(name.removeprefix("top__"))
        if not isinstance(entries, list | tuple) or len(entries) > MAX_LAYERS:
            raise view.missing(name.removeprefix("top__"), "gives the number of tensors")
        return len(entries)

    def _item(self, name: str) -> Value:
        """Return an entry of a list whose entries are kinds of experts, not layers: ``item1__field``."""
        which, _, field = name.partition("__")
        entries = self.view.items(field)
        index = int(which.removeprefix("item"))
        if entries is None or index >= len(entries):
            raise self.view.missing(f"{field}[{index}]", "gives the shape of a tensor")
        return self._scalar(entries[index], f"{self.view.path}{field}[{index}]")

    def _scalar(self, value: object, where: str) -> Value:
        if isinstance(value, list | tuple):
            index = self.layer.get("layer", 0)
            if not isinstance(index, int) or index >= len(value):
                raise InvalidFieldError(f"{where} has no entry for layer {index}", field=where)
            value = value[index]
        if isinstance(value, bool | str):
            return int(value) if isinstance(value, bool) else value
        if isinstance(value, int | float) and isfinite(value) and 0 <= value <= MAX_WIDTH:
            return value
        raise InvalidFieldError(f"{where} must be a number, not {short(value)}", field=where)
