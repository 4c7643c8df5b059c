"""Simplified Chinese of what SGLang and TensorRT-LLM print of their pools, and of what was assumed."""

from __future__ import annotations

from collections.abc import Mapping

NOTES: Mapping[str, str] = {
    "latent_assumed": "尚不确定 sglang 是否按潜向量保存该类模型；此处假定如此",
    "nvfp4_workspace_assumed": "nvfp4 解包所用的缓冲区未计入",
    "drafter_priced_assumed": "草稿模型的配置未知；按与模型自身相同的一层计算",
    "attention_groups_assumed": "注意力组按副本显示：缓存是精确的；权重中只有专家按所有 rank 进一步切分",
    "weight_cut_assumed": "每个 rank 的权重按张量并行的通用规则计算；该引擎自己的切分没有测量过",
    "windows_assumed": "tensorrt-llm 如何在各窗口之间分配内存读自其代码，尚无日志证实",
    "sparse_index_assumed": "tensorrt-llm 如何保存稀疏索引的键读自其代码，尚无日志证实",
    "states_assumed": "tensorrt-llm 如何保存循环状态读自其代码，尚无日志证实",
    "states_set_aside": "缓存池先留出 {batch} 条序列的状态，共 {size}：由 --max_batch_size 决定",
}

MESSAGES: Mapping[str, str] = {
    "fit_tokens": "{tokens} token",
    "fit_tokens_window": "窗口池 {tokens}",
    "fit_tokens_states": "{slots} 个状态槽",
    "fit_tokens_requests": "最多 {requests} 个请求",
    "fit_tokens_join": "，",
    "engine.sglang": "SGLang：按页存放的 token、窗口池、状态槽，以及决定它们的默认值",
    "engine.tensorrt-llm": "TensorRT-LLM：由空闲显存的份额得出的块、各窗口的池、整个批次的状态",
    "grade_why.latent_assumed": "引擎如何保存该类模型的潜向量未知",
    "grade_why.nvfp4_workspace_assumed": "nvfp4 解包所用的缓冲区未知",
    "grade_why.drafter_priced_assumed": "草稿模型的各层未知",
    "grade_why.windows_assumed": "各窗口之间如何分配内存尚无日志证实",
    "grade_why.sparse_index_assumed": "稀疏索引的键如何保存尚无日志证实",
    "grade_why.states_assumed": "状态如何保存尚无日志证实",
}
