"""Simplified Chinese of ``verify``."""

from __future__ import annotations

from collections.abc import Mapping

NOTES: Mapping[str, str] = {
    "verify_name_model": "请用 --model MODEL 给出模型：{hint}",
    "verify_shorter": "--max-model-len {longest} 是此缓存池能启动的最长长度",
    "verify_share": "缓存池还缺 {lacks}：--gpu-memory-utilization {share} 即可",
    "verify_ranks": "缓存池还缺 {lacks}，超出该卡所有：请增加 rank，或减少位数",
    "verify_lacks": "缓存池还缺 {lacks}",
    "verify_name_card": "请用 --gpu NAME 给出显卡：由此可知差多少，以及怎样才能放下",
    "verify_llama_era": "日志没有写明 llama.cpp 的构建；按其用词取同时期的 {build}",
    "verify_batch": "--max-num-batched-tokens {half} 取代 {tokens}，可为缓存池腾出约 {size} 的激活内存",
    "verify_sequences": "--max-num-seqs 至多 {blocks}：每条运行中的序列占一页状态",
    "verify_token_line": (
        "token 行不是容量："
        "一个请求再短也占 {short} 块，{longest} 个 token 时占 {blocks} 块，各层分为 {groups} 组"
    ),
    "verify_replicated": "潜向量在 {ranks} 个 rank 上各存一份：改用 --data-parallel-size 分摊请求",
    "verify_fp8": "--kv-cache-dtype fp8 时，一个最长请求只需 {share} 的字节",
    "verify_fraction": (
        "权重之后 {before} GiB 中剩 {after} GiB：--mem-fraction-static 须大于 {least}，例如 {share}"
    ),
    "verify_slots": "窗口池按 {slots} 个槽位留单元：-np 1 可省 {size}",
    "verify_micro_batch": "-ub {tokens} 占用 {size} 的工作缓冲；-ub 512 更少，但预填充更慢",
    "verify_cache_types": "缓存占 {size}：-ctk q8_0 -ctv q8_0 减半，或按比例缩短 -c",
    "verify_ranks_differ": "各 rank 不同：{field} 从 {low} 到 {high}；以最小的为准",
    "verify_planned": "规划器的 {size} 是加载前的计划，不是实际分配",
    "verify_free_share": "空闲 {size}：--gpu-memory-utilization 至多 {share}，或结束占用此卡的其他程序",
    "verify_version_unknown": "日志没有写明 {engine} 的版本；按最新规则计算",
}

MESSAGES: Mapping[str, str] = {
    "verify_headline": "{engine}，{model}：{count} 个数字中 {met} 个相符",
    "verify_no_model": "模型未知",
    "verify_quantity": "量",
    "verify_measured": "日志",
    "verify_predicted": "预测",
    "verify_difference": "相差",
    "verify_verdict": "结论",
    "verify_because": "由来",
    "verify_advice": "可以调整",
    "verify_earlier": "日志中还有更早的 {count} 次启动；见 --json",
    "verify_agrees_with": "若为 {setting} 则相符，日志中没有写明",
    "verdict_agrees": "一致",
    "verdict_near": "0.5 % 以内",
    "verdict_in_range": "在区间内",
    "verdict_off": "不符",
    "verdict_not_predicted": "未预测",
    "failure_pool_too_small": "失败：一个最长请求放不进缓存池",
    "failure_share_not_free": "失败：启动时设备的空闲显存少于所要求的比例",
    "failure_no_pool": "失败：扣除权重与试运行后，缓存池一无所剩",
    "failure_sequences_exceed_blocks": "失败：允许的序列数多于状态页数",
    "failure_out_of_memory": "失败：设备拒绝了一次分配",
    "help.verb.verify": "逐行核对引擎的启动日志与预测。",
    "help.about.verify": (
        "LOG 是文件，或 - 表示管道：vLLM、SGLang、llama.cpp、Ollama、TensorRT-LLM "
        "的启动日志，可混有其他输出。"
        "引擎、版本、模型与参数从日志读出；选项补足其余。"
    ),
    "help.option.model": "模型；用于日志没有写明、或只写了路径时。",
}
