"""Simplified Chinese of ``learn``."""

from __future__ import annotations

from collections.abc import Mapping

NOTES: Mapping[str, str] = {
    "layers_left_out": "未列出 {count} 层：它们不是普通注意力加 FFN 的结构",
}

MESSAGES: Mapping[str, str] = {
    "learn_about": "每个主题都会真正运行一遍；显示的每个数字都是当场算出的。",
    "help.topics": "主题",
    "help.verb.learn": "把数字背后的概念运行一遍：推理、缓存、激活。",
    "help.verb.learn activations": "一层中 15 个激活的一生：维度、字节、去向、由谁优化。",
    "help.option.tokens": "一条序列的 token 数：4096、32k。",
    "help.option.dtype": "激活的数据类型：fp32、bf16、fp16、fp8。默认为模型自身的类型。",
    # 激活
    "life_title": "{model}：一层处理 {tokens}（{dtype}）时产生什么，之后去了哪里",
    "life_group_all": "全部 {count} 层",
    "life_group_some": "{count} 层（{layers}）",
    "life_group_window": "{group}，每个查询只看 {window} 个 token",
    "column_number": "#",
    "column_activation": "激活",
    "column_prefill": "预填充",
    "column_decode": "解码",
    "column_fate": "去向",
    "column_optimiser": "由谁优化",
    "column_dimensions": "维度",
    "life.layer_input": "本层输入",
    "life.normed_input": "归一化后的输入",
    "life.query": "Q",
    "life.key": "K",
    "life.value": "V",
    "life.scores": "分数 Q·K",
    "life.weights": "softmax 权重",
    "life.head_outputs": "各头输出",
    "life.concatenated": "各头拼接",
    "life.attention_output": "o_proj 之后",
    "life.post_attention": "加上输入",
    "life.normed_post_attention": "再归一化",
    "life.gate": "gate_proj",
    "life.up": "up_proj",
    "life.middle": "SiLU(gate) · up",
    "life.down": "down_proj",
    "life.layer_output": "本层输出",
    "fate.residual": "留待相加",
    "fate.discarded": "丢弃",
    "fate.cached": "KV 缓存",
    "fate.passed_on": "下一层",
    "optimiser.flash_attention": "FlashAttention",
    "optimiser.paged_attention": "PagedAttention",
    "life_fates": (
        "有编号的之中：{cached} 个留在缓存，{passed_on} 个传给下一层，{residual} 个留到下一次相加，"
        "{discarded} 个读完即丢。没有编号的行是归一化的输出。"
    ),
    "life_peak_label": "一层的峰值",
    "life_peak": (
        "预填充 {prefill}（此时：{prefill_at}），用 FlashAttention 为 {prefill_flash}；"
        "解码 {decode}，{decode_flash}"
    ),
    "life_vertical_label": "纵向",
    "life_vertical": "每个 token {size} 传给下一层，用完即释放",
    "life_horizontal_label": "横向",
    "life_horizontal": "每层 {size} 留给之后所有 token：即缓存，这些层共 {total}",
    "life_causal": (
        "T 为 {tokens}；解码时只算一个 token，它看到的同样多。分数按普通注意力计：每头 T × T；"
        "因果掩码让其中一半用不到。FlashAttention 省下的是分数的内存和读写，K 和 V 一个字节也不少。"
    ),
}
