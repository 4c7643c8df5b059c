"""Simplified Chinese of ``gpus`` and of notes on devices."""

from __future__ import annotations

from collections.abc import Mapping

NOTES: Mapping[str, str] = {
    "gpu_form_assumed": "{asked} 按 {name} 理解；其他型号：{others}",
    "gpu_memory_shared": "{name}：系统共享 {whole} 内存，运行时可用 {part}；若改过上限，请给出 --memory",
}

MESSAGES: Mapping[str, str] = {
    "column_visible": "可见显存",
    "column_label": "标称",
    "column_bandwidth": "GB/s",
    "column_tflops": "TFLOPS",
    "column_hardware": "架构",
    "column_hourly": "美元/时",
    "gpus_count": "{count} 种设备",
    "gpus_none": "目录中没有与 {filter} 匹配的设备",
    "gpus_hint": "--memory 80GiB 可按显存指定任何设备；--gpu-file 使用自己的设备表",
    "gpus_legend": "~ 显存：按规则推得，尚无该设备的日志；~ 其他：凭记忆的规格，未查证。"
    "可见显存是 torch、HIP、Metal 报告的总量；'kvgauge gpus NAME' 显示来源",
    "gpu_memory": "可见显存",
    "gpu_smi": "nvidia-smi 总量",
    "gpu_label": "标称",
    "gpu_bandwidth": "带宽",
    "gpu_tflops": "稠密 TFLOPS",
    "gpu_link": "互连",
    "gpu_sram": "片上 SRAM",
    "gpu_chips": "芯片数",
    "gpu_power": "功耗",
    "gpu_prices": "价格",
    "gpu_names": "名称",
    "gpu_unified": "统一内存",
    "gpu_note": "备注",
    "gpu_exactly": "{central}",
    "gpu_range": "{central}（{low} 到 {high}）",
    "gpu_sourced": "{shown}，{grade}：{source}",
    "gpu_recalled": "{shown}，{grade}",
    "gpu_per_hour": "{usd} 美元/时",
    "gpu_to_buy": "{usd} 美元",
    "grade_exact": "精确",
    "grade_measured": "实测",
    "grade_assumed": "推定",
    "grade_recall": "凭记忆，未查证",
    "grade_source": "有来源",
    "grade_given": "给定",
    "unified_working_set": (
        "32 GB 及以下为内存的三分之二，以上为四分之三；可用 sysctl iogpu.wired_limit_mb 调高"
    ),
    "unified_shared_with_system": "与系统共用同一内存",
    "unified_gtt_limit": "由 BIOS 划分或 GTT 上限决定",
    "help.verb.gpus": "目录中的加速器：可见显存、带宽、算力、价格及来源。",
}
