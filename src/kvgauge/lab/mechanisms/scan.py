"""A recurrence over the tokens of one sequence: one after the other, or a chunk of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kvgauge.lab.codes import Floats

#: Takes what the tokens enter with, then the state; returns their outputs and the state after them.
Part = Callable[..., tuple[Floats, Floats]]


def by_steps(step: Part, inputs: Sequence[Floats], state: Floats, like: Floats) -> tuple[Floats, Floats]:
    """Return the outputs, of the shape of ``like``, and the state after them.

    Args:
        step: of one token: arrays without the axis of tokens.
        inputs: each (tokens, ...).
    """
    outputs = []
    for token in zip(*inputs, strict=True):
        output, state = step(*token, state)
        outputs.append(output)
    return np.array(outputs, np.float32).reshape(like.shape), state


def by_chunks(
    chunk: Part, inputs: Sequence[Floats], state: Floats, like: Floats, chunk_tokens: int
) -> tuple[Floats, Floats]:
    """Return what ``by_steps`` returns, a chunk at a time.

    Args:
        chunk: of up to ``chunk_tokens`` tokens: arrays with the axis of tokens in front.
    """
    outputs = np.zeros_like(like)
    for start in range(0, len(like), chunk_tokens):
        stop = start + chunk_tokens
        outputs[start:stop], state = chunk(*(array[start:stop] for array in inputs), state)
    return outputs, state


__all__ = ["Part", "by_chunks", "by_steps"]
