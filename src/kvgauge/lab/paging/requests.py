"""A stream of requests from a seed: lengths as chats have them, many short and few long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_PROMPT_MEDIAN, _OUTPUT_MEDIAN, _SPREAD = 96, 160, 0.9


@dataclass(frozen=True, slots=True)
class Request:
    """What one user asks: the tokens of the prompt, and how many will be generated (nobody knows before)."""

    prompt: tuple[int, ...]
    num_output: int

    @property
    def num_tokens(self) -> int:
        """Tokens that are kept when the last one has been generated."""
        return len(self.prompt) + self.num_output


def request_stream(
    num_requests: int, max_tokens: int, *, seed: int = 0, shared_prefix: int = 0
) -> tuple[Request, ...]:
    """Return requests whose lengths are log-normal, cut so that none exceeds ``max_tokens``.

    Args:
        shared_prefix: tokens that all prompts begin with (a system prompt).
    """
    rng = np.random.default_rng(seed)
    prefix = tuple(int(token) for token in rng.integers(0, 50_000, shared_prefix))
    longest = max_tokens - shared_prefix
    requests = []
    for _ in range(num_requests):
        prompt, output = (
            int(np.clip(rng.lognormal(np.log(median), _SPREAD), 1, longest // 2))
            for median in (_PROMPT_MEDIAN, _OUTPUT_MEDIAN)
        )
        tokens = tuple(rng.integers(0, 50_000, prompt).tolist())
        requests.append(Request(prefix + tokens, output))
    return tuple(requests)
