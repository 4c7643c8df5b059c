"""What GGUF metadata lacks, or says that can't be."""

from __future__ import annotations

from collections.abc import Mapping

TABLE: Mapping[str, str] = {
    "the metadata has no {0}": "元数据中没有 {0}",
    "the metadata has no {0}, which {because}": "元数据中没有 {0}，{because}",
    "convert the model again with a newer llama.cpp, or pass --override {0}=VALUE": (
        "请用较新的 llama.cpp 重新转换，或用 --override {0}=VALUE 指定"
    ),
    "gives the channels of the state": "它给出循环状态的通道数",
    "gives the key heads": "它给出键的头数",
    "gives the query heads": "它给出查询头数",
    "is the dilation of its convolution": "它是卷积的膨胀步长",
    "is the rope part of a record": "它是记录的 RoPE 部分",
    "is the width of a latent": "它是潜向量的宽度",
    "is the width of a latent with its rope part": "它是潜向量连同 RoPE 部分的宽度",
    "is the width of a record": "它是记录的宽度",
    "is the width of an index key": "它是索引键的宽度",
    "is the width of its convolution": "它是卷积的宽度",
    "is {0} or {1}; the file says too little": "它可能是 {0} 或 {1}，文件的信息不足以判断",
    "is not embedding_length / head_count: {0} of it are rotated": (
        "它不等于 embedding_length / head_count：其中 {0} 个元素做旋转编码"
    ),
    "is not embedding_length / head_count ({0} / {1})": "它不等于 embedding_length / head_count（{0} / {1}）",
    "latent attention needs": "潜向量注意力需要它",
    "rows of one head need: they are latents": "单头的行是潜向量，需要它",
    "goes with attention.indexer.key_length": "它与 attention.indexer.key_length 配套",
    "says how many blocks keep a cache": "它说明有多少个块保留缓存",
    "says where index keys begin": "它说明索引键从哪一层开始",
    "says which blocks are recurrent": "它说明哪些块是循环块",
    "says which layers compress": "它说明哪些层做压缩",
    "says which layers own an indexer": "它说明哪些层有自己的索引器",
    "llama-quantize has no other type for such rows; use q8_0": (
        "llama-quantize 对这样的行没有别的类型；请用 q8_0"
    ),
    "{0} is no quantisation mix of llama.cpp": "{0} 不是 llama.cpp 的量化混合方案",
    "{0} has {1} entries, none for block {2}": "{0} 有 {1} 项，没有第 {2} 块的项",
    "how llama.cpp would convert the model type {0} is not known": "不清楚 llama.cpp 如何转换模型类型 {0}",
    "llama.cpp's name of the tensor {0} is not known": "不清楚 llama.cpp 中张量 {0} 的名字",
    "read a GGUF of it, or ask for a scheme of its own checkpoint: bf16, int8, int4": (
        "请读取它的 GGUF，或改用检查点自己的方案：bf16、int8、int4"
    ),
    "read a GGUF of the model, or ask for a scheme of its own checkpoint: bf16, int8, int4": (
        "请读取该模型的 GGUF，或改用检查点自己的方案：bf16、int8、int4"
    ),
    "-ngl is {0}, expected 0 or more": "-ngl 为 {0}，应不小于 0",
    "the devices' shares must be positive numbers": "各设备的份额须为正数",
    "says which layers slide": "它说明哪些层是滑动窗口层",
    "tells its kinds of blocks apart": "它区分各种块",
    # values
    "{0} has {1} entries for {2} blocks": "{0} 有 {1} 项，而模型有 {2} 个块",
    "one entry a block of {0}": "每个块对应一项，块数见 {0}",
    "{0} is {1}, which does not divide the {2} query heads": "{0} 为 {1}，不能整除 {2} 个查询头",
    "{0} is {1}, which does not divide into {2} heads": "{0} 为 {1}，不能平分给 {2} 个头",
    "{0} is {1}, which does not divide the {2} channels": "{0} 为 {1}，不能整除 {2} 个通道",
    "{0} is {1}, less than the latent's {2}": "{0} 为 {1}，小于潜向量的宽度 {2}",
    "{0} is {1}; a latent is one vector, whatever the heads": "{0} 为 {1}；潜向量只有一个，与头数无关",
    "{0} is 0 on an attention layer": "{0} 在注意力层上为 0",
    "{0} holds {1}; 0, 4 and 128 are known": "{0} 含有 {1}；已知的是 0、4、128",
    "{0} is {1} of {2} blocks: none is left for the model": "{0} 为 {1}，而共有 {2} 个块：模型自身一个都不剩",
    "{0} is {1} of {2}: none is left to own a cache": "{0} 为 {1}，而共有 {2} 层：没有剩下自有缓存的层",
    "{0} lets layer {1} share, but no own layer is of its kind": (
        "{0} 让第 {1} 层共享缓存，但自有缓存的层中没有同类"
    ),
    "{0} and its fellows make rows of {1}, but {2} makes rows of {3}": (
        "由 {0} 等键得出的行宽为 {1}，而张量 {2} 的行宽为 {3}"
    ),
    "correct the metadata; the weights can't be of this shape": "请改正元数据；权重不可能是这种形状",
    # designs
    "none of the blocks keeps a cache, which no decoder does": "没有任何一个块保留缓存，解码器不会如此",
    "check the heads and the layer lists of the metadata": "请检查元数据中的头数与各层的列表",
    "{0} is {kind}, not a language model": "{0} 是{kind}，不是语言模型",
    "of the kind {0}": " {0} 类的文件",
    "give the model that it belongs to": "请给出它所属的模型",
    "a projector of images or sound": "图像或声音的投影器",
    "give the language model beside it": "请给出与它配套的语言模型",
    "a draft for speculative decoding": "推测解码用的草稿模型",
    "give the model that it drafts for": "请给出它所服务的模型",
    "{0} is not known, and {1} belongs to a design that its keys alone do not tell": (
        "未知的架构 {0}；{1} 所属的设计仅凭键无法判断"
    ),
    "--override {0}=null reads it without": "可用 --override {0}=null 忽略它",
    "{0} is not known, and its keys do not say which blocks are recurrent": (
        "未知的架构 {0}；它的键没有说明哪些块是循环块"
    ),
    "pass --override {0}=[...] with 1 for a recurrent block": "请用 --override {0}=[...] 指定，循环块写 1",
}
