"""Hypothesis strategies: small random models of every mechanism, in the words of configs."""

from __future__ import annotations

from hypothesis import strategies as st

Config = dict[str, object]

small = st.integers(1, 12)
widths = st.sampled_from([8, 16, 32, 64, 80, 96, 128, 192, 256])
windows = st.integers(1, 5000)
kernels = st.integers(2, 6)


@st.composite
def attention(draw: st.DrawFn) -> Config:
    kv = draw(st.sampled_from([1, 2, 3, 4, 8, 16]))
    config: Config = {
        "model_type": "llama",
        "num_hidden_layers": draw(small),
        "num_attention_heads": kv * draw(st.sampled_from([1, 2, 4, 7])),
        "num_key_value_heads": kv,
        "head_dim": draw(widths),
        "hidden_size": 1024,
        "torch_dtype": draw(st.sampled_from(["bfloat16", "float16", "float32"])),
    }
    if draw(st.booleans()):
        config["v_head_dim"] = draw(widths)
    return config


@st.composite
def sliding(draw: st.DrawFn) -> Config:
    config = draw(attention())
    kinds = st.sampled_from(["full_attention", "sliding_attention", "chunked_attention"])
    count = config["num_hidden_layers"]
    extra = {
        "model_type": "windowed",
        "layer_types": draw(st.lists(kinds, min_size=count, max_size=count)),
        "sliding_window": draw(windows),
        "attention_chunk_size": draw(windows),
    }
    if draw(st.booleans()):
        extra |= {"swa_head_dim": draw(widths), "global_head_dim": draw(widths)}
    return config | extra


@st.composite
def latent(draw: st.DrawFn) -> Config:
    count = draw(small)
    config: Config = {
        "model_type": "deepseek_v3",
        "num_hidden_layers": count,
        "num_attention_heads": 16,
        "kv_lora_rank": draw(widths),
        "qk_rope_head_dim": draw(st.sampled_from([0, 32, 64])),
        "hidden_size": 1024,
    }
    if draw(st.booleans()):
        kinds = st.sampled_from(["full", "shared"])
        config |= {
            "index_head_dim": draw(widths),
            "indexer_types": draw(st.lists(kinds, min_size=count, max_size=count)),
        }
    return config


@st.composite
def compressed(draw: st.DrawFn) -> Config:
    ratios = draw(st.lists(st.sampled_from([0, 4, 128]), min_size=1, max_size=12).filter(any))
    return {
        "model_type": "deepseek_v4",
        "num_hidden_layers": len(ratios),
        "compress_ratios": ratios,
        "num_attention_heads": 64,
        "head_dim": draw(st.sampled_from([128, 512])),
        "qk_rope_head_dim": 64,
        "index_head_dim": 128,
        "sliding_window": draw(st.integers(1, 512)),
    }


@st.composite
def delta_hybrid(draw: st.DrawFn) -> Config:
    config = draw(attention())
    keys = draw(st.sampled_from([1, 2, 4]))
    return config | {
        "model_type": "qwen3_next",
        "full_attention_interval": draw(st.integers(1, 4)),
        "linear_num_key_heads": keys,
        "linear_num_value_heads": keys * 2,
        "linear_key_head_dim": draw(widths),
        "linear_value_head_dim": draw(widths),
        "linear_conv_kernel_dim": draw(kernels),
        "mamba_ssm_dtype": draw(st.sampled_from([None, "float32", "bfloat16"])),
    }


@st.composite
def kimi_hybrid(draw: st.DrawFn) -> Config:
    config = draw(latent())
    kinds = st.sampled_from(["full_attention", "linear_attention"])
    count = config["num_hidden_layers"]
    return config | {
        "model_type": "kimi_linear",
        "layer_types": draw(st.lists(kinds, min_size=count, max_size=count)),
        "linear_num_heads": draw(small),
        "linear_head_dim": draw(widths),
        "linear_conv_kernel_dim": draw(kernels),
    }


@st.composite
def mamba_hybrid(draw: st.DrawFn) -> Config:
    config = draw(attention())
    pattern = draw(st.text("M*E-", min_size=1, max_size=20).filter(lambda t: set(t) & {"M", "*"}))
    return config | {
        "model_type": "nemotron_h",
        "num_hidden_layers": len(pattern),
        "hybrid_override_pattern": pattern,
        "mamba_num_heads": draw(st.sampled_from([2, 4, 8])),
        "mamba_head_dim": draw(widths),
        "ssm_state_size": draw(widths),
        "n_groups": draw(st.sampled_from([1, 2, 4])),
        "conv_kernel": draw(kernels),
    }


@st.composite
def parallel_branches(draw: st.DrawFn) -> Config:
    config = draw(attention())
    return config | {
        "model_type": "falcon_h1",
        "mamba_n_heads": 4,
        "mamba_d_head": draw(widths),
        "mamba_d_state": draw(widths),
        "mamba_n_groups": 1,
        "mamba_d_conv": draw(kernels),
    }


@st.composite
def mamba1(draw: st.DrawFn) -> Config:
    return {
        "model_type": "mamba",
        "num_hidden_layers": draw(small),
        "hidden_size": 256,
        "expand": draw(st.sampled_from([1, 2, 1.5])),
        "state_size": draw(widths),
        "conv_kernel": draw(kernels),
    }


@st.composite
def short_convolution(draw: st.DrawFn) -> Config:
    config = draw(attention())
    count = config["num_hidden_layers"]
    chosen = draw(st.sets(st.integers(0, count - 1), min_size=1))
    return config | {"model_type": "lfm2", "full_attn_idxs": sorted(chosen), "conv_L_cache": draw(kernels)}


@st.composite
def shared(draw: st.DrawFn) -> Config:
    config = draw(attention())
    count = draw(st.integers(2, 12))
    return config | {
        "model_type": "sharing",
        "num_hidden_layers": count,
        "num_kv_shared_layers": draw(st.integers(0, count - 1)),
    }


@st.composite
def encoder_decoder(draw: st.DrawFn) -> Config:
    return {
        "model_type": "t5",
        "num_decoder_layers": draw(small),
        "num_heads": draw(small),
        "d_kv": draw(widths),
        "is_encoder_decoder": True,
    }


@st.composite
def block_sparse(draw: st.DrawFn) -> Config:
    config = draw(attention())
    count = config["num_hidden_layers"]
    sparse = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    return config | {
        "model_type": "minimax_m3",
        "sparse_attention_config": {"sparse_attention_freq": sparse, "sparse_index_dim": draw(widths)},
    }


@st.composite
def rwkv(draw: st.DrawFn) -> Config:
    return {"model_type": "rwkv7", "num_hidden_layers": draw(small), "hidden_size": 512, "head_size": 64}


FAMILIES = {
    "attention": attention(),
    "sliding": sliding(),
    "latent": latent(),
    "compressed": compressed(),
    "delta_hybrid": delta_hybrid(),
    "kimi_hybrid": kimi_hybrid(),
    "mamba_hybrid": mamba_hybrid(),
    "parallel_branches": parallel_branches(),
    "mamba1": mamba1(),
    "short_convolution": short_convolution(),
    "shared": shared(),
    "encoder_decoder": encoder_decoder(),
    "block_sparse": block_sparse(),
    "rwkv": rwkv(),
}

models = st.one_of(*FAMILIES.values())
contexts = st.integers(0, 20_000)
