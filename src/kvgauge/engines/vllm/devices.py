"""What vLLM asks of a card before it plans a cache: its memory, its compute capability, its name.

Memory decides the default batch, the capability which attention backends run. The figures are what the
driver reports (an 80 GB H100: 79.2 GiB), in MiB.
"""

from __future__ import annotations

import re

from kvgauge.units import GIB, MIB
from kvgauge.values import dataclass


@dataclass(frozen=True, slots=True)
class GpuClass:
    """A card as vLLM sees it.

    Args:
        capability: compute capability as (major, minor); None for cards of other makers, whose backends and
            block sizes no rule here says.
        memory_bytes: what the driver reports.
    """

    name: str
    capability: tuple[int, int] | None
    memory_bytes: int

    @property
    def major(self) -> int:
        """Major compute capability; 0 where there is none."""
        return self.capability[0] if self.capability else 0

    @property
    def has_native_fp8(self) -> bool:
        """Whether kernels can read fp8 e4m3: SM89 and later, other makers taken for able."""
        return self.capability is None or self.capability >= (8, 9)

    def named(self, *words: str) -> bool:
        """Whether the name holds one of ``words``, as vLLM asks for A100 and GB10."""
        return any(word in self.name.lower() for word in words)


def _card(name: str, capability: tuple[int, int], mib: int) -> GpuClass:
    return GpuClass(name, capability, mib * MIB)


#: Cards by the words that tell them from others; the first row whose words are all in a name counts.
#: MiB as nvidia-smi and torch report them; capabilities from the vendor's table.
_CARDS: tuple[tuple[tuple[str, ...], GpuClass], ...] = (
    (("gb10",), _card("GB10", (12, 1), 122_572)),
    (("gb300",), _card("GB300", (10, 3), 284_208)),
    (("b300",), _card("B300", (10, 3), 275_040)),
    (("gb200",), _card("GB200", (10, 0), 189_471)),
    (("b200",), _card("B200", (10, 0), 182_642)),
    (("gh200", "144"), _card("GH200 144GB", (9, 0), 146_831)),
    (("gh200",), _card("GH200 96GB", (9, 0), 97_871)),
    (("h200",), _card("H200", (9, 0), 143_771)),
    (("h100", "nvl"), _card("H100 NVL", (9, 0), 95_830)),
    (("h100",), _card("H100 80GB HBM3", (9, 0), 81_100)),
    (("h800",), _card("H800", (9, 0), 81_100)),
    (("h20", "141"), _card("H20-3e", (9, 0), 143_771)),
    (("h20",), _card("H20", (9, 0), 97_871)),
    (("a100", "40"), _card("A100 40GB", (8, 0), 40_444)),
    (("a100",), _card("A100 80GB", (8, 0), 81_153)),
    (("a800",), _card("A800 80GB", (8, 0), 81_153)),
    (("a6000", "ada"), _card("RTX 6000 Ada", (8, 9), 48_508)),
    (("6000", "ada"), _card("RTX 6000 Ada", (8, 9), 48_508)),
    (("6000", "pro"), _card("RTX PRO 6000", (12, 0), 97_250)),
    (("5000", "pro"), _card("RTX PRO 5000", (12, 0), 48_500)),
    (("a6000",), _card("RTX A6000", (8, 6), 48_676)),
    (("l40s",), _card("L40S", (8, 9), 45_589)),
    (("l40",), _card("L40", (8, 9), 45_589)),
    (("l20",), _card("L20", (8, 9), 45_589)),
    (("l4",), _card("L4", (8, 9), 22_563)),
    (("a40",), _card("A40", (8, 6), 45_416)),
    (("a30",), _card("A30", (8, 0), 24_062)),
    (("a10g",), _card("A10G", (8, 6), 22_723)),
    (("a10",), _card("A10", (8, 6), 22_723)),
    (("a16",), _card("A16", (8, 6), 14_904)),
    (("5090",), _card("RTX 5090", (12, 0), 32_111)),
    (("5080",), _card("RTX 5080", (12, 0), 15_840)),
    (("5070",), _card("RTX 5070", (12, 0), 11_840)),
    (("5060",), _card("RTX 5060 Ti", (12, 0), 15_840)),
    (("4090",), _card("RTX 4090", (8, 9), 24_082)),
    (("4080",), _card("RTX 4080", (8, 9), 15_952)),
    (("4070",), _card("RTX 4070", (8, 9), 11_866)),
    (("4060",), _card("RTX 4060", (8, 9), 7_806)),
    (("3090",), _card("RTX 3090", (8, 6), 24_122)),
    (("3080",), _card("RTX 3080", (8, 6), 9_870)),
    (("3060",), _card("RTX 3060", (8, 6), 11_911)),
    (("3070",), _card("RTX 3070", (8, 6), 7_967)),
    (("a5000",), _card("RTX A5000", (8, 6), 24_238)),
    (("a4500",), _card("RTX A4500", (8, 6), 20_181)),
    (("a4000",), _card("RTX A4000", (8, 6), 16_108)),
    (("2080", "ti"), _card("RTX 2080 Ti", (7, 5), 11_007)),
    (("2080",), _card("RTX 2080", (7, 5), 7_974)),
    (("2070",), _card("RTX 2070", (7, 5), 7_974)),
    (("2060",), _card("RTX 2060", (7, 5), 5_926)),
    (("titan", "rtx"), _card("TITAN RTX", (7, 5), 24_190)),
    (("quadro", "8000"), _card("Quadro RTX 8000", (7, 5), 48_577)),
    (("v100", "32"), _card("V100 32GB", (7, 0), 32_494)),
    (("v100",), _card("V100 16GB", (7, 0), 16_152)),
    (("t4",), _card("T4", (7, 5), 14_914)),
)  # fmt: skip

#: What is assumed where no card is named: the one that the rules were checked on.
DEFAULT_GPU = _card("H100 80GB HBM3", (9, 0), 81_100)


def gpu_class(name: str) -> GpuClass | None:
    """Return the class of a card by a name as people, nvidia-smi or torch write it; None where not known.

    >>> gpu_class("NVIDIA A100-SXM4-80GB").capability, gpu_class("2x RTX 4090").name
    ((8, 0), 'RTX 4090')
    """
    text = name.lower().replace("rtx", "rtx ")
    words = re.findall(r"[a-z]+\d+[a-z]*|\d+|[a-z]+", text)
    return next((card for keys, card in _CARDS if all(key in words for key in keys)), None)


def gpu_of_memory(memory_bytes: int) -> GpuClass:
    """Return a stand-in for a card of which only the memory is known: the class of its size and age.

    >>> gpu_of_memory(24 << 30).capability, gpu_of_memory(180 << 30).capability
    ((8, 9), (10, 0))
    """
    capability = (10, 0) if memory_bytes >= 160 * GIB else (9, 0) if memory_bytes >= 70 * GIB else (8, 9)
    return GpuClass("", capability, memory_bytes)
