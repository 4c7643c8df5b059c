"""English of ``gpus``."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "column_visible": "Visible",
    "column_label": "Label",
    "column_bandwidth": "GB/s",
    "column_tflops": "TFLOPS",
    "column_hardware": "Arch",
    "column_hourly": "$/h",
    "gpus_count": "{count} devices",
    "gpus_none": "no device in the catalogue matches {filter}",
    "gpus_hint": "--memory 80GiB takes any device by its memory; --gpu-file takes a table of your own",
    "gpus_legend": (
        "~ memory: by a rule, no log of this device is known; ~ others: from memory, not looked up. "
        "Visible is the total that torch, HIP or Metal report; 'kvgauge gpus NAME' shows the sources"
    ),
    "gpu_memory": "Visible memory",
    "gpu_smi": "nvidia-smi total",
    "gpu_label": "Label",
    "gpu_bandwidth": "Bandwidth",
    "gpu_tflops": "Dense TFLOPS",
    "gpu_link": "Link",
    "gpu_sram": "On-chip SRAM",
    "gpu_chips": "Chips",
    "gpu_power": "Power",
    "gpu_prices": "Prices",
    "gpu_names": "Names",
    "gpu_unified": "Unified memory",
    "gpu_note": "Note",
    "gpu_exactly": "{central}",
    "gpu_range": "{central} ({low} to {high})",
    "gpu_sourced": "{shown}, {grade}: {source}",
    "gpu_recalled": "{shown}, {grade}",
    "gpu_per_hour": "{usd} $/h",
    "gpu_to_buy": "{usd} $",
    "grade_exact": "exact",
    "grade_measured": "measured",
    "grade_assumed": "assumed",
    "grade_recall": "from memory, not looked up",
    "grade_source": "source",
    "grade_given": "given",
    "unified_working_set": (
        "two thirds of the memory up to 32 GB, three quarters above; sysctl iogpu.wired_limit_mb raises it"
    ),
    "unified_shared_with_system": "the system lives in the same memory",
    "unified_gtt_limit": "the BIOS carve-out or the GTT limit decides",
    "help.verb.gpus": "The accelerators of the catalogue: memory, speed, prices, with sources.",
}
