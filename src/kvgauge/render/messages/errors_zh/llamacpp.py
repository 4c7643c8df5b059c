"""What llama.cpp's flags, builds and caches refuse, and configs without a conversion to GGUF."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # builds
    "the cache rules of llama.cpp {0} are not known, only {1} and later": (
        "llama.cpp {0} 的缓存规则未知，只知道 {1} 及更新的版本"
    ),
    "--engine llama.cpp@{0} or a later build": "--engine llama.cpp@{0} 或更新的构建",
    "{0} is not a version of llama.cpp": "{0} 不是 llama.cpp 的版本",
    "{0} is not a day": "{0} 不是一个日期",
    "for example llama.cpp@2025-06-01": "例如 llama.cpp@2025-06-01",
    "for example llama.cpp@v0.5.0, @b7123, or a day such as @2025-06-01": (
        "例如 llama.cpp@v0.5.0、@b7123，或某一天，如 @2025-06-01"
    ),
    # flags
    "{0} {1}: expected {what}": "{0} {1}：应为{what}",
    "on or off": " on 或 off",
    "on, off or auto": " on、off 或 auto",
    "one number a GPU, such as 3,1": "每个 GPU 一个数，如 3,1",
    "-ot {0}: {what}": "-ot {0}：{what}",
    "expected PATTERN=BUFFER, as exps=CPU": "应为 模式=缓冲区，如 exps=CPU",
    "a simpler pattern is needed": "需要更简单的模式",
    "a buffer is CPU, or a device such as CUDA0": "缓冲区应为 CPU，或 CUDA0 这样的设备",
    "-ot names device {0}, and there are {1}": "-ot 指定了设备 {0}，而设备只有 {1} 个",
    "devices count from 0, as CUDA0": "设备从 0 起数，如 CUDA0",
    "-sm {0}: expected none, layer, row or tensor": "-sm {0}：应为 none、layer、row 或 tensor",
    "llama.cpp has no flag {0}": "llama.cpp 没有选项 {0}",
    "write the flags as for llama-server": "请按 llama-server 的写法给出选项",
    "llama.cpp has no --{0}: its devices share the layers out": "llama.cpp 没有 --{0}：各设备按层分担",
    "--pp 2 means two devices, as -ts does among its own flags": "--pp 2 表示两个设备，相当于它自己的 -ts",
    "llama.cpp allocates the cells of every sequence ahead, it shares no prefix": (
        "llama.cpp 预先为每条序列分配单元，不共享前缀"
    ),
    "llama.cpp serves at most {0} sequences, not {1}": "llama.cpp 最多服务 {0} 个序列，而不是 {1} 个",
    "at most -np {0}; more need a second server": "最多 -np {0}；更多则需要第二个服务",
    "llama.cpp: {0} is {1}, at least {2}": "llama.cpp：{0} 为 {1}，至少应为 {2}",
    "llama.cpp keeps no {0} cache ({1})": "llama.cpp 不支持 {0} 缓存（{1}）",
    # contexts and caches
    "neither the flags nor the model say how long the context is": "选项和模型都没有说明上下文有多长",
    "pass --context, or -c in the flags": "请给出 --context，或在选项中给出 -c",
    "llama.cpp keeps V in {0} with flash attention only": (
        "llama.cpp 只有在 flash attention 下才能用 {0} 保存 V"
    ),
    "-fa on, or -ctv f16": "-fa on，或 -ctv f16",
    "{0} keeps K and V as one row, so -ctk {1} and -ctv {2} must be one type": (
        "{0} 把 K 和 V 存为同一行，因此 -ctk {1} 与 -ctv {2} 必须是同一类型"
    ),
    "-ctk {0} -ctv {1}": "-ctk {0} -ctv {1}",
    "{0} packs {1} elements a block, the heads of layer {2} have {3}": (
        "{0} 每块打包 {1} 个元素，而第 {2} 层的头有 {3} 个"
    ),
    "use a type whose block divides the head: q8_0 (32), f16 (1)": (
        "请用块大小能整除头宽度的类型：q8_0（32）、f16（1）"
    ),
    "llama.cpp aborts on {0} with {1} streams of {2} tokens a micro-batch": (
        "llama.cpp 在 {0} 上以 {1} 个流、每个微批 {2} 个 token 运行时会中止"
    ),
    "llama.cpp aborts on {0} with {1} streams of a {2} cache": (
        "llama.cpp 在 {0} 上以 {1} 个 {2} 缓存流运行时会中止"
    ),
    "add --kv-unified, so that sequences share one stream": "加上 --kv-unified，使各序列共用一个流",
    "add --kv-unified, or -ctk f16 -ctv f16": "加上 --kv-unified，或 -ctk f16 -ctv f16",
    "llama.cpp {0} keeps the heads of {1} expanded, and their width is not stated": (
        "llama.cpp {0} 保存 {1} 展开后的头，而其宽度没有给出"
    ),
    "a later build keeps the latent: --engine llama.cpp@{0}": (
        "更新的构建只保存潜向量：--engine llama.cpp@{0}"
    ),
    # configs
    "model type {0} has no conversion to GGUF that is known": "模型类型 {0} 没有已知的 GGUF 转换方式",
    "give the metadata of its GGUF file, or another engine": "请给出它的 GGUF 文件的元数据，或换用其他引擎",
    "{0} drafts for another model; its conversion to GGUF is not known": (
        "{0} 为另一个模型起草；其 GGUF 转换方式未知"
    ),
    "is the part of a head without rope": "是头中不带 rope 的部分",
}
