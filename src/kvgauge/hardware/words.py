"""Names of accelerators as sets of words: order, case, vendor and marketing words don't matter.

``NVIDIA H100 80GB HBM3``, ``h100-80g-hbm3`` and ``H100 HBM3 80 GB`` are the same words.
"""

from __future__ import annotations

import re
from typing import NamedTuple

#: Longer texts are no names.
MAX_NAME = 160

#: Words that name a maker. ``quadro`` also tells cards apart and is kept.
VENDORS = {
    "nvidia": "NVIDIA", "geforce": "NVIDIA", "tesla": "NVIDIA", "quadro": "NVIDIA", "rtx": "NVIDIA",
    "gtx": "NVIDIA", "amd": "AMD", "ati": "AMD", "radeon": "AMD", "instinct": "AMD", "rx": "AMD",
    "intel": "Intel", "apple": "Apple", "google": "Google", "aws": "AWS", "amazon": "AWS",
    "huawei": "Huawei", "cerebras": "Cerebras", "metax": "MetaX", "tenstorrent": "Tenstorrent",
}  # fmt: skip

#: Words that say nothing about which device it is.
_NOISE = frozenset((
    "gpu", "gpus", "card", "cards", "graphics", "corporation", "inc", "accelerator", "tensor", "core",
    "class", "edition", "generation", "gen", "design", "desktop", "series", "arch", "ram", "vram", "memory",
    "unified", "with", "the", "lovelace", "chip", "npu", "device", "oam",
))  # fmt: skip
_SYNONYMS = {"mobile": "laptop", "notebook": "laptop", "pci": "pcie", "sxm3": "sxm2", "pciex16": "pcie"}

_SIGNS = re.compile(r"\((?:r|tm|c)\)|[®™©]")
#: A machine around the chip; its Pro is not the chip's.
_MACHINE = re.compile(r"\b(?:mac\s?book(?:\s(?:pro|air))?|mac\s(?:studio|mini|pro)|imac)\b")
_MEMORY = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,3})?)\s*(?:gib|gb|g)(?![a-z0-9])")
_GLUED_BEFORE = re.compile(
    r"\b(nvidia|geforce|tesla|quadro|rtx|gtx|pro|amd|radeon|instinct|rx|intel|arc|apple|tpu|huawei|ascend)"
    r"(?=[a-z]{0,2}\d)"
)
_GLUED_AFTER = re.compile(
    r"(?<=[a-z0-9]\d)(ti|super|xtx|xt|gre|sxm\d?|pcie|nvl|max|pro|ultra|laptop|mobile|ada|d)(?![a-z])"
    r"|(?<=\bm\d)(max|pro|ultra)(?![a-z])"
)
_WORD = re.compile(r"[a-z0-9]+")


class NameWords(NamedTuple):
    """The words of a name; ``vendors`` are the makers that it names."""

    words: frozenset[str]
    vendors: frozenset[str]


def name_words(text: str) -> NameWords:
    """Return the words of a name.

    >>> sorted(name_words("NVIDIA GeForce RTX3090Ti").words), sorted(name_words("A100-SXM4-80G").words)
    (['3090', 'ti'], ['80gb', 'a100', 'sxm4'])
    """
    plain = _SIGNS.sub(" ", text[:MAX_NAME].lower()).replace("_", " ")
    plain = _MACHINE.sub(" ", plain)
    plain = _MEMORY.sub(lambda found: f" {int(float(found[1]) + 0.5)}gb ", plain)
    plain = _GLUED_AFTER.sub(lambda found: f" {found[0]}", _GLUED_BEFORE.sub(r"\1 ", plain))
    found = _WORD.findall(plain)
    vendors = frozenset(VENDORS[word] for word in found if word in VENDORS)
    kept = (word for word in found if word not in _NOISE and (word not in VENDORS or word == "quadro"))
    return NameWords(frozenset(_SYNONYMS.get(word, word) for word in kept), vendors)
