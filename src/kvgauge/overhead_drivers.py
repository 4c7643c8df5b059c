"""What the working memory of an engine depends on: widths of a model on one rank, and how it is run.

Nothing here is fitted. A forward pass holds, for each token of its batch, the residual stream and the inner
values of the widest block; sampling holds a row of logits for each sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import isqrt

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.vllm.versions import parse_version
from kvgauge.identity import Identity
from kvgauge.layers import LayerKind, Mechanism, Role, Stream
from kvgauge.overhead_encoder import Encoder, encoder_of, inner_values
from kvgauge.sharding import TOWERS
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.values import dataclass
from kvgauge.weights import Part, TensorFamily, WeightShard

#: Parts whose inner values are alive at the same time, by block.
_BLOCKS = {
    Part.ATTENTION: "attention",
    Part.INDEXER: "attention",
    Part.LINEAR_ATTENTION: "state",
    Part.MAMBA: "state",
    Part.CONVOLUTION: "state",
    Part.MLP: "mlp",
    Part.EXPERTS: "experts",
    Part.SHARED_EXPERTS: "experts",
}
_DATACENTER_BLACKWELL = 10
#: Newer than any version: rules of what is newest hold for it.
NEWEST = "9999.0.0"
_LATENT_ROLES = frozenset({Role.LATENT, Role.ROPE})


@dataclass(frozen=True, slots=True)
class Running:
    """How an engine is run, its defaults filled in.

    Args:
        version: None is the newest known.
        batched_tokens: of one step, what a profiling pass is run with.
        sequences: most sequences of a step; each has a row of logits.
        max_model_tokens: longest request.
        tensor, pipeline: ranks.
        replicas: data-parallel ranks that share their experts, so that each sees the tokens of all.
        nodes: machines that the ranks are spread over.
        expert_parallel: each rank holds whole experts.
        eager: no graphs are captured.
        graph_sizes: how many batch sizes are captured as graphs.
        speculative_tokens: drafted a step.
        capability: compute capability as (major, minor); None where not known.
        linked: GPUs are joined by NVLink or the like; None where not known.
        image_token_bytes: pixels behind one token of an image, in 32 bits; a profiling pass holds images for
            its whole batch, and their encoder's output. 0: none come, or not known.
        image_item_tokens: tokens of the largest image, which an encoder is profiled with where it exceeds the
            batch. 0: none, or not known.
        images: images, video or sound may come.
        drafter: the engine's word for what drafts; empty: nothing does.
        is_other_maker: the card is known not to be NVIDIA's.
    """

    engine: str
    version: str | None
    batched_tokens: int
    sequences: int
    max_model_tokens: int
    tensor: int = 1
    pipeline: int = 1
    replicas: int = 1
    nodes: int = 1
    expert_parallel: bool = False
    eager: bool = False
    graph_sizes: int = 0
    speculative_tokens: int = 0
    capability: tuple[int, int] | None = None
    linked: bool | None = None
    image_token_bytes: int = 0
    image_item_tokens: int = 0
    images: bool = True
    drafter: str = ""
    is_other_maker: bool = False


@dataclass(frozen=True, slots=True)
class Widths:
    """Values that one token has on one rank.

    Args:
        hidden: of the residual stream, ``streams`` of which are kept where layers are hyper-connected.
        vocabulary: rows of the head, whole: ranks gather their logits.
        block: inner values of the widest block: outputs of projections into it, inputs of those out of it.
        plain_block: the same without the buffers of routed experts.
        experts: values of the buffers that grouped expert kernels share; 0 without experts.
        latent: of one latent row; 0 without latent attention.
        expanded: keys and values that a latent row is expanded to.
        index_row_bytes: of one index key as it is gathered in a prefill; 0 without an index.
        index_step: tokens that share an index key.
        layers: of one pipeline stage.
        towers: the model has an encoder for images or sound.
        encoder: of images; None: there is none, or its tensors are not known.
    """

    hidden: int
    vocabulary: int
    block: int
    plain_block: int
    experts: int
    latent: int
    expanded: int
    index_row_bytes: int
    index_step: int
    layers: int
    streams: int
    towers: bool
    encoder: Encoder | None = None

    @property
    def has_experts(self) -> bool:
        """Whether tokens are routed to experts."""
        return self.experts > 0


def widths_of(architecture: ModelArchitecture, stored: StoredWeights, running: Running) -> Widths | None:
    """Return the widths on the fullest rank; None where the tensors do not tell the embedding.

    Args:
        stored: the whole model; shapes before quantisation.
    """
    ranks = (running.tensor, running.pipeline)
    return _widths(Identity(architecture), Identity(stored), *ranks, whole_experts=running.expert_parallel)


@lru_cache(maxsize=128)
def _widths(
    model: Identity[ModelArchitecture],
    stored: Identity[StoredWeights],
    ranks: int,
    stages: int,
    *,
    whole_experts: bool,
) -> Widths | None:
    """Keep the widths of ways to run a model that differ in no shape: a search asks for hundreds."""
    architecture = model.of
    held = tuple(item.family for item in stored.of.families)
    table = max(
        (f.shape for f in held if f.part in (Part.EMBEDDING, Part.LM_HEAD) and len(f.shape) == 2),
        default=None,
    )
    if table is None:
        return None
    vocabulary, hidden = table
    passes = _delta_passes(architecture, ranks)
    plain, blocks, buffers = _blocks(held, hidden, ranks, passes, whole_experts=whole_experts)
    latent = _latent_streams(architecture)
    index = _index_streams(architecture)
    return Widths(
        hidden,
        vocabulary,
        max(blocks, default=0),
        max(plain, default=0),
        max(buffers, default=0),
        max((s.width for s in latent if s.role is Role.LATENT), default=0)
        + max((s.width for s in latent if s.role is Role.ROPE), default=0),
        max((-(-f.shape[0] // ranks) for f in held if f.name.endswith("kv_b_proj.weight")), default=0),
        max((s.width + -(-s.width // 128) * 4 for s in index), default=0),
        min((max(1, s.counted.step_tokens) for s in index), default=1),
        -(-architecture.num_layers // stages),
        max((f.shape[1] // hidden for f in held if f.name.endswith("hc_attn_fn")), default=1),
        any(f.part in TOWERS for f in held),
        encoder_of(held, ranks),
    )


def _latent_streams(architecture: ModelArchitecture) -> list[Stream]:
    groups = [group for group in architecture.groups if group.kind is LayerKind.LATENT]
    return [s for group in groups for s in group.streams if s.role in _LATENT_ROLES]


def _index_streams(architecture: ModelArchitecture) -> list[Stream]:
    return [s for group in architecture.groups for s in group.streams if s.role is Role.INDEX]


#: Tokens of a chunk of the delta rule, whose states are kept at each end (layers/fla/ops/chunk*.py).
_CHUNK = 64
#: Copies that a pass of the delta rule makes beside its projections, in 16 bits: rows of keys, of values, and
#: of the chunk's own square (fp32 counts twice; layers/fla/ops/{chunk,wy_fast,kda}.py).
_DELTA_COPIES = {Mechanism.GATED_DELTA_NET: (2, 4, 1), Mechanism.KIMI_DELTA: (6, 5, 3)}


def _delta_passes(architecture: ModelArchitecture, ranks: int) -> dict[int, int]:
    """Return the values that a pass of a gated delta rule makes of one token, by layer, on one rank."""
    found: dict[int, int] = {}
    for group in architecture.groups:
        copies = _DELTA_COPIES.get(group.mechanism)
        states = [s for s in group.streams if s.role is Role.RECURRENT]
        if copies is None or not states:
            continue
        heads, state = states[0].vectors, states[0].width
        side = isqrt(state)
        convolved = sum(s.vectors * s.width for s in group.streams if s.role is Role.CONV)
        keys, values, squares = copies
        each = (keys + values) * side + squares * _CHUNK + -(-state // _CHUNK)
        found |= dict.fromkeys(group.indices, -(-(heads * each + convolved) // ranks))
    return found


def _blocks(
    families: tuple[TensorFamily, ...],
    hidden: int,
    ranks: int,
    passes: Mapping[int, int],
    *,
    whole_experts: bool,
) -> tuple[list[int], list[int], list[int]]:
    """Return inner values of every block without and with routed experts, and of the experts' buffers."""
    inner: dict[tuple[str, int], int] = {("state", layer): width for layer, width in passes.items()}
    routed: dict[int, list[int]] = {}
    for family in families:
        block = _BLOCKS.get(family.part)
        if block is None or len(family.shape) < 2 or family.shard is WeightShard.REPLICATED:
            continue
        cut = 1 if family.num_experts and whole_experts else ranks
        enters = family.shard is not WeightShard.ROW
        width = inner_values(family, cut)
        for layer in family.layers:
            if family.num_experts:
                into = routed.setdefault(layer, [0, 0, 0])
                into[0 if enters else 1] += width
                into[2] = max(into[2], family.num_active_experts)
            else:
                inner[block, layer] = inner.get((block, layer), 0) + width
    buffers = {layer: top * (max(up, hidden) + down) for layer, (up, down, top) in routed.items()}
    plain = list(inner.values())
    blocks = [*plain, *(width + inner.get(("experts", layer), 0) for layer, width in buffers.items())]
    return plain, blocks, [width + hidden for width in buffers.values()]


def packs_experts(families: Iterable[StoredFamily]) -> bool:
    """Return whether routed experts are stored in less than 8 bits a value."""
    return any(
        item.family.num_experts
        and len(item.family.shape) > 1
        and item.format.stored_bytes(item.family.shape) < 0.9 * item.family.num_elements
        for item in families
    )


def is_quantised(families: Iterable[StoredFamily]) -> bool:
    """Return whether matrices are stored in less than 16 bits a value."""
    return any(
        len(item.family.shape) > 1
        and item.format.stored_bytes(item.family.shape) < 1.9 * item.family.num_elements
        for item in families
    )


#: Types whose own defaults capture up to 1,024 (model_executor/models/config.py), and since when.
_WIDE_TYPES, _WIDE_TYPES_SINCE = frozenset({"gpt_oss"}), parse_version("0.12.0")
#: From here on datacenter Blackwell does (config/vllm.py of 0.27.1 and 0.28.0).
_WIDE_CARDS_SINCE = parse_version("0.28.0.dev0")


def captures_wide(version: str | None, major: int, model_type: str = "") -> bool:
    """Return whether graphs are captured up to 1,024 tokens of a step by default, not 512.

    Args:
        major: compute capability.

    >>> captures_wide("0.26.0", 10), captures_wide("0.28.0", 10), captures_wide("0.19.0", 9, "gpt_oss")
    (False, True, True)
    """
    found = parse_version(version or NEWEST)
    if model_type in _WIDE_TYPES:
        return found >= _WIDE_TYPES_SINCE
    return major == _DATACENTER_BLACKWELL and found >= _WIDE_CARDS_SINCE


def graph_sizes(version: str | None, sequences: int, speculative_tokens: int, *, wide: bool) -> int:
    """Return how many batch sizes vLLM captures as graphs by default.

    1, 2, 4, then steps of 8 up to 248, from 0.12 on steps of 16 above; to twice the sequences, 512 at most
    (``config/vllm.py``); ``wide``: 1,024 (``captures_wide``).

    >>> graph_sizes("0.19.0", 1024, 0, wide=False), graph_sizes("0.11.0", 1024, 0, wide=False)
    (51, 67)
    """
    found = parse_version(version or NEWEST)
    first_engine = found < parse_version("0.8.0.dev0")
    largest = 256 if first_engine else 1024 if wide else 512
    largest = min(largest, sequences if first_engine else 2 * sequences * (1 + speculative_tokens))
    step = 16 if found >= parse_version("0.12.0.dev0") else 8
    sizes = [1, 2, 4, *range(8, 256, 8), *range(256, 1025, step)]
    return sum(size <= largest for size in sizes)
