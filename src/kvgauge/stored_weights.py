"""Weights as they are stored: tensor families, each in one format. Bytes are added here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from kvgauge.architecture import Note
from kvgauge.values import dataclass
from kvgauge.weight_formats import WeightFormat
from kvgauge.weights import Part, TensorFamily


@dataclass(frozen=True, slots=True)
class StoredFamily:
    """A tensor family in one format.

    Args:
        is_duplicate: the file holds these values a second time (a tied head); an engine loads them once.
        logical: parameters that all its tensors stand for, where packed values or scales hold other numbers:
            0 for scales. None: those of the family.
        align_bytes: every tensor takes a multiple of so many bytes (GGUF: 32), in the file and in memory.
    """

    family: TensorFamily
    format: WeightFormat
    is_duplicate: bool = False
    logical: int | None = None
    align_bytes: int = 1

    @property
    def num_bytes(self) -> int:
        """Bytes of all its tensors; none of its own where tied or a duplicate."""
        if self.family.tied_to or self.is_duplicate:
            return 0
        return self.file_bytes

    @property
    def num_parameters(self) -> int:
        """Parameters that its tensors stand for."""
        return self.family.num_parameters if self.logical is None else self.logical

    @property
    def file_bytes(self) -> int:
        """Bytes that the tensors take in the file."""
        if self.family.tied_to and not self.is_duplicate:
            return 0
        slices = max(1, self.family.num_experts) if self.family.stacked else 1
        size = slices * self.format.stored_bytes(self.family.shape)
        return self.family.num_tensors * -(-size // self.align_bytes) * self.align_bytes


@dataclass(frozen=True, slots=True)
class PartBytes:
    """One entry of ``weights.by_part``: a part's tensors of one format."""

    part: Part
    dtype: str
    num_parameters: int
    num_bytes: int


@dataclass(frozen=True)
class StoredWeights:
    """All weights of a model, as a file or a scheme stores them.

    Args:
        families: without multi-token prediction.
        mtp_families: those of the multi-token-prediction module.
        source: ``config`` (shapes and scheme), ``safetensors`` or ``gguf`` (the tensors' own headers),
            ``index`` (a stated total).
        num_parameters: logical parameters, which packed tensors do not tell; None: those of the families.
        num_active_parameters: the same for the ones that a token passes through; None: not known.
        scheme: what the weights are quantised with, in a word: ``bf16``, ``fp8``, ``gptq int4`` ...
    """

    families: tuple[StoredFamily, ...]
    mtp_families: tuple[StoredFamily, ...] = ()
    source: str = "config"
    num_parameters: int = 0
    num_active_parameters: int | None = None
    scheme: str = ""
    notes: tuple[Note, ...] = ()

    @cached_property
    def num_bytes(self) -> int:
        """Bytes without multi-token prediction, tied tensors once."""
        return sum(stored.num_bytes for stored in self.families)

    @cached_property
    def mtp_bytes(self) -> int:
        """Bytes of the multi-token-prediction module."""
        return sum(stored.num_bytes for stored in self.mtp_families)

    @cached_property
    def file_bytes(self) -> int:
        """Bytes of everything that the files hold."""
        return sum(stored.file_bytes for stored in (*self.families, *self.mtp_families))

    def by_part(self, *, mtp: bool = False) -> tuple[PartBytes, ...]:
        """Return the parts in the order of ``Part``, each once for every format that it has."""
        return _by_part((*self.families, *(self.mtp_families if mtp else ())))


def _by_part(families: Iterable[StoredFamily]) -> tuple[PartBytes, ...]:
    sums: dict[tuple[Part, str], tuple[int, int]] = {}
    for stored in families:
        key = (stored.family.part, stored.format.name)
        parameters, size = sums.get(key, (0, 0))
        own = 0 if stored.is_duplicate else stored.num_parameters
        sums[key] = (parameters + own, size + stored.num_bytes)
    order = {part: place for place, part in enumerate(Part)}
    rows = (PartBytes(part, dtype, *sums[part, dtype]) for part, dtype in sums)
    return tuple(sorted((row for row in rows if row.num_bytes), key=lambda row: order[row.part]))
