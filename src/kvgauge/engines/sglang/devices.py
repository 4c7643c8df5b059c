"""The memory of a card as SGLang asks ``nvidia-smi`` for it, which is a little more than torch reports."""

from __future__ import annotations

from kvgauge.engines.vllm.devices import GpuClass
from kvgauge.units import MIB

#: MiB that nvidia-smi shows where it is not what torch reports, by the name of the class.
_SMI_MIB = {
    "H100 80GB HBM3": 81_559, "H800": 81_559, "A100 80GB": 81_920, "A800 80GB": 81_920, "A100 40GB": 40_960,
    "B200": 183_359, "GB200": 189_471, "RTX 6000 Ada": 49_140, "RTX A6000": 49_140, "L40S": 46_068,
    "L40": 46_068,
    "L20": 46_068, "L4": 23_034, "A40": 46_068, "A30": 24_576, "A10G": 23_028, "A10": 23_028, "A16": 15_356,
    "RTX 5090": 32_607, "RTX 5080": 16_303, "RTX 4090": 24_564, "RTX 4080": 16_376, "RTX 3090": 24_576,
    "RTX PRO 6000": 97_887, "RTX PRO 5000": 48_935, "V100 32GB": 32_768, "V100 16GB": 16_384, "T4": 15_360,
}  # fmt: skip


def memory_mib(gpu: GpuClass) -> float:
    """Return the memory of a card in MiB, as the engine's defaults see it.

    >>> from kvgauge.engines.vllm.devices import gpu_class
    >>> memory_mib(gpu_class("H100"))
    81559
    """
    known = _SMI_MIB.get(gpu.name)
    return gpu.memory_bytes / MIB if known is None else known
