"""A scheme as ordered rules, and the formats that its rules give to tensor families.

The first rule that takes a family in a layer decides; what no rule takes stays in the model dtype. A family
whose layers fare differently is split.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from kvgauge.architecture import Note
from kvgauge.readers.hf.schemes.names import NO_LAYER, NameSet, module_of
from kvgauge.stored_weights import StoredFamily
from kvgauge.weight_formats import WeightFormat, plain
from kvgauge.weights import Part, TensorFamily

#: What a rule gives: a format, one that depends on the tensor, or None for the model dtype.
Given = WeightFormat | Callable[[TensorFamily], WeightFormat] | None


class Reach(NamedTuple):
    """Which linear layers a rule takes beside those of the decoder's blocks; ``fragile``: see the table."""

    head: bool = False
    router: bool = False
    towers: bool = False
    mtp: bool = False
    embedding: bool = False
    fragile: bool = False

    def takes(self, family: TensorFamily) -> bool:
        """Whether a family is of linear layers within reach."""
        if is_embedding(family):
            return self.embedding
        if not is_linear(family):
            return False
        if (family.part is Part.MTP and not self.mtp) or (leaf(family) in _FRAGILE and not self.fragile):
            return False
        if is_head(family):
            return self.head
        if is_router(family):
            return self.router
        return self.towers or family.part not in _TOWERS


EVERYTHING = Reach(head=True, router=True, towers=True, mtp=True, fragile=True)
_TOWERS = frozenset({Part.VISION, Part.AUDIO, Part.PROJECTOR})
_NOT_LINEAR = re.compile(
    r"norm\d*$|^norm|layrnorm|^ln_|conv\d*d?$|^embed|embed(ding)?s?$|^w[tp]e$|pos_emb|position|rotary|rel_pos"
)
_EMBEDDINGS = frozenset(
    {"embed_tokens", "embed_tokens_per_layer", "embeddings", "wte", "word_embeddings", "embed", "embedding"}
)
#: Small layers that engines build without any quantisation (vLLM 0.33: DSA's weights of index heads,
#: Kimi-K3's way into and out of latent experts, its weights of residuals): published checkpoints keep them.
_FRAGILE = frozenset(
    {
        "weights_proj", "routed_expert_down_proj", "routed_expert_up_proj", "self_attention_res_proj",
        "mlp_res_proj", "output_attn_res_proj",
    }
)  # fmt: skip
_MTP_INPUTS = frozenset({"eh_proj", "fc", "input_proj"})


def leaf(family: TensorFamily) -> str:
    """Return the last part of the name of a family's module.

    >>> leaf(TensorFamily("model.layers.{layer}.mlp.up_proj.weight", (2, 2), Part.MLP))
    'up_proj'
    """
    return module_of(family.name).rpartition(".")[2]


def is_linear(family: TensorFamily) -> bool:
    """Whether a family is of matrices of linear layers: no norms, biases, embeddings, convolutions."""
    if len(family.shape) != 2 or family.name.endswith("bias"):
        return False
    routed = family.stacked or "{expert}" in family.name
    if not (family.name.endswith(".weight") or routed) or family.part in (Part.NORM, Part.EMBEDDING):
        return False
    return not _NOT_LINEAR.search(leaf(family))


def is_head(family: TensorFamily) -> bool:
    """Whether a family is an output head, a prediction module's included."""
    return family.part is Part.LM_HEAD or (family.part is Part.MTP and leaf(family) in ("lm_head", "head"))


def is_router(family: TensorFamily) -> bool:
    """Whether a family chooses experts."""
    return family.part is Part.ROUTER or leaf(family) in ("gate", "router", "shared_expert_gate")


def is_embedding(family: TensorFamily) -> bool:
    """Whether a family is a look-up table."""
    return len(family.shape) == 2 and leaf(family) in _EMBEDDINGS


def is_mtp_input(family: TensorFamily) -> bool:
    """Whether a family joins the two inputs of a prediction module, which quantisers leave alone."""
    return family.part is Part.MTP and leaf(family) in _MTP_INPUTS


class Rule(NamedTuple):
    """Gives a format to the families that it takes.

    Args:
        names: modules that it takes; None for all within reach.
        takes: which families.
    """

    given: Given
    names: NameSet | None = None
    takes: Callable[[TensorFamily], bool] = EVERYTHING.takes

    def layers_of(self, family: TensorFamily, layers: frozenset[int]) -> frozenset[int]:
        """Return those of ``layers`` that the rule takes."""
        if not layers or not self.takes(family):
            return frozenset()
        return layers if self.names is None else self.names.layers_of(family, layers)


def any_family(family: TensorFamily) -> bool:
    """Take everything: for lists of what to leave alone."""
    return True


def labelled(*words: str) -> str:
    """Return words as a scheme's label.

    >>> labelled("gptq", "int4", "g128")
    'gptq int4 g128'
    """
    return " ".join(word for word in words if word)


class Scheme(NamedTuple):
    """What a checkpoint is quantised with.

    Args:
        label: in a word: ``gptq int4 g128``.
        keeps_stacks: experts stay slices of one tensor, instead of a module each.
    """

    label: str
    rules: tuple[Rule, ...] = ()
    keeps_stacks: bool = False
    notes: tuple[Note, ...] = ()

    def store(self, families: Iterable[TensorFamily], model_dtype: str) -> tuple[StoredFamily, ...]:
        """Return the families in the formats that the rules give."""
        return tuple(
            stored
            for family in families
            for single in (family,) * self.keeps_stacks or modules_of(family)
            for stored in self._stored(single, plain(model_dtype))
        )

    def _stored(self, family: TensorFamily, untouched: WeightFormat) -> Iterator[StoredFamily]:
        left = frozenset(family.layers or (NO_LAYER,))
        given: dict[WeightFormat, set[int]] = {}
        for rule in self.rules:
            taken = rule.layers_of(family, left)
            if taken:
                given.setdefault(_format(rule.given, family, untouched), set()).update(taken)
                left -= taken
        if left:
            given.setdefault(untouched, set()).update(left)
        for chosen, layers in given.items():
            part = replace(family, layers=tuple(sorted(layers))) if family.layers else family
            yield StoredFamily(part, chosen)


def _format(given: Given, family: TensorFamily, untouched: WeightFormat) -> WeightFormat:
    if given is None:
        return untouched
    return given if isinstance(given, WeightFormat) else given(family)


def modules_of(family: TensorFamily) -> tuple[TensorFamily, ...]:
    """Return a stack of experts as the modules that quantisers make of it, gate and up apart.

    >>> [f.name for f in modules_of(TensorFamily("experts.gate_up_proj", (8, 4), Part.EXPERTS, num_experts=2,
    ...                                          stacked=True))]
    ['experts.{expert}.gate_proj.weight', 'experts.{expert}.up_proj.weight']
    """
    if not family.stacked or len(family.shape) != 2 or not family.name.endswith("_proj"):
        return (family,)
    stem, _, name = family.name.rpartition(".")
    names: tuple[str, ...] = (name,)
    shape = family.shape
    if name == "gate_up_proj" and shape[0] % 2 == 0:
        names, shape = ("gate_proj", "up_proj"), (shape[0] // 2, shape[1])
    return tuple(
        replace(family, name=f"{stem}.{{expert}}.{one}.weight", shape=shape, stacked=False) for one in names
    )
