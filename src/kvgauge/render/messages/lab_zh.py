"""Simplified Chinese of the topics of ``learn`` that run mechanisms."""

from __future__ import annotations

from collections.abc import Mapping

NOTES: Mapping[str, str] = {
    "flash_layers_left_out": "有 {count} 层不对全部 token 做注意力，或宽度不同，未计入",
    "paged_untested": "有 {count} 种方案从未让请求等待；增加请求或缩小池才能检验",
}

MESSAGES: Mapping[str, str] = {
    "help.verb.learn mechanisms": (
        "MHA、GQA、MQA、MLA、滑动窗口、delta 规则、Mamba-2、卷积：逐一运行，数出缓存的字节。"
    ),
    "help.verb.learn flash": "FlashAttention：分块结果等于普通注意力；搬运量既实测又有公式。",
    "help.verb.learn paged": "PagedAttention：同一批请求，分页与连续内存的对比。",
    "help.verb.learn quantised": "量化缓存：每种格式的字节与输出误差。",
    "help.option.tile": "一次放入的查询行数与键行数：128x64。",
    "help.option.pool": "池中可放的 token 数：16k。",
    "help.option.requests": "请求数。默认 200。",
    "help.option.block_sizes": "每块的 token 数，多个用逗号分隔：1,16,64。",
    "help.option.head_dim": "头的宽度。默认 128。",
    "help.option.outliers": "K 中大十倍的通道数。默认 2。",
    "lab_yes": "是",
    "lab_no": "否",
    "lab_difference": "相差",
    # 机制
    "lab_layers_title": "每种机制一层，逐个运行 {tokens}",
    "lab_mechanism": "机制",
    "lab_a_token": "下一个 token",
    "lab_fixed": "固定",
    "lab_counted": "数出",
    "lab_size_says": "size 算出",
    "lab_contexts_equal": "相等",
    "lab_layers_legend": (
        "下一个 token：最后一个 token 增加的字节。固定：第一个 token 之前就占用。数出：结束时数组的字节；"
        "K、V、潜向量、卷积为 bf16，状态为 fp32。相等：数出与算出一致的上下文个数。相差：逐个运行与一次运行"
        "（循环层：按块）输出之差。"
    ),
    "lab_absorbed": "MLA 吸收与解压两种形式：输出最多相差最大值的 {off}。",
    "lab_word.mha": "MHA",
    "lab_word.gqa": "GQA",
    "lab_word.mqa": "MQA",
    "lab_word.sliding": "滑动窗口",
    "lab_word.mla": "MLA",
    "lab_word.gated_delta_net": "delta 规则",
    "lab_word.mamba2": "Mamba-2",
    "lab_word.short_convolution": "卷积",
    "lab_word.none": "无缓存",
    "lab_models_title": "各模型的层结构，运行 {tokens}；真实大小按 {context} 计",
    "lab_model": "模型",
    "lab_layers": "层",
    "lab_true_cache": "缓存",
    "lab_true_state": "状态",
    "lab_to_first": "比首行",
    "lab_models_equal": "{asked} 个上下文中有 {equal} 个，数出与算出的字节一致。",
    "lab_models_legend": (
        "数出：所有宽度除以 {divisors} 后运行；层数、头数、组数与模型相同，状态按平方缩小。"
        "缓存随上下文增长；状态不增长，上下文短时反而更大。“无缓存”的层（MLP、专家）不保存任何东西。"
    ),
    # flash
    "flash_run_title": "运行一个头，{tokens} 个 token，宽 {width}：搬运与同时放入的元素数",
    "flash_tile": "分块",
    "flash_no_tile": "不分块",
    "flash_read": "读",
    "flash_written": "写",
    "flash_peak": "同时放入",
    "flash_causal": "因果：搬运",
    "flash_formula": "等于公式",
    "flash_run_legend": (
        "分块：查询 × 键。不分块时，分数与权重都要写出再读回（4 N² 个元素），掩码省不下任何搬运；分块时它们"
        "留在快速存储中，被掩码整块遮住的分块直接跳过。相差：输出的最大差。"
    ),
    "flash_layer_title": "{model}：{layers} 个注意力层之一，{heads} 个头，宽 {width}，{tokens}，{dtype}",
    "flash_what": "预填充，一条序列，一层",
    "flash_head_scores": "一个头的分数",
    "flash_all_scores": "所有头的分数",
    "flash_score_passes": "分数写出并读回",
    "flash_weight_passes": "softmax 权重写出并读回",
    "flash_all_passes": "两者之和：分块省去的部分",
    "flash_plain_moved": "不分块时的全部搬运",
    "flash_tiled_moved": "按 {tile} 分块时的全部搬运",
    "flash_tiled_causal": "同上，跳过被遮住的分块",
    "flash_decode_passes": "解码一个 token：分数与权重",
    "flash_decode_moved": "解码一个 token：全部搬运",
    "flash_load_passes": "{layers} 层、{sequences} 条序列：分数与权重",
    "flash_load_tiled": "同样的负载按因果分块：全部",
    "flash_cache": "该负载的 KV 缓存，分块与否都一样",
    "flash_left_out": (
        "因果掩码只留下 {seen} 的分数。每 {rows} 个查询，K 和 V 要经过一次：查询块高一倍，次数减半。"
        "GPU 的 L2 缓存以及共享 K、V 的头会省去其中一部分，此处未计。一个头同时放入 {peak} 个元素。"
        "只算分数的数字适用于预填充、一层、一条序列；解码时读的主要是 K 和 V。"
    ),
    # paged
    "paged_title": (
        "{requests} 个请求（结束时平均 {mean} 个 token，最长 {longest} 个）经过可放 {pool} 个 token "
        "的池；最长允许 {maximum} 个"
    ),
    "paged_scheme": "方案",
    "paged_filled": "已用",
    "paged_reserved": "预留",
    "paged_internal": "内部碎片",
    "paged_external": "外部碎片",
    "paged_free": "空闲",
    "paged_running": "并发",
    "paged_ratio": "比首行",
    "paged_scheme.reserve_maximum": "按最大长度",
    "paged_scheme.buddy": "伙伴系统",
    "paged_scheme.true_length": "按真实长度",
    "paged_scheme.paged": "每块 {tokens}",
    "paged_legend": (
        "有请求等待时各部分占池的比例。预留：留给将要生成的 token。内部碎片：划出却永远不用。外部碎片："
        "空闲总量够下一个请求，但没有够长的一段。空闲：不够下一个请求。并发：平均同时运行的请求数。伙伴系统"
        "与真实长度事先知道请求会有多长；真实的服务器不知道。"
    ),
    "paged_quote.article": "文章（A.4）引文：不分页 {low} 至 {high}，分页 {paged} 以上。",
    "paged_quote.arXiv": "论文（arXiv 2309.06180）引文：{low} 至 {high}，分页 {paged}。",
    "paged_sharing_title": "共享，每块 4 个 token",
    "paged_deed": "操作",
    "paged_used": "占用块",
    "paged_used_idle": "{used}（+{idle} 留存）",
    "paged_known": "命中",
    "paged_copied": "复制",
    "paged_tables": "各序列的块",
    "paged_deed.allocate": "10 个 token 的提示",
    "paged_deed.allocate_alike": "另一个，9 个中 8 个相同",
    "paged_deed.fork": "第一个分叉",
    "paged_deed.append_to_shared": "其副本写一个 token",
    "paged_deed.free_all": "全部结束",
    "paged_deed.allocate_again": "第二个的开头再来一次",
    "paged_decode_title": (
        "解码第 {position} 个 token：{heads} 个查询头，{kv_heads} 个 KV 头，{tiles} 页作为在线 softmax 的分块"
    ),
    "paged_page_tokens": "token",
    "paged_page_block": "块",
    "paged_decode_equal": "与把同样的行连续存放的普通注意力最多相差 {off}。",
    # 量化
    "quantised_title": (
        "{about}：{tokens}，{heads} 个 KV 头，宽 {width}；最大通道与居中通道之比：K {keys}，V {values}"
    ),
    "quantised_layers": "{layers} 层 × {heads}",
    "quantised_sample.even": "随机，各通道相同",
    "quantised_sample.outliers": "随机，K 的 {outliers} 个通道大 {factor} 倍",
    "quantised_sample.shipped_model": "自带模型，文本由它自己生成",
    "quantised_format": "格式",
    "quantised_scale": "缩放",
    "quantised_ratio": "比 bf16",
    "quantised_keys": "仅 K",
    "quantised_values": "仅 V",
    "quantised_both": "K 和 V",
    "scaling.none": "无",
    "scaling.tensor": "整个张量",
    "scaling.token_head": "每 token 每头",
    "scaling.block16": "每 16 个元素",
    "quantised_legend": (
        "仅 K、仅 V、K 和 V：该部分按此格式存放、其余为 fp32 时，注意力输出的均方根误差与输出之比。字节按编"
        "码与缩放数出；整个张量的缩放与权重放在一起。"
    ),
}
