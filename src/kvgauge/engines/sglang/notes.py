"""What is said about answers of SGLang: what no rule, flag or record says and had to be assumed."""

from __future__ import annotations

from kvgauge.architecture import Note

RESERVED = "a page of each pool and a slot of state, which padded tokens point at"

_ASSUMED = {
    "drafter_layers": Note(
        "drafter_layers_assumed",
        "warning",
        "the layers of the draft model are not counted: its config is not known",
    ),
    "latent": Note(
        "latent_assumed",
        "warning",
        "sglang is not known to keep this class's latents as such; it is taken to",
    ),
    "nvfp4_workspace": Note(
        "nvfp4_workspace_assumed",
        "warning",
        "buffers that nvfp4 is unpacked into are not counted",
    ),
}
#: Of a draft model that the plan prices by the target's own layers.
_DRAFTS_PRICED = Note(
    "drafter_priced_assumed",
    "warning",
    "the draft model's config is not known; one layer like the model's own is counted for it",
)
_GROUPS = Note(
    "attention_groups_assumed",
    "warning",
    "attention groups are shown as replicas: the cache is exact; of weights experts alone are cut further",
)
_WEIGHTS = Note(
    "weight_cut_assumed",
    "info",
    "weights of a rank follow the common rules of tensor parallelism; sglang's own were not measured",
)


def assumed_notes(codes: tuple[str, ...], *, priced: bool, groups: bool, ranks: int) -> tuple[Note, ...]:
    """Return what to say of the codes of ``SglangPlan.assumed``, and of ranks.

    Args:
        priced: a draft model whose config is not known is priced by the model's own layers.
        groups: attention groups lie inside the tensor ranks.
        ranks: tensor-parallel ranks of a group.
    """
    own = [_DRAFTS_PRICED if code == "drafter_layers" and priced else _ASSUMED[code] for code in codes]
    if groups:
        own.append(_GROUPS)
    elif ranks > 1:
        own.append(_WEIGHTS)
    return tuple(own)
