"""What an engine or a parallel layout can't hold."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # parallel layouts
    "--dcp {0} needs each KV head on {1} ranks, --tp {2} holds each on {3}": (
        "--dcp {0} 要求每个 KV 头在 {1} 个 rank 上各有一份，而 --tp {2} 只有 {3} 份"
    ),
    "at most --dcp {0} with --tp {1}": "配合 --tp {1} 时最多 --dcp {0}",
    "--tp {0} does not divide the {1} attention heads": "{1} 个注意力头不能被 --tp {0} 整除",
    "--tp {0} can": "可用 --tp {0}",
    "--pp {0} exceeds the {1} layers": "--pp {0} 超过模型的 {1} 层",
    "--dcp {0} does not divide --tp {1}": "--tp {1} 不能被 --dcp {0} 整除",
    "decode context parallelism works inside the tensor-parallel ranks": (
        "解码上下文并行位于张量并行的 rank 之内"
    ),
    "{0} {heads} can't be spread over {1} tensor-parallel ranks": (
        "{0} 个{heads}无法分布到 {1} 个张量并行 rank 上"
    ),
    "KV heads": " KV 头",
    "{role?} heads": "{role?}头",
    # engines and their words
    "engine {0} is not known": "未知的引擎 {0}",
    "theory has no versions": "theory 没有版本",
    "write --engine theory": "请写 --engine theory",
    "theory takes no --engine-args": "theory 不接受 --engine-args",
    "K in {0} and V in {1}: this model keeps one latent that is both": (
        "K 用 {0}、V 用 {1}：该模型的 K 与 V 是同一个潜向量"
    ),
    "give one --kv-dtype": "请只给一个 --kv-dtype",
    "transformers keeps the cache in the dtype of activations, not in {0}": (
        "transformers 按激活的 dtype 保存缓存，而不是 {0}"
    ),
    '--engine-args "cache=quantized backend=quanto nbits=4" packs K and V': (
        '--engine-args "cache=quantized backend=quanto nbits=4" 会打包 K 与 V'
    ),
    "transformers keeps the prefix of every sequence, it shares none": (
        "transformers 为每条序列各存一份前缀，不共享"
    ),
    "leave --shared-prefix out": "请去掉 --shared-prefix",
    "cache={0} can't hold {what}: {reason}": "cache={0} 放不下{what}：{reason}",
    "the {kind?} layers of {0}": " {0} 的{kind?}层",
    "DynamicCache without a config makes plain layers only": "没有 config 的 DynamicCache 只建普通层",
    "StaticCache has no layer for it": "StaticCache 没有对应的层",
    "QuantizedCache takes models whose layers are all full attention": (
        "QuantizedCache 只支持所有层都是全注意力的模型"
    ),
    "cache={0} is known on one GPU": "cache={0} 只知道在一个 GPU 上的情形",
    "leave --tp, --pp and --dp out, or give cache=dynamic": "请去掉 --tp、--pp 与 --dp，或给 cache=dynamic",
    "cache={0} can't hold the layers of {1}: {reason}": "cache={0} 放不下 {1} 的层：{reason}",
    "cross-attention reads its cache without fetching it from the host": (
        "交叉注意力读取自己的缓存时不会先从主机内存取回"
    ),
    "some keep their cache outside the layers that are offloaded": "有些层的缓存不在会被卸载的缓存层里",
    "layers with a state have a cache object of their own, which is not offloaded": (
        "带状态的层有自己的缓存对象，不会被卸载"
    ),
    "before 5.24 a layer with such a state beside its attention is not fetched from the host": (
        "5.24 之前，注意力旁带有这种状态的层不会从主机内存取回"
    ),
    "StaticCache offloads no sliding layer, and stops where all layers are": (
        "StaticCache 不卸载滑动窗口层，全部层都是时会中止"
    ),
    "cache=dynamic is what the model makes itself": "模型自己建立的是 cache=dynamic",
    "transformers {0} has no {1} backend for its quantised cache": "transformers {0} 的量化缓存没有 {1} 后端",
    "it has {0}": "可用：{0}",
    "QuantizedCache takes decoder-only models": "QuantizedCache 只支持纯解码器模型",
    "cache=dynamic or cache=static": "可用 cache=dynamic 或 cache=static",
    "the bytes of quantised groups with fp32 scales are not known": "带 fp32 缩放的量化分组的字节数未知",
    "give a model in bf16 or fp16": "请用 bf16 或 fp16 的模型",
    "cache={0} does not take {1}": "cache={0} 不接受 {1}",
    "--engine-args: {reason}": "--engine-args：{reason}",
    "--engine-args: {0} is not of the form word=value": "--engine-args：{0} 不是 word=value 的形式",
    "for example cache=static max_cache_len=4096": "例如 cache=static max_cache_len=4096",
    "--engine-args gives {0} twice": "--engine-args 中 {0} 出现了两次",
    "nbits={0} is not known for the {1} backend": "{1} 后端没有 nbits={0}",
    "{0} packs {1} bits": "{0} 打包 {1} 位",
    "{0}={1} must be a whole number, at least {2}": "{0}={1} 须为整数，且不小于 {2}",
    "it takes {0}": "它接受 {0}",
    "it takes no further words": "它没有别的参数",
    "--engine-args: {0} is not known to {1}": "--engine-args：{1} 不认识 {0}",
    "--engine-args: {0} is not known to transformers": "--engine-args：transformers 不认识 {0}",
    "this version keeps K and V of every head: the config has no qk_nope_head_dim or v_head_dim": (
        "此版本保留每个头的 K 与 V，而配置中没有 qk_nope_head_dim 或 v_head_dim"
    ),
    "add them, or ask for transformers 5.15 or later, which keeps latents": (
        "请补上，或用保留潜向量的 transformers 5.15 及以上版本"
    ),
    "the cache rules of {0} {1} are not known, only {2} and later": (
        "{0} {1} 的缓存规则未知，仅知 {2} 及以上版本"
    ),
    "--engine {0}@{1} or a later version": "请用 --engine {0}@{1} 或更新的版本",
    "{0} is not a version of transformers": "{0} 不是 transformers 的版本",
    "for example transformers@5.24.0": "例如 transformers@5.24.0",
    # kinds of layers
    "full": "全注意力",
    "sliding": "滑动窗口",
    "chunked": "分块",
    "compressed": "压缩",
    "block_index": "块索引",
    "cross": "交叉注意力",
    "convolution": "卷积",
    "shared": "共享",
    "none": "无缓存",
    # values of notes
    "in the modules of the model": "模型的模块中",
    "in a list beside the layers of the cache": "缓存各层旁边的列表中",
    "recurrent in {0}": "循环状态（{0}）",
    "conv in {0}": "卷积（{0}）",
    "index in {0}": "索引（{0}）",
    "compressor in {0}": "压缩器（{0}）",
    "rope in {0}": "RoPE 部分（{0}）",
}
