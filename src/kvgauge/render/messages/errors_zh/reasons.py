"""Why an allocation is as large as it is."""

from __future__ import annotations

TABLE = {
    "{0} parameters, {1}": "{0} 个参数，{1}",
    "{0} full layers": "{0} 个全注意力层",
    "{0} sliding layers": "{0} 个滑动窗口层",
    "{0} chunked layers": "{0} 个分块注意力层",
    "{0} compressed layers": "{0} 个压缩注意力层",
    "{0} cross layers": "{0} 个交叉注意力层",
    "{0} latent layers": "{0} 个潜在注意力层",
    "{0} index layers": "{0} 个索引层",
    "{0} recurrent layers": "{0} 个循环状态层",
    "{0} convolution layers": "{0} 个卷积状态层",
    "{0} layers × {1} cells × {2} streams × {3} B": "{0} 层 × {1} 单元 × {2} 流 × {3} B",
    "{0} layers × {1} rows × {2} to {3} B": "{0} 层 × {1} 行 × {2} 至 {3} B",
    "{0} layers × {1} rows × {2} B": "{0} 层 × {1} 行 × {2} B",
    "a page of each pool and a slot of state, which padded tokens point at": (
        "每个池的一页与一个状态槽，补齐用的 token 指向它们"
    ),
    "block 0, which the pool keeps for slots that hold nothing": "第 0 块，池留给什么也不存的位置",
    "blocks filled in part, pages padded to one size, layers that a group lacks": (
        "未填满的块、补齐到同一大小的页、组里缺的层"
    ),
    "a pass of {0} tokens, or sampling for {1} sequences": "{0} 个 token 的一次前向，或 {1} 条序列的采样",
    "counts of {0} words for {1} sequences": "{1} 条序列对 {0} 个词的计数",
    "buffers of batches and attention": "批次与注意力的缓冲",
    "every block of the pool, used or not": "池中的每一块，无论是否用到",
    "kernels and workspaces that come with the weights": "随权重加载的内核与工作区",
    "libraries and workspaces outside torch": "torch 之外的库与工作区",
    "libraries and workspaces outside torch, buffers between ranks": (
        "torch 之外的库与工作区，rank 之间的缓冲"
    ),
    "slots of state beyond one a sequence: one to spare, and those of drafted tokens": (
        "每条序列一个之外的状态槽：一个备用，其余供草稿 token"
    ),
    "states beyond one a sequence: for prefixes, checkpoints and drafted tokens": (
        "每条序列一份之外的状态：供前缀、检查点与草稿 token"
    ),
    "the {0} blocks of {1}'s graph, one after the other": "{1} 计算图的 {0} 个块，依次执行",
    "the driver's context": "驱动的上下文",
    "the driver's context and process groups": "驱动的上下文与进程组",
    "tokens behind the window, which this engine keeps as well": "窗口之外的 token，此引擎也予以保留",
    "tokens beyond the window, whose blocks requests in flight may still read": (
        "窗口之外、在途请求可能还要读的块"
    ),
}
