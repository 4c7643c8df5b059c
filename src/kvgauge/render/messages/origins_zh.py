"""Chinese for where figures and rules come from. Names of projects, files and products stay as they are.

A source is one or several parts, joined by "; ". A row is a part with holes for what stays; the first that
fits is taken, so narrower ones stand before wider ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

TABLE: Mapping[str, str] = MappingProxyType(
    {
        # rules of engines
        "shapes and dtypes of the config": "配置中的形状与 dtype",
        "cache bytes after real forward passes, transformers {0} and {1} (torch {2}, CPU)": (
            "真实前向计算之后的缓存字节，transformers {0} 与 {1}（torch {2}，CPU）"
        ),
        "plans of {0}'s own code": "{0} 自己的代码所作的规划",
        "released code of {0} to {1}": "{0} 至 {1} 的发布代码",
        "start-up logs of those versions": "这些版本的启动日志",
        "start-up logs of those": "这些版本的启动日志",
        "start-up logs of {0} to {1}, and of a fork": "{0} 至 {1} 的启动日志，以及一个分支的",
        "start-up logs of {0} and {1}": "{0} 与 {1} 的启动日志",
        "start-up logs of {0}": "{0} 的启动日志",
        "start-up logs": "启动日志",
        "{0} contexts of {1}'s own libraries": "{1} 自己的库所建的 {0} 个上下文",
        "code of the main branch of {0}, read and not run": "{0} 年主分支的代码，读过而未运行",
        "code of the main branch of {0}, read": "{0} 年主分支的代码，读过",
        "released package {0}, and its forward passes": "发布的软件包 {0} 及其前向计算",
        "released package {0}": "发布的软件包 {0}",
        "released packages, compared": "发布的各软件包，逐一比较",
        "released wheels {0} to {1}, compared": "发布的 {0} 至 {1} 各 wheel，逐一比较",
        "released wheel {0}": "发布的 wheel {0}",
        "forward passes of {0}": "{0} 的前向计算",
        # memory of cards
        "rule: the label less what the driver keeps on cards that were seen": (
            "规则：标称减去驱动在已见过的卡上留下的部分"
        ),
        "rule: the label nearly whole, as HIP reports other cards": (
            "规则：几乎等于标称，与 HIP 报告的其他卡一样"
        ),
        "rule: two thirds of the memory up to 32 GB, three quarters above": (
            "规则：32 GB 以内取三分之二，以上取四分之三"
        ),
        "rule: {0} to {1} % of the label, no reading is known": "规则：标称的 {0} 到 {1} %，没有已知读数",
        "rule: the total of nvidia-smi less what the driver keeps on other cards": (
            "规则：nvidia-smi 的总量减去驱动在其他卡上留下的部分"
        ),
        "rule: the label less a sixteenth for ECC and the driver": (
            "规则：标称减去 ECC 与驱动所占的十六分之一"
        ),
        "rule: {0} to {1} % of memory that the system shares": "规则：系统共用内存的 {0} 到 {1} %",
        "rule: the label, decimal": "规则：标称，按十进制",
        "rule: half of the memory": "规则：内存的一半",
        "{0} of {1} GiB with the limit raised": "提高上限后为 {1} GiB 中的 {0}",
        "guess from the closest card of the same make": "由同一厂家最接近的卡推测",
        "out-of-memory texts in public repositories": "公开仓库中的显存不足报错",
        "the card is told by its size": "由显存大小认出是哪种卡",
        "which card they are from is a guess": "是哪种卡出于推测",
        "start-up lines of public vLLM logs that print the total": "公开的 vLLM 日志中打印总量的启动行",
        "figures of the maker from memory, not looked up": "厂家的数字，凭记忆，未查证",
        "{0}, recommendedMaxWorkingSetSize in notebooks": "{0}，notebook 中的 recommendedMaxWorkingSetSize",
        "{0}, nvidia-smi in notebooks": "{0}，notebook 中的 nvidia-smi",
        "{0} machine, nvidia-smi of a {1} run": "{0} 机器，运行 {1} 时的 nvidia-smi",
        "{0}, torch and llama.cpp prints": "{0}，torch 与 llama.cpp 的打印",
        "{0} (package), the same figure": "{0}（软件包），数字相同",
        "{0} from memory": "{0} 凭记忆",
        # prices
        "AWS {0} on demand, by {1} (package), one GPU of the instance": (
            "AWS {0} 按需，取自 {1}（软件包），按实例中的一张 GPU 计"
        ),
        "{0}, blended guess of that project": "{0}，该项目的综合估计",
        "{0}, approximate MSRP or street price": "{0}，建议零售价或市价，约数",
        "{0} and {1}": "{0} 与 {1}",
    }
)


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    holes = (re.sub(r"\\\{(\d)\\\}", r"(?P<h\1>.{1,80}?)", re.escape(english)) for english in TABLE)
    return tuple((re.compile(hole), chinese) for hole, chinese in zip(holes, TABLE.values(), strict=True))


def origin_zh(source: str) -> str:
    """Return a source with its words in Chinese.

    >>> origin_zh("start-up logs of 2025; ggml-org/llama.cpp#17300")
    '2025 的启动日志；ggml-org/llama.cpp#17300'
    """
    return "；".join(_part(part) for part in source.split("; "))


def _part(part: str) -> str:
    for pattern, chinese in _patterns():
        found = pattern.fullmatch(part)
        if found is not None:
            return chinese.format(*(found[f"h{place}"] for place in range(pattern.groups)))
    return part


__all__ = ["TABLE", "origin_zh"]
