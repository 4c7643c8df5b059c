"""MXFP4 as gpt-oss stores it: ``blocks`` and ``scales`` of the experts, one e8m0 scale of 32 inputs."""

from __future__ import annotations

from kvgauge.readers.hf.schemes.block import Block
from kvgauge.readers.hf.schemes.formats import mxfp4
from kvgauge.readers.hf.schemes.names import Mode, NameSet
from kvgauge.readers.hf.schemes.rules import Rule, Scheme, any_family, is_linear
from kvgauge.weights import Part, TensorFamily


def _is_expert(family: TensorFamily) -> bool:
    return family.part is Part.EXPERTS and is_linear(family)


def read_mxfp4(block: Block) -> Scheme:
    """Read an MXFP4 block: experts alone are quantised, whatever the list leaves out."""
    kept = NameSet.of(block.names("modules_to_not_convert"), Mode.PATH)
    return Scheme("mxfp4", (Rule(None, kept, any_family), Rule(mxfp4(), takes=_is_expert)), keeps_stacks=True)
