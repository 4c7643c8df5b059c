"""What a config lacks, or says that can't be."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    # absent fields
    "the config has no {0}": "配置中没有 {0}",
    "the config has no {0}, which {because}": "配置中没有 {0}，{because}",
    "the config has no {names+}, which {0} can't be read without": (
        "配置中没有 {names+}，没有它就无法读取 {0}"
    ),
    "add it to the file or pass --override {0}=VALUE": "请在文件中补上，或用 --override {0}=VALUE 指定",
    "gives the heads of K and V": "它给出 K 与 V 的头数",
    "gives the heads of the state": "它给出循环状态的头数",
    "gives the groups that share B and C": "它给出共用 B 与 C 的组数",
    "gives the width of K and V": "它给出 K 与 V 的宽度",
    "gives the width of a head": "它给出每个头的宽度",
    "gives the KV heads of full layers": "它给出全注意力层的 KV 头数",
    "is the convolution's width": "它是卷积的宽度",
    "is the rope part of a latent row": "它是潜向量行的 RoPE 部分",
    "is the size of the state": "它是循环状态的大小",
    "is the width of CSA's index keys": "它是 CSA 索引键的宽度",
    "is the width of a head": "它是每个头的宽度",
    "is the width of a state head": "它是循环状态每个头的宽度",
    "is the width of the latent rows": "它是潜向量行的宽度",
    "is their width": "它是这些卷积的宽度",
    "is not hidden_size / num_attention_heads ({0} / {1}) for this model type": (
        "该模型类型的头宽不等于 hidden_size / num_attention_heads（{0} / {1}）"
    ),
    "is not {0} / {1} ({2} / {3})": "它不等于 {0} / {1}（{2} / {3}）",
    "every layer of this design needs": "这种设计的每一层都需要它",
    "attention blocks of this design need": "这种设计的注意力块需要它",
    "chunked layers need": "分块注意力层需要它",
    "sliding layers need": "滑动窗口层需要它",
    "layers below the middle slide": "而前半部分的层是滑动窗口层",
    "this Falcon architecture needs": "这种 Falcon 架构需要它",
    "{type?} needs to size K and V": "{type?} 需要它来计算 K 与 V",
    "this model type": "该模型类型",
    "describes the recurrent layers": "它描述循环层",
    "scales the width of the state": "循环状态的宽度与它成比例",
    "switches multi_query_group_num on": "它决定 multi_query_group_num 是否生效",
    "says whether num_kv_heads or multi_query holds": "它决定采用 num_kv_heads 还是 multi_query",
    "says from which layer on windows slide": "它说明从哪一层起使用滑动窗口",
    "says how deep a stack is": "它说明每一叠有多少层",
    "says how deep the model is": "它说明模型有多少层",
    "says how many blocks of two sublayers there are": "它说明有多少个双子层的块",
    "says how many decoder layers keep a cache": "它说明解码器有多少层保留缓存",
    "says how many layers keep a cache": "它说明有多少层保留缓存",
    "says how many layers keep a state": "它说明有多少层保留循环状态",
    "says how many layers share a cache": "它说明多少层共用一份缓存",
    "says how many tokens one compressed record stands for": "它说明一条压缩记录代表多少个 token",
    "says how many tokens one index key stands for": "它说明一个索引键代表多少个 token",
    "says how often the block types repeat": "它说明块类型重复多少次",
    "says where in each period attention stands": "它说明注意力层在每个周期中的位置",
    "says which layers are attention": "它说明哪些层是注意力层",
    "says which layers are sparse": "它说明哪些层是稀疏的",
    "says which layers call the shared block": "它说明哪些层调用共享块",
    "says which layers keep a state": "它说明哪些层保留循环状态",
    "says which layers slide (sliding_window is {0})": "它说明哪些层是滑动窗口层（sliding_window 为 {0}）",
    "says which layers {0} belongs to": "它说明 {0} 属于哪些层",
    "tells the layers from the prediction layers at the list's end": "它把模型的层与列表末尾的预测层区分开",
    "the other fields of latent attention go with": "其余的潜向量注意力字段都与它配套",
    "{0} goes with": "{0} 与它配套",
    # values
    "{0} must be a whole number, not {1}": "{0} 须为整数，而不是 {1}",
    "{0} must be a positive number": "{0} 须为正数",
    "{0} is {1}, expected {2} to {3}": "{0} 为 {1}，应在 {2} 到 {3} 之间",
    "{0} must be true or false, not {1}": "{0} 须为 true 或 false，而不是 {1}",
    "{0} must be text, not {1}": "{0} 须为文本，而不是 {1}",
    "{0} must be a list, not {1}": "{0} 须为列表，而不是 {1}",
    "{0} must be an object, not {1}": "{0} 须为对象，而不是 {1}",
    "{0} must be an object": "{0} 须为对象",
    "{0} must be full or shared, not {1}": "{0} 须为 full 或 shared，而不是 {1}",
    "{0} must be 2: every other layer is Mamba in this design": "{0} 须为 2：这种设计每隔一层是 Mamba",
    "{0} must hold pairs of a list and a number": "{0} 的每一项须为一个列表与一个数",
    "{0} has {1} entries": "{0} 有 {1} 项",
    "{0} has {1} entries for {2} layers": "{0} 有 {1} 项，而模型有 {2} 层",
    "{0} has {1} entries, layer {2} has none": "{0} 有 {1} 项，第 {2} 层没有对应的项",
    "{0} has {1} letters": "{0} 有 {1} 个字母",
    "{0} is {1} and {2} is {3}, but they are one fact": "{0} 为 {1}，{2} 为 {3}，但两者应是同一个值",
    "correct one of them, or --override {0}=null": "请改正其中一个，或用 --override {0}=null",
    "{0} is {1}, which does not divide the {2} heads": "{0} 为 {1}，不能整除 {2} 个头",
    "{0} KV heads do not divide the {1} query heads of num_attention_heads": (
        "{0} 个 KV 头不能整除 num_attention_heads 的 {1} 个查询头"
    ),
    "check num_attention_heads and num_key_value_heads": "请检查 num_attention_heads 与 num_key_value_heads",
    "{0} is false, but layers are listed as sliding": "{0} 为 false，但列表中有滑动窗口层",
    "{0} inner channels do not divide into {1} heads": "{0} 个内部通道不能平分给 {1} 个头",
    "{0} heads do not divide the state of {1} x {2}": "{0} 个头不能平分 {1} x {2} 的循环状态",
    "{0} channels do not divide into heads of {1}": "{0} 个通道不能平分成宽 {1} 的头",
    # layers and patterns
    "{source?} describes no layers": "{source?} 没有描述任何层",
    "{source?} describes {0} layers, num_hidden_layers says {1}": (
        "{source?} 描述了 {0} 层，而 num_hidden_layers 为 {1}"
    ),
    "make the list as long as the layer count": "请让列表与层数一样长",
    "model code of {0}": "{0} 的模型代码",
    "{0} describes {1} of {2} layers": "{0} 只描述了 {2} 层中的 {1} 层",
    "{0} names layer {1} of {2}": "{0} 写有第 {1} 层，而模型只有 {2} 层",
    "{0} names more than {1} layers": "{0} 写有的层超过 {1} 个",
    "{0} does not reach layer {1}": "{0} 没有覆盖到第 {1} 层",
    "{0} names a layer type that is not known: {1}": "{0} 含有未知的层类型：{1}",
    "known words: {0}": "已知的词：{0}",
    "{0}kda_layers and full_attn_layers do not say which one layer {1} is": (
        "{0}kda_layers 与 full_attn_layers 没有说明第 {1} 层属于哪一种"
    ),
    "num_kv_shared_layers is {0} of {1} layers: none is left to own a cache": (
        "num_kv_shared_layers 为 {0}，而共有 {1} 层：没有剩下自有缓存的层"
    ),
    "layer {0} shares a {kind?} layer's cache, none of the first {1} is one": (
        "第 {0} 层要共享{kind?}层的缓存，但前 {1} 层中没有这种层"
    ),
    "none of the layers keeps a cache, which no decoder does": "没有任何一层保留缓存，解码器不会如此",
    "check the layer pattern, or the model is an encoder of a type that is not known": (
        "请检查各层的类型；也可能是未知类型的编码器"
    ),
    # designs
    "the config is empty": "配置是空的",
    "give a model's config.json": "请给出模型的 config.json",
    "this is the config of an adapter or of a diffusion pipeline, not of a language model": (
        "这是适配器或扩散管线的配置，不是语言模型的配置"
    ),
    "give the config.json of the base model": "请给出基础模型的 config.json",
    "{0} says that layers run more than once, in a design that is not known": (
        "{0} 表示各层运行不止一次，而这种设计未知"
    ),
    "each pass keeps a cache of its own; size one pass with --override {0}=1": (
        "每一遍各有自己的缓存；可用 --override {0}=1 计算其中一遍"
    ),
    "model type {0} is not supported: the rules of {what} are not known": (
        "不支持模型类型 {0}：{what}的规则未知"
    ),
    "the theory of its cache is welcome, see CONTRIBUTING.md": "欢迎补充其缓存的规则，见 CONTRIBUTING.md",
    "its compressed convolutional attention": "它的压缩卷积注意力",
    "its hashed attention": "它的哈希注意力",
    "its layer order and convolution": "它的层顺序与卷积",
    "its layers": "它的各层",
    "its looped layers": "它那些反复运行的层",
    "its matrix memory": "它的矩阵记忆",
    "its memory": "它的记忆",
    "its patches": "它的分块",
    "{0} is not a decoder, and its model type is not known": "{0} 不是解码器，模型类型也未知",
    "kvgauge sizes the cache of generating models": "kvgauge 计算的是生成模型的缓存",
    "compressed caches that layers share (kv_source_layer_ids) are of a design that is not known": (
        "多层共享压缩缓存（kv_source_layer_ids）的设计未知"
    ),
    "kvgauge knows DeepSeek-V4, whose layers keep caches of their own": (
        "kvgauge 支持 DeepSeek-V4，它的每一层各有缓存"
    ),
    "{0} holds a ratio of {1}, of a design that is not known": "{0} 含有压缩比 {1}，这种设计未知",
    "known ratios: 0, 4, 128": "已知的压缩比：0、4、128",
    "the config has recurrent layers, but no geometry of a known recurrence": (
        "配置中有循环层，但没有任何已知循环结构的形状字段"
    ),
    "known: gated delta net, Kimi delta attention, lightning, Mamba-1, Mamba-2, RG-LRU, RWKV, GLA": (
        "已知：gated delta net、Kimi delta attention、lightning、Mamba-1、Mamba-2、RG-LRU、RWKV、GLA"
    ),
}
