"""Where llama.cpp v0.5.0 puts the weights of a GGUF: host or device, tensor by tensor.

The embedding, per-layer embeddings and learned positions stay on the host. The last ``-ngl`` of the blocks
and the output, which counts as one more block after them, go to the devices, in order, by each device's
share. A head that is the embedding exists twice once the output is on a device: rows for the look-up on the
host, a matrix for the logits there. Blocks of multi-token prediction are skipped unless asked for, but
count as blocks. Per-layer embeddings of more than 4 GiB are mapped from the file and read row by row; they
count in full here, as in llama.cpp's own estimate.
Source: ``src/llama-model.cpp`` (``load_tensors``), ``src/llama-arch.cpp`` (layer of each tensor),
``src/llama-model-loader.cpp``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from math import isfinite

from kvgauge.engines.tensor_overrides import Override, Overrides
from kvgauge.errors import InvalidRequestError
from kvgauge.identity import Identity
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.values import dataclass
from kvgauge.weights import Part, TensorFamily

#: Bytes that a tensor's size is rounded up to in a buffer. CPU and RPC: measured; CUDA: from its source.
HOST_ALIGN_BYTES = 32
DEVICE_ALIGN_BYTES = {"cpu": 32, "rpc": 32, "cuda": 128}

_EMBEDDING = "token_embd.weight"
_INPUT = frozenset(
    {
        _EMBEDDING,
        "per_layer_token_embd.weight",
        "position_embd.weight",
        "token_types.weight",
        "hrm.z_l_init",
        "masked_embd_centroids.weight",
        "masked_embd_ordering",
    }
)
_OUTPUT_STARTS = ("output", "dec.output", "enc.output", "cls", "dense_2", "dense_3", "altup_")
#: lfm2 calls its output norm so; elsewhere it is a norm of the embedding, which goes with block 0.
_MISNAMED_NORM = "token_embd_norm.weight"


@dataclass(frozen=True, slots=True)
class GgufLayout:
    """What placement asks of a model beside its tensors.

    Args:
        num_blocks: blocks, those of multi-token prediction included.
        has_head: there are logits, by a matrix of their own or by the embedding.
        copies_embedding: where the head is the embedding, the host holds a second copy of it for the logits.
    """

    num_blocks: int
    has_head: bool = True
    copies_embedding: bool = False


@dataclass(frozen=True, slots=True)
class GgufPlacement:
    """Bytes of weights by place.

    Args:
        host_bytes: in host memory.
        device_bytes: on each device.
        host_matrix_bytes: the largest matrix of a block in host memory, which a device works on in a copy.
        host_output_bytes: the matrix of the logits, where it lies there.
    """

    host_bytes: int
    device_bytes: tuple[int, ...]
    host_matrix_bytes: int = 0
    host_output_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Bytes in all places; more than the file's where a head is held twice."""
        return self.host_bytes + sum(self.device_bytes)


def in_ggml_names(stored: StoredWeights) -> StoredWeights:
    """Return weights of a checkpoint under the few names that placement asks for, by what they are."""
    if any(item.family.name.startswith(("blk.", _EMBEDDING)) for item in stored.families):
        return stored
    return _renamed(Identity(stored))


@lru_cache(maxsize=16)
def _renamed(weights: Identity[StoredWeights]) -> StoredWeights:
    stored = weights.of
    named = tuple(
        replace(item, family=replace(item.family, name=_ggml_name(item))) for item in stored.families
    )
    return replace(stored, families=named)


def _ggml_name(stored: StoredFamily) -> str:
    family = stored.family
    if family.part is Part.EMBEDDING:
        return "position_embd.weight" if "pos" in family.name or "wpe" in family.name else _EMBEDDING
    outside = {Part.LM_HEAD: "output.weight", Part.PER_LAYER_EMBEDDING: "per_layer_token_embd.weight"}
    if family.part is Part.NORM and not family.layers:
        return "output_norm.weight"
    if family.layers:
        tail = family.name.rpartition("{layer}.")[2]
        kinds = ("gate_up", "gate", "up", "down") if family.part is Part.EXPERTS else ()
        kind = next((kind for kind in kinds if kind in tail), None)
        return f"blk.{{layer}}.ffn_{kind}_exps.weight" if kind else f"blk.{{layer}}.{tail}"
    return outside.get(family.part, family.name)


def gguf_placement(
    stored: StoredWeights,
    layout: GgufLayout,
    *,
    offloaded: int | None = None,
    shares: Sequence[float] = (1.0,),
    device_align_bytes: int = DEVICE_ALIGN_BYTES["cuda"],
    host_expert_blocks: int = 0,
    overrides: tuple[Override, ...] = (),
    mtp: bool = False,
) -> GgufPlacement:
    """Return where the weights of a GGUF lie.

    Args:
        stored: the weights, families in ggml names.
        layout: the model beside its tensors.
        offloaded: ``-ngl``; the output counts as a block. None: all. 0: the CPU alone.
        shares: parts of the offloaded blocks that the devices take, in order; llama.cpp's default is their
            free memory.
        device_align_bytes: see ``DEVICE_ALIGN_BYTES``.
        host_expert_blocks: ``--n-cpu-moe``: the routed experts of so many first blocks stay on the host.
        overrides: ``-ot``: tensors that lie where they say.
        mtp: multi-token prediction is loaded.

    Raises:
        InvalidRequestError: a negative number of blocks, shares that share nothing out, or a device that is
            not there.
    """
    place = _Places(layout.num_blocks, offloaded, tuple(shares), host_expert_blocks, overrides)
    host, devices, matrix, output = 0, [0] * len(shares), 0, 0
    families = (*stored.families, *(stored.mtp_families if mtp else ()))
    names = {family.family.name for family in families}
    for family in families:
        for device, tensors in _where(family, place, names).items():
            if device is None:
                host += tensors * _tensor_bytes(family, HOST_ALIGN_BYTES)
                matrix = max(matrix, _matrix_bytes(family))
                output = max(output, _tensor_bytes(family, HOST_ALIGN_BYTES) if _is_head(family) else 0)
            else:
                devices[device] += tensors * _tensor_bytes(family, device_align_bytes)
    embedding = next((family for family in families if family.family.name == _EMBEDDING), None)
    if embedding is not None and layout.has_head and "output.weight" not in names:
        device = place.of_block(layout.num_blocks)
        if device is not None:
            devices[device] += _tensor_bytes(embedding, device_align_bytes)
        else:
            output = _tensor_bytes(embedding, HOST_ALIGN_BYTES)
            host += output if layout.copies_embedding else 0
    return GgufPlacement(host, tuple(devices), matrix, output)


class _Places:
    """Says which device a block is on, None for the host."""

    def __init__(
        self,
        num_blocks: int,
        offloaded: int | None,
        shares: tuple[float, ...],
        host_experts: int = 0,
        overrides: tuple[Override, ...] = (),
    ) -> None:
        total = sum(shares)
        if offloaded is not None and offloaded < 0:
            raise InvalidRequestError(f"-ngl is {offloaded}, expected 0 or more", field="-ngl")
        if not shares or not isfinite(total) or total <= 0 or any(share < 0 for share in shares):
            raise InvalidRequestError("the devices' shares must be positive numbers", field="--tensor-split")
        last = max((device for _, device in overrides if device is not None), default=0)
        if last >= len(shares):
            raise InvalidRequestError(
                f"-ot names device {last}, and there are {len(shares)}",
                hint="devices count from 0, as CUDA0",
                field="engine-args",
            )
        self.num_blocks = num_blocks
        self.host_experts = host_experts
        self.offloaded = num_blocks + 1 if offloaded is None else min(offloaded, num_blocks + 1)
        self.ends = [end / total for end in accumulate(shares)]
        self.overrides = Overrides(overrides) if overrides else None

    def of_tensor(self, family: TensorFamily, block: int) -> int | None:
        """Return the device of a family's tensor in a block."""
        is_kept = family.part is Part.EXPERTS and block < self.host_experts
        device = None if is_kept else self.of_block(block)
        if self.overrides is None:
            return device
        return self.overrides.of(family.name.replace("{layer}", str(block)), device)

    def of_block(self, block: int) -> int | None:
        """Return the device of a block; the output is the block after the last."""
        first = self.num_blocks + 1 - self.offloaded
        if block < first:
            return None
        device = bisect_right(self.ends, (block - first) / self.offloaded)
        return min(device, len(self.ends) - 1)


def _where(stored: StoredFamily, place: _Places, names: set[str]) -> dict[int | None, int]:
    """Return device -> tensors of a family there; None is the host."""
    family = stored.family
    if family.name in _INPUT:
        return {None if place.overrides is None else place.overrides.of(family.name, None): 1}
    per_block = family.num_tensors // max(1, len(family.layers))
    found: dict[int | None, int] = {}
    for block in family.layers or (_block_of(family.name, place, names),):
        device = place.of_tensor(family, block)
        found[device] = found.get(device, 0) + per_block
    return found


def _matrix_bytes(stored: StoredFamily) -> int:
    """Return the bytes of a block's matrix, of all experts where there are several; 0 of anything else."""
    family = stored.family
    if not family.layers or len(family.shape) < 2:
        return 0
    experts = 1 if family.stacked else max(1, family.num_experts)
    return experts * _tensor_bytes(stored, HOST_ALIGN_BYTES)


def _is_head(stored: StoredFamily) -> bool:
    return stored.family.name == "output.weight"


def _block_of(name: str, place: _Places, names: set[str]) -> int:
    """Return the block that a tensor outside of the blocks goes with: the output, else the first."""
    last = name.startswith(_OUTPUT_STARTS) or (name == _MISNAMED_NORM and "output_norm.weight" not in names)
    return place.num_blocks if last else 0


def _tensor_bytes(stored: StoredFamily, align_bytes: int) -> int:
    """Return the bytes of one tensor in a buffer."""
    family = stored.family
    slices = max(1, family.num_experts) if family.stacked else 1
    size = slices * stored.format.stored_bytes(family.shape)
    return -(-size // align_bytes) * align_bytes
