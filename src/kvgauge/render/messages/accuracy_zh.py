"""Simplified Chinese of ``accuracy``."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "accuracy_total": (
        "由规则得出且输入全部写明的 {count} 个数字中，{exact} 个完全一致（{share} %），来自 {source}"
    ),
    "accuracy_engine": "引擎",
    "accuracy_quantity": "量",
    "accuracy_basis": "输入",
    "accuracy_n": "n",
    "accuracy_exact": "一致",
    "accuracy_within": "0.5 %",
    "accuracy_off": "不符",
    "accuracy_skipped": "跳过",
    "accuracy_median": "中位",
    "accuracy_worst": "最差",
    "accuracy_held": "落在区间",
    "accuracy_width": "区间宽",
    "accuracy_over": "最乐观",
    "accuracy_optimistic": "超 0.5 GiB",
    "accuracy_record": "记录",
    "accuracy_predicted": "预测",
    "accuracy_measured": "实测",
    "accuracy_cause": "原因",
    "accuracy_no_cause": "未知",
    "accuracy_named": "由规则得出、输入已写明、但不完全一致的数字",
    "accuracy_named_line": (
        "{accuracy_record} {accuracy_quantity}：{accuracy_predicted}，"
        "实测 {accuracy_measured}：{accuracy_cause}"
    ),
    "accuracy_more": "另有 {count} 个；--json 列出全部",
    "accuracy_left_out": "估计值：每个模型家族仅由其余家族预测",
    "accuracy_legend": (
        "一致：在打印的舍入之内。输入写明：全部写明；默认：记录未写的由引擎默认值补上；猜测：记录猜了某个输入。"
        "--json 列出每个数字以及其余被跳过的原因"
    ),
    "basis_hard": "写明",
    "basis_default": "默认",
    "basis_soft": "猜测",
    "help.verb.accuracy": "用记录下来的实测值检验预测：误差表。",
    "help.about.accuracy": "FILE 每行一条实测记录，格式见 docs/accuracy.md；不给则重放随附的记录。",
    "help.option.configs": "记录所指配置的文件夹（其中的 configs/real、configs/logs 或文件）。",
}
