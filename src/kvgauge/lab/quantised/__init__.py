"""Quantised caches, executed: real codes, scales and bytes, and what they do to an attention's output."""
