"""FlashAttention (arXiv 2205.14135, 2307.08691): exact attention that never writes its scores to memory."""
