"""Generation: a prompt in one pass (prefill), then token by token (decode), greedily or sampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kvgauge.errors import InvalidRequestError
from kvgauge.lab.arrays import Floats
from kvgauge.lab.cache import Cache
from kvgauge.lab.decoder import Decoder, Watch, softmax
from kvgauge.lab.folder import Folder


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen.

    Args:
        temperature: 0 takes the likeliest; 1 draws as the model says; more evens out.
        seed: of the draws.
    """

    temperature: float = 0.0
    seed: int = 0

    def chooser(self) -> Chooser:
        """Return what chooses, from the beginning of its draws.

        Raises:
            InvalidRequestError: the temperature or the seed is impossible.
        """
        if not 0 <= self.temperature <= 100:
            raise InvalidRequestError(
                f"--temperature {self.temperature:g} is out of range", hint="0 to 100", field="temperature"
            )
        if not 0 <= self.seed < 1 << 63:
            raise InvalidRequestError(f"--seed {self.seed} is out of range", hint="0 or more", field="seed")
        return Chooser(self.temperature, np.random.default_rng(self.seed))


@dataclass(frozen=True, slots=True)
class Chooser:
    """Chooses tokens, one after the other."""

    temperature: float
    random: np.random.Generator

    def __call__(self, logits: Floats) -> int:
        """Return the next token of the logits [vocabulary]."""
        if not self.temperature:
            return int(np.argmax(logits))
        shares = softmax(logits.astype(np.float64) / self.temperature)
        return int(self.random.choice(len(shares), p=shares))


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass of a generation.

    Args:
        computed: tokens that went through the model in it.
        chosen: the token that follows.
        logits: [vocabulary], of what follows.
    """

    computed: int
    chosen: int
    logits: Floats


def generate(
    decoder: Decoder,
    ids: Sequence[int],
    new_tokens: int,
    *,
    cache: Cache | None = None,
    choose: Chooser | None = None,
    watch: Watch | None = None,
) -> Iterator[Step]:
    """Yield up to ``new_tokens`` steps; ends behind a token that ends a text.

    Args:
        cache: an empty one: the first pass takes the prompt, each later one the token before. None: each
            pass takes all tokens anew.
    """
    choose = choose or Sampling().chooser()
    known = list(ids)
    fresh = known
    for _ in range(new_tokens):
        logits = decoder.forward(np.array([fresh]), cache, watch=watch, last_only=True)[0, -1]
        chosen = choose(logits)
        yield Step(len(fresh), chosen, logits)
        known = [*known, chosen]
        fresh = known if cache is None else [chosen]
        if chosen in decoder.config.end_ids:
            return


def complete(folder: Folder, text: str, new_tokens: int, sampling: Sampling = Sampling()) -> str:
    """Return how a model continues a text.

    Raises:
        KvgaugeError: the text is empty or holds what the model lacks.
    """
    decoder = folder.decoder
    steps = generate(
        decoder, folder.encode(text), new_tokens, cache=decoder.new_cache(), choose=sampling.chooser()
    )
    return folder.text([step.chosen for step in steps])
