"""Which fields give a recurrence away."""

from __future__ import annotations

from kvgauge.layers import Mechanism

#: First whose fields are all present: (fields, mechanism).
SIGNATURES: tuple[tuple[tuple[str, ...], Mechanism], ...] = (
    (("linear_num_value_heads",), Mechanism.GATED_DELTA_NET),
    (("efficient_attention_config",), Mechanism.GATED_DELTA_NET),
    (("linear_attn_config",), Mechanism.KIMI_DELTA),
    (("linear_num_heads", "linear_head_dim"), Mechanism.KIMI_DELTA),
    (("mamba_num_heads",), Mechanism.MAMBA2),
    (("mamba_n_heads",), Mechanism.MAMBA2),
    (("mamba_headdim",), Mechanism.MAMBA2),
    (("lru_width",), Mechanism.RG_LRU),
    (("conv1d_width",), Mechanism.RG_LRU),
    (("mamba_d_state",), Mechanism.MAMBA1),
    (("expand_k",), Mechanism.GATED_LINEAR),
    (("state_size",), Mechanism.MAMBA1),
    (("attn_type_list",), Mechanism.LIGHTNING),
)
