"""Recurrent mechanisms: a state of constant size, and the last columns of a short convolution.

Which recurrence a "linear" layer is, its geometry fields say (``SIGNATURES``); the model type's row
helps only where no field does. Formulas: Mamba-1 (arXiv 2312.00752), Mamba-2 (2405.21060), gated delta
net (2412.06464), Kimi delta attention (2510.26692), lightning attention (2401.04658), RG-LRU
(2402.19427), GLA (2312.06635).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from kvgauge.dtypes import canonical_dtype
from kvgauge.errors import InvalidFieldError, InvalidRequestError, UnknownArchitectureError
from kvgauge.layers import LayerCache, LayerKind, Mechanism, Shard, Stream
from kvgauge.readers.hf.config import MAX_HEADS, ConfigView, as_count
from kvgauge.readers.hf.mixers.attention import attention_geometry, head_width, query_heads
from kvgauge.readers.hf.rows import ModelTypeRow
from kvgauge.readers.hf.signatures import SIGNATURES
from kvgauge.readers.streams import conv_stream, shifted_tokens_stream, state_stream
from kvgauge.readers.values import MAX_KERNEL


def state_mechanism(view: ConfigView, row: ModelTypeRow) -> Mechanism:
    """Return which recurrence the config describes.

    Raises:
        UnknownArchitectureError: no geometry that a known recurrence has.
    """
    if row.state is not None:
        return Mechanism(row.state)
    for names, mechanism in SIGNATURES:
        if all(view.find(name) is not None for name in names):
            return mechanism
    raise UnknownArchitectureError(
        "the config has recurrent layers, but no geometry of a known recurrence",
        hint="known: gated delta net, Kimi delta attention, lightning, Mamba-1, Mamba-2, RG-LRU, RWKV, GLA",
        field=view.path + "layer_types",
    )


def state_cache(view: ConfigView, row: ModelTypeRow, index: int, beside: str = "state") -> LayerCache:
    """Return the state of one recurrent layer, convolution included.

    ``beside`` is the attention word of a layer that has both.
    """
    mechanism = state_mechanism(view, row)
    streams, names = _BUILDERS[mechanism](view, row, beside)
    return LayerCache(index, LayerKind.RECURRENT, mechanism, streams, sources=view.sources(*names))


def short_convolution_cache(view: ConfigView, index: int) -> LayerCache:
    """Return the columns of one short-convolution layer (LFM2): hidden_size x (conv_L_cache - 1)."""
    kernel = view.count("conv_L_cache", high=MAX_KERNEL)
    channels = view.optional_count("conv_dim") or view.count("hidden_size")
    stream = conv_stream(channels, 1, kernel)
    return LayerCache(
        index,
        LayerKind.CONVOLUTION,
        Mechanism.SHORT_CONVOLUTION,
        (stream,),
        sources=view.sources("conv_L_cache", "conv_dim", "hidden_size"),
    )


_MAMBA2_HEADS = ("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")

Built = tuple[tuple[Stream, ...], tuple[str, ...]]


def declared_state_dtype(view: ConfigView) -> str | None:
    """Return the dtype that the config asks for its recurrent state, canonical, or None."""
    for name in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"):
        word = view.text(name)
        if word is not None and word != "auto":
            try:
                return canonical_dtype(word)
            except InvalidRequestError as error:
                where = view.path + name
                raise InvalidFieldError(f"{where}: {error.message}", hint=error.hint, field=where) from None
    return None


def _first_count(view: ConfigView, names: tuple[str, ...], *, high: int, because: str) -> int:
    for name in names:
        value = view.optional_count(name, high=high)
        if value is not None:
            return value
    raise view.missing(names[0], because)


def _gated_delta_net(view: ConfigView, row: ModelTypeRow, beside: str) -> Built:
    if view.has("efficient_attention_config"):
        return _jet_block(view)
    key_heads = view.count("linear_num_key_heads", high=MAX_HEADS)
    value_heads = view.count("linear_num_value_heads", high=MAX_HEADS)
    key_dim, value_dim = view.count("linear_key_head_dim"), view.count("linear_value_head_dim")
    kernel = view.count("linear_conv_kernel_dim", high=MAX_KERNEL)
    names = ("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim",
             "linear_conv_kernel_dim", "mamba_ssm_dtype")  # fmt: skip
    streams = (
        conv_stream(key_heads, 2 * key_dim, kernel),
        conv_stream(value_heads, value_dim, kernel),
        state_stream(value_heads, value_dim * key_dim, declared_state_dtype(view)),
    )
    return streams, names


def _jet_block(view: ConfigView) -> Built:
    """Jet-Nemotron: a gated delta net whose convolution runs over the values alone."""
    section = view.section("efficient_attention_config")
    jet = section.section("jet") if section else None
    if jet is None:
        raise view.missing("efficient_attention_config.jet", "describes the recurrent layers")
    heads, key_dim = jet.count("num_heads", high=MAX_HEADS), jet.count("head_dim")
    value_dim = scaled_width(jet, "expand_v", key_dim)
    kernel = jet.count("conv_size", high=MAX_KERNEL)
    return (conv_stream(heads, value_dim, kernel), state_stream(heads, key_dim * value_dim, None)), (
        "efficient_attention_config",
    )


def scaled_width(view: ConfigView, name: str, width: int, default: float | None = None) -> int:
    """Return ``int(width x factor)`` for an expansion factor that may be fractional."""
    found = view.find(name)
    value = found[1] if found else default
    where = view.path + name
    if value is None:
        raise view.missing(name, "scales the width of the state")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1024:
        raise InvalidFieldError(f"{where} must be a positive number", field=where)
    return max(1, int(Fraction(value) * width))


def _kimi_delta(view: ConfigView, row: ModelTypeRow, beside: str) -> Built:
    section = view.section("linear_attn_config")
    if section is not None and section.has("head_dim"):
        heads, width = section.count("num_heads", high=MAX_HEADS), section.count("head_dim")
        kernel = section.count("short_conv_kernel_size", high=MAX_KERNEL)
    else:
        heads, width = view.count("linear_num_heads", high=MAX_HEADS), view.count("linear_head_dim")
        kernel = view.count("linear_conv_kernel_dim", high=MAX_KERNEL)
    streams = (
        conv_stream(heads, 3 * width, kernel),
        state_stream(heads, width * width, declared_state_dtype(view)),
    )
    return streams, ("linear_attn_config", "linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim")


def _lightning(view: ConfigView, row: ModelTypeRow, beside: str) -> Built:
    heads = query_heads(view)
    if heads is None:
        raise view.missing("num_attention_heads", "gives the heads of the state")
    width = head_width(view, row, 0, 1)
    return (state_stream(heads, width * width, declared_state_dtype(view)),), (
        "num_attention_heads",
        "head_dim",
    )


def _mamba2_heads(view: ConfigView) -> tuple[int, int]:
    """Return (heads, head width); a config that states only the inner width has that many heads of one."""
    inner = view.optional_count("mamba_d_ssm")
    if inner is not None and not any(view.has(name) for name in _MAMBA2_HEADS):
        return inner, 1
    heads = _first_count(view, _MAMBA2_HEADS, high=MAX_HEADS, because="gives the heads of the state")
    return heads, _mamba2_head_width(view, heads)


def _mamba2(view: ConfigView, row: ModelTypeRow, beside: str) -> Built:
    heads, width = _mamba2_heads(view)
    state_names = ("ssm_state_size", "mamba_d_state", "state_size")
    state = _first_count(view, state_names, high=1 << 20, because="is the size of the state")
    groups = _first_count(
        view, ("n_groups", "mamba_n_groups", "mamba_ngroups", "ssm_n_groups"), high=MAX_HEADS,
        because="gives the groups that share B and C",
    )  # fmt: skip
    kernel = _first_count(
        view,
        ("conv_kernel", "mamba_d_conv", "mamba_conv_kernel"),
        high=MAX_KERNEL,
        because="is the convolution's width",
    )
    streams = (
        conv_stream(heads, width, kernel),
        conv_stream(groups, 2 * state, kernel, Shard.GROUPS),
        state_stream(heads, width * state, declared_state_dtype(view)),
    )
    names = (*_MAMBA2_HEADS, "mamba_head_dim", "mamba_d_head", "mamba_headdim", "mamba_d_ssm", *state_names,
             "n_groups", "mamba_n_groups", "mamba_ngroups", "conv_kernel",
             "mamba_d_conv", "mamba_ssm_cache_dtype")  # fmt: skip
    return streams, names


def _mamba2_head_width(view: ConfigView, heads: int) -> int:
    for name in ("mamba_head_dim", "mamba_d_head", "mamba_headdim"):
        found = view.find(name)
        if found is not None and found[1] != "auto":
            return as_count(found[1], found[0], low=1, high=1 << 26)
    inner = view.optional_count("mamba_d_ssm")
    if inner is None and (view.has("mamba_expand") or view.has("expand")):
        inner = _inner_width(view)
    if inner is None:
        width = view.optional_count("head_dim")
        if width is None:
            raise view.missing("mamba_head_dim", "is the width of a state head")
        return width
    if inner % heads:
        raise InvalidFieldError(
            f"{inner} inner channels do not divide into {heads} heads", field=view.path + "mamba_d_ssm"
        )
    return inner // heads


def _inner_width(view: ConfigView) -> int:
    hidden = view.count("hidden_size")
    name = "mamba_expand" if view.find("mamba_expand") is not None else "expand"
    return scaled_width(view, name, hidden)


def _mamba1(view: ConfigView, row: ModelTypeRow, beside: str) -> Built:
    inner = view.optional_count("d_inner")
    if inner is None and row.reader == "recurrent":
        inner = view.optional_count("intermediate_size")  # of a model without MLPs, it is the inner width
    inner = inner or _inner_width(view)
    state = _first_count(
        view,
        ("mamba_d_state", "state_size", "ssm_state_size"),
        high=1 << 20,
        because="is the size of the state",
    )
    kernel = _first_count(
        view, ("mamba_d_conv", "conv_kernel", "d_conv"), high=MAX_KERNEL, because="is the convolution's width"
    )
    streams = (conv_stream(inner, 1, kernel), state_stream(inner, state, declared_state_dtype(view)))
    names = (
        "hidden_size",
        "intermediate_size",
        "mamba_expand",
        "expand",
        "mamba_d_state",
        "state_size",
        "mamba_d_conv",
        "conv_kernel",
    )
    return streams, names


def _rg_lru(view: ConfigView, row: ModelTypeRow, beside: str) -> Built:
    width = view.optional_count("lru_width") or view.count("hidden_size")
    kernel = view.count("conv1d_width", high=MAX_KERNEL)
    streams = (conv_stream(width, 1, kernel), state_stream(width, 1, declared_state_dtype(view)))
    return streams, ("lru_width", "hidden_size", "conv1d_width")


def _gated_linear(view: ConfigView, row: ModelTypeRow, beside: str) -> Built:
    heads = view.count("num_heads" if view.has("num_heads") else "num_attention_heads", high=MAX_HEADS)
    hidden = view.count("hidden_size")
    key_width = scaled_width(view, "expand_k", hidden)
    value_width = scaled_width(view, "expand_v", hidden)
    if key_width % heads or value_width % heads:
        raise InvalidFieldError(
            f"{heads} heads do not divide the state of {key_width} x {value_width}", field="num_heads"
        )
    streams = [state_stream(heads, (key_width // heads) * (value_width // heads), declared_state_dtype(view))]
    if view.flag("use_short_conv", default=False):
        kernel = view.count("conv_size", high=MAX_KERNEL)
        streams.insert(0, conv_stream(2 * key_width + value_width, 1, kernel))
    return tuple(streams), ("num_heads", "hidden_size", "expand_k", "expand_v", "use_short_conv")


def _inkling(view: ConfigView, row: ModelTypeRow, beside: str) -> Built:
    """Inkling: short convolutions over K, V, the attention output and the MLP output of every layer."""
    kernel = _first_count(
        view, ("sconv_kernel_size", "conv_kernel_size"), high=MAX_KERNEL, because="is their width"
    )
    hidden = view.count("hidden_size")
    heads, key_width, value_width = attention_geometry(view, row, 0, 1, beside)
    streams = (
        conv_stream(heads, key_width + value_width, kernel),
        conv_stream(2 * hidden, 1, kernel, Shard.REPLICATED),
    )
    return streams, (
        "sconv_kernel_size",
        "conv_kernel_size",
        "num_key_value_heads",
        "head_dim",
        "hidden_size",
    )


_RWKV_4 = ("rwkv", "rwkv4")


def _rwkv(view: ConfigView, row: ModelTypeRow, beside: str) -> Built:
    """RWKV-4 keeps five hidden vectors, RWKV-5 and later a matrix a head and two shifted tokens."""
    hidden = view.count("hidden_size")
    width = view.optional_count("head_size") or view.optional_count("head_dim")
    if width is None and row.model_type in _RWKV_4:
        attention = view.optional_count("attention_hidden_size") or hidden
        return (
            shifted_tokens_stream(hidden, 2),
            state_stream(attention, 3, None),
        ), ("hidden_size", "attention_hidden_size")
    inner = view.optional_count("attention_hidden_size") or hidden
    heads = query_heads(view)
    if width is None and (heads is None or inner % heads):
        raise view.missing("head_size", "is the width of a state head")
    width = width or inner // (heads or 1)
    if inner % width:
        raise InvalidFieldError(
            f"{inner} channels do not divide into heads of {width}", field=view.path + "head_size"
        )
    streams = (
        shifted_tokens_stream(hidden, 2),
        state_stream(inner // width, width * width, declared_state_dtype(view)),
    )
    return streams, ("hidden_size", "attention_hidden_size", "head_size", "head_dim")


_BUILDERS: Mapping[Mechanism, Callable[[ConfigView, ModelTypeRow, str], Built]] = {
    Mechanism.GATED_DELTA_NET: _gated_delta_net,
    Mechanism.KIMI_DELTA: _kimi_delta,
    Mechanism.LIGHTNING: _lightning,
    Mechanism.MAMBA1: _mamba1,
    Mechanism.MAMBA2: _mamba2,
    Mechanism.RG_LRU: _rg_lru,
    Mechanism.GATED_LINEAR: _gated_linear,
    Mechanism.RWKV: _rwkv,
    Mechanism.INKLING_CONVOLUTIONS: _inkling,
}
