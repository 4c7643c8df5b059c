"""PagedAttention (arXiv 2309.06180): a cache in blocks that lie anywhere, and what it replaced."""
