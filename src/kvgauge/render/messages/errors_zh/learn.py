"""What ``learn`` refuses."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "there is no topic {0}": "没有主题 {0}",
    "{0} needs {1}, not installed here: pip install 'kvgauge[lab]'": (
        "{0} 需要 {1}，尚未安装：pip install 'kvgauge[lab]'"
    ),
    "kvgauge learn lists the topics": "kvgauge learn 列出所有主题",
    "--tokens {0} is out of range": "--tokens {0} 超出范围",
    "1 to {0} tokens": "1 到 {0} 个 token",
    "none of the {0} layers is of a kind that is described here": "{0} 层中没有一层属于这里描述的类型",
    "the shapes of the model's weights are not known, and its FFNs follow from them": (
        "不知道该模型权重的形状，而 FFN 由它们得出"
    ),
    "give a folder that holds the weights": "请给出含有权重的文件夹",
    "--measure computes in {0}, not in {1}": "--measure 以 {0} 计算，不是 {1}",
    "leave --dtype out": "请去掉 --dtype",
    "--measure runs a folder": "--measure 运行的是一个文件夹",
    "give its path": "请给出它的路径",
    "kvgauge explain shows what its layers keep": "kvgauge explain 显示各层保存什么",
    "the decoder here runs models of the types {0} and {1}, not {2}": (
        "这里的解码器运行 {0} 和 {1} 类型的模型，不是 {2}"
    ),
    "kvgauge size and explain answer for the others": "其他模型可用 kvgauge size 和 explain",
    "{0} query heads of width {1} and {2} KV heads do not go together": (
        "{0} 个宽 {1} 的查询头与 {2} 个 KV 头不相配"
    ),
    "query heads are a multiple of KV heads, widths are even": "查询头数须为 KV 头数的倍数，头宽须为偶数",
    "the activation function {0} is not run here": "这里不支持激活函数 {0}",
    "silu is": "可用 silu",
    "the decoder here runs no sliding windows": "这里的解码器不支持滑动窗口",
    "kvgauge size answers for them": "可用 kvgauge size 计算",
    "the decoder here runs no quantised weights": "这里的解码器不支持量化权重",
    "give a folder of weights in 16 or 32 bit": "请给出 16 位或 32 位权重的文件夹",
    "give the model's whole config": "请给出完整的配置",
    "rms_norm_eps is no small number": "rms_norm_eps 不是一个小的数",
    "see the model's page": "请查看模型的说明页",
    "rope_scaling is no object": "rope_scaling 不是对象",
    "positions of the kind {0} are not run here": "这里不支持 {0} 类型的位置编码",
    "default, linear or llama3": "可用 default、linear 或 llama3",
    "low_freq_factor is not below high_freq_factor": "low_freq_factor 不小于 high_freq_factor",
    "heads that are turned in part are not run here": "这里不支持只旋转一部分的头",
    "the weights make no finite numbers": "用这些权重算不出有限的数",
    "{0} is no positive number": "{0} 不是正数",
    "the weights lack {0}": "权重中没有 {0}",
    "fetch the folder again": "请重新下载该文件夹",
    "{0} is {1}, the config makes it {2}": "{0} 的形状是 {1}，而配置要求 {2}",
    "config.json and weights are of two models": "config.json 与权重不属于同一模型",
    "{0} is stored as {1}, which is not run here": "{0} 以 {1} 存储，这里不支持",
    "{0} holds no safetensors": "{0} 中没有 safetensors 文件",
    "give a folder that holds config.json and *.safetensors": (
        "请给出含有 config.json 和 *.safetensors 的文件夹"
    ),
    "weight files are missing: {0}": "缺少权重文件：{0}",
    "{0} holds no {1}": "{0} 中没有 {1}",
    "give ids: --ids 1,2,3": "请给出编号：--ids 1,2,3",
    "{0} is too large for a tokenizer": "{0} 太大，不像分词器",
    "the tokenizer can't read this text": "分词器无法处理这段文本",
    "the tokenizer can't write these ids": "分词器无法还原这些编号",
    "{0} is no tokenizer": "{0} 不是分词器",
    "the text is empty": "文本是空的",
    "give at least one character": "请至少给出一个字符",
    "the model has no id {0}": "模型中没有编号 {0}",
    "0 to {0}": "0 到 {0}",
    "{0} is no folder": "{0} 不是文件夹",
    "the decoder here runs no GGUF": "这里的解码器不支持 GGUF",
    "the weights take {0} MiB as fp32, the machine has {1}": "权重以 fp32 需要 {0} MiB，本机共有 {1}",
    "give a smaller model": "请换一个更小的模型",
    "--temperature {0} is out of range": "--temperature {0} 超出范围",
    "0 to 100": "0 到 100",
    "--seed {0} is out of range": "--seed {0} 超出范围",
    "0 or more": "须为 0 或以上",
    "--new-tokens {0} is out of range": "--new-tokens {0} 超出范围",
    "a text and --ids do not go together": "文本与 --ids 不能一起用",
    "give one of them": "请只给一个",
    "{0} tokens and {1} new ones exceed the model's {2}": "{0} 个 token 加 {1} 个新 token 超过模型的 {2}",
    "give a shorter text or fewer --new-tokens": "请缩短文本或减小 --new-tokens",
    "a text of {0} is too long to be walked through": "长度为 {0} 的文本太长，无法逐步展示",
    "at most {0} tokens": "最多 {0} 个 token",
    "--temperature {0} is no number": "--temperature {0} 不是数",
    "--ids {0} are no ids": "--ids {0} 不是编号",
    "for example --ids 1,2,3": "例如 --ids 1,2,3",
    "activations are not held in {0}": "激活不以 {0} 存放",
    "fp32, bf16, fp16 or fp8": "可用 fp32、bf16、fp16 或 fp8",
    # exercises
    "answer {0} is not a whole number": "答案 {0} 不是整数",
    "write it like 47472": "写成 47472",
    "--answer needs an exercise": "--answer 要与某道练习一起用",
    "kvgauge learn exercises lists them": "kvgauge learn exercises 列出全部练习",
    "there is no exercise {0}": "没有练习 {0}",
    "none of the {0} layers is plain attention with an FFN": "{0} 层中没有普通注意力加 FFN 的层",
    "kvgauge learn activations shows layers of other kinds": "kvgauge learn activations 可以显示其他类型的层",
}
