"""What a request gets wrong: options, units, values."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # the command line
    "did you mean {names+}?": "是否指 {names+}？",
    "one of: {0}": "可选：{0}",
    "kvgauge --help lists the options": "kvgauge --help 列出所有选项",
    "there is no option {0}": "没有选项 {0}",
    "for example: kvgauge Qwen/Qwen3-8B --context 32k": "例如：kvgauge Qwen/Qwen3-8B --context 32k",
    "for example: {0}": "例如：{0}",
    "MODEL is missing": "没有写 MODEL",
    "'{0}' is not part of this release": "本版本没有 '{0}'",
    "this release has {0}; a file of that name is ./{1}": "本版本有 {0}；若指同名文件，请写 ./{1}",
    "it is one of {0}: kvgauge {1} MODEL {2} ...": "它是 {0} 的选项：kvgauge {1} MODEL {2} ...",
    "{0} is not one of en, zh": "{0} 不是 en 或 zh",
    "can't write the answer: {reason?}": "无法写出结果：{reason?}",
    "--override {0} is not KEY=VALUE": "--override {0} 不是 KEY=VALUE 的形式",
    "for example num_hidden_layers=24": "例如 num_hidden_layers=24",
    "--override {0}: {1} is not a JSON value": "--override {0}：{1} 不是 JSON 值",
    'numbers, true, false, null, "text", [1, 2] or a bare word': (
        '可用数字、true、false、null、"text"、[1, 2]，或不带引号的词'
    ),
    "--override key {0} is not a dotted name": "--override 的键 {0} 不是用点号分隔的名称",
    "--override {0}: {1} is not an object": "--override {0}：{1} 不是对象",
    "for example: kvgauge completion bash; or zsh, fish": "例如：kvgauge completion bash；也可用 zsh、fish",
    "SHELL is missing": "没有写 SHELL",
    "an engine's own options go into --engine-args; kvgauge --help lists the others": (
        "引擎自己的选项写在 --engine-args 中；其余见 kvgauge --help"
    ),
    "set {0} to another value, or unset it": "请把 {0} 设为别的值，或取消它",
    "{0}: {1} is neither yes nor no": "{0}：{1} 既不是“是”也不是“否”",
    "{0}=1 or 0": "{0}=1 或 0",
    "{0} is one word too many": "多了一个词 {0}",
    "there is no command {0}": "没有命令 {0}",
    "one model is sized at a time; {0} is one more": "一次只计算一个模型；{0} 是多出来的",
    "kvgauge compare MODEL MODEL ... sizes several": "多个模型请用 kvgauge compare MODEL MODEL ...",
    "did you mean the command {0}? Else {step}": "是否指命令 {0}？否则{step}",
    # requests in a file
    "--{0} and --ndjson do not go together": "--{0} 与 --ndjson 不能一起用",
    'for example: {"model": "Qwen/Qwen3-8B", "context": 32768}': (
        '例如：{"model": "Qwen/Qwen3-8B", "context": 32768}'
    ),
    "there are more than {0} requests": "请求超过 {0} 条",
    "split the file": "请拆分文件",
    "a request is longer than {0} bytes": "一条请求超过 {0} 字节",
    "there are more than {0} overrides": "override 超过 {0} 个",
    "send the changed config as model": "请把改好的配置作为 model 给出",
    "{0} is longer than {1} characters": "{0} 超过 {1} 个字符",
    "name a config file instead of its content": "请写配置的文件名，而不是其内容",
    "the request": "请求",
    "{0} is to be {kind}": "{0} 须为{kind}",
    "text": "文本",
    "a whole number": "整数",
    "a whole number or text": "整数或文本",
    "text or an object": "文本或对象",
    "true or false": " true 或 false",
    "an object": "对象",
    "a request can't name standard input": "请求不能以标准输入为模型",
    "write the config as the value of model": "请把配置写作 model 的值",
    "there is no keyword {0}": "没有键 {0}",
    # comparing
    "compare takes a list of models": "compare 需要一个模型列表",
    "compare([a, b])": "compare([a, b])",
    "there is no model to compare": "没有可比较的模型",
    "give two or more": "请给出至少两个",
    "no answer": "没有结果",
    # numbers
    "{0} is not understood": "无法理解 {0}",
    "write it like {example}": "请写成 {example}",
    "32768, 32k or 1m": "32768、32k 或 1m",
    "80GiB, 80GB or 81920MiB": "80GiB、80GB 或 81920MiB",
    "{0} is not a whole number": "{0} 不是整数",
    "{0} is not a token count": "{0} 不是 token 数",
    "write it like 32768 or 32k": "请写成 32768 或 32k",
    "{0} is out of range": "{0} 超出范围",
    "0 to {0} tokens": "0 到 {0} 个 token",
    "{0} is not a size": "{0} 不是内存大小",
    "write it like 80GiB or 80GB": "请写成 80GiB 或 80GB",
    "write it like 80GiB": "请写成 80GiB",
    "{0} is not a formula": "{0} 不是公式",
    "{0} has no value in this formula": "{0} 在该公式中没有值",
    "language {0} is not known": "未知的语言 {0}",
    # the load
    "--{0} must be a whole number from {1} to {2}, not {3}": "--{0} 须为 {1} 到 {2} 的整数，而不是 {3}",
    "--shared-prefix {0} is longer than the context of {1} tokens that it belongs to": (
        "--shared-prefix {0} 比所属的上下文（{1} 个 token）还长"
    ),
    "a prefix is a part of each sequence": "前缀是每条序列的一部分",
    "--{0} must be a whole number from 1 to 4096": "--{0} 须为 1 到 4096 的整数",
    "give a number of tokens": "请给出 token 数",
    "the config describes no multi-token-prediction layers": "配置中没有多 token 预测（MTP）层",
    "leave --mtp out": "请去掉 --mtp",
    # dtypes
    "dtype {0} is not a cache format of any engine": "dtype {0} 不是任何引擎的缓存格式",
    "for example bf16, fp8, q8_0, nvfp4, fp8_ds_mla": "例如 bf16、fp8、q8_0、nvfp4、fp8_ds_mla",
    "{0} does not store {role?} rows": "{0} 不能存放{role?}行",
    "it packs {0} rows only; use bf16 or fp8": "它只打包 {0} 行；请用 bf16 或 fp8",
    "{0} needs a multiple of {1} elements; {role?} rows: {2}": (
        "{0} 要求元素数是 {1} 的倍数，而{role?}行有 {2} 个"
    ),
    "use bf16 or fp8 for this model": "该模型请用 bf16 或 fp8",
    "{0} packs {1} elements a block, {role?} rows have {2}": "{0} 每块打包 {1} 个元素，而{role?}行有 {2} 个",
    "use a type whose block divides the row: q8_0 (32), f16 (1)": (
        "请用块长能整除行长的类型：q8_0（32）、f16（1）"
    ),
    "key": " K ",
    "value": " V ",
    "latent": "潜向量",
    "record": "记录",
    "rope": " RoPE ",
    "index": "索引",
    "compressor": "压缩器",
    "recurrent": "循环状态",
    "conv": "卷积",
}
