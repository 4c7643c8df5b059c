"""``learn walk``: a text through a real model, step by step, then a generation with its cache."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from kvgauge.architecture import Note
from kvgauge.errors import InvalidRequestError
from kvgauge.lab.folder import Folder, open_folder
from kvgauge.lab.generate import Sampling
from kvgauge.lab.peeks import Vector
from kvgauge.lab.shipped import SHIPPED_NAME, shipped_folder
from kvgauge.lab.trace import Trace
from kvgauge.lab.walk_cache import Generation, run_generation
from kvgauge.lab.walk_steps import (
    Attention,
    Candidate,
    Depth,
    Projections,
    Token,
    attend,
    candidates,
    depths,
    digest,
    project,
    read_tokens,
)

DEFAULT_TEXT = "今天天气"
DEFAULT_NEW_TOKENS = 16
MAX_NEW_TOKENS, MAX_PROMPT_TOKENS = 256, 512
#: Characters of a text; more can't be few enough tokens.
MAX_TEXT = 1 << 16


@dataclass(frozen=True, slots=True)
class WalkAnswer:
    """The answer of ``learn walk``.

    Args:
        embedding: rows and columns of the embedding.
        digestion: name and beginning of what the last token goes through behind attention.
        depths: the last token at the first, the middle and the last layer.
    """

    folder: Folder
    is_shipped: bool
    tokens: tuple[Token, ...]
    embedding: tuple[int, int]
    projections: Projections
    attention: Attention
    digestion: tuple[tuple[str, Vector], ...]
    depths: tuple[Depth, ...]
    candidates: tuple[Candidate, ...]
    generation: Generation
    notes: tuple[Note, ...] = ()

    @property
    def name(self) -> str:
        """The model's name: the folder's, or that of the one that ships, wherever it lies."""
        return SHIPPED_NAME if self.is_shipped else self.folder.model.raw.id

    @property
    def text(self) -> str:
        """The prompt, as its tokens spell it."""
        return self.folder.text([token.id for token in self.tokens])

    @property
    def said(self) -> str:
        """What was generated."""
        return self.folder.text([step.chosen for step in self.generation.steps])

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.learn_walk/1`` object."""
        config = self.folder.config
        return {
            "schema": "kvgauge.learn_walk/1",
            "model": {
                **self.folder.model.to_dict(),
                "id": self.name,
                "shipped": self.is_shipped,
                "hidden": config.hidden,
                "query_heads": config.query_heads,
                "kv_heads": config.kv_heads,
                "head_width": config.head_width,
                "intermediate": config.intermediate,
                "vocabulary": config.vocabulary,
            },
            "tokens": [token.to_dict() for token in self.tokens],
            "embedding": {"rows": self.embedding[0], "columns": self.embedding[1]},
            "projections": self.projections.to_dict(),
            "attention": self.attention.to_dict(),
            "feed_forward": [{"name": name, **one.to_dict()} for name, one in self.digestion],
            "depths": [depth.to_dict() for depth in self.depths],
            "next": [one.to_dict() for one in self.candidates],
            "text": self.text,
            "said": self.said,
            "generation": self.generation.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }


def learn_walk(
    text: str | None = None,
    *,
    model: str | None = None,
    ids: str | None = None,
    new_tokens: int | None = None,
    temperature: str | None = None,
    seed: int | None = None,
    offline: bool = False,
) -> WalkAnswer:
    """Walk a text through a model, then generate.

    Args:
        text: None is the article's example, unless ids are given.
        model: a folder; None is the small model that ships.
        ids: the text as ids, joined by commas.
        new_tokens: at most so many; a token that ends a text ends it.
        temperature, seed: how tokens are chosen; greedily where no temperature is given.
        offline: nothing is fetched either way.

    Raises:
        KvgaugeError: the request, the folder or its weights are refused.
    """
    count = DEFAULT_NEW_TOKENS if new_tokens is None else new_tokens
    if not 0 < count <= MAX_NEW_TOKENS:
        raise InvalidRequestError(
            f"--new-tokens {count} is out of range", hint=f"1 to {MAX_NEW_TOKENS}", field="new_tokens"
        )
    sampling = Sampling(_temperature(temperature), 0 if seed is None else seed)
    sampling.chooser()  # refuses an impossible one before anything is loaded
    asked = None if ids is None else _read_ids(ids)
    if asked is not None and text is not None:
        raise InvalidRequestError("a text and --ids do not go together", hint="give one of them", field="ids")
    _check_text(text)
    folder = shipped_folder() if model is None else open_folder(model)
    prompt = folder.encode(DEFAULT_TEXT if text is None else text) if asked is None else folder.checked(asked)
    _check_length(folder, len(prompt), count)
    return _walk(folder, prompt, count, sampling, is_shipped=model is None)


def _walk(
    folder: Folder, prompt: tuple[int, ...], new_tokens: int, sampling: Sampling, *, is_shipped: bool
) -> WalkAnswer:
    decoder = folder.decoder
    last = len(decoder.layers) - 1
    trace = Trace(frozenset({0, last // 2, last}))
    logits = decoder.forward(np.array([prompt]), watch=trace, last_only=True)[0, -1]
    return WalkAnswer(
        folder=folder,
        is_shipped=is_shipped,
        tokens=read_tokens(folder, prompt),
        embedding=(decoder.embedding.shape[0], decoder.embedding.shape[1]),
        projections=project(decoder, prompt, trace),
        attention=attend(decoder, trace),
        digestion=digest(trace),
        depths=depths(folder, trace),
        candidates=candidates(folder, logits),
        generation=run_generation(folder, prompt, new_tokens, sampling),
        notes=_unknown(folder, prompt),
    )


def _temperature(text: str | None) -> float:
    try:
        return 0.0 if text is None else float(text)
    except ValueError:
        raise InvalidRequestError(
            f"--temperature {text!r} is no number", hint="0 to 100", field="temperature"
        ) from None


def _read_ids(text: str) -> tuple[int, ...]:
    words = re.split(r"\s*,\s*|\s+", text.strip("[] \t\n"))
    if len(words) > MAX_PROMPT_TOKENS:
        raise _too_long(len(words), MAX_PROMPT_TOKENS)
    if not all(re.fullmatch(r"\d{1,9}", word, re.ASCII) for word in words):
        raise InvalidRequestError(f"--ids {text!r} are no ids", hint="for example --ids 1,2,3", field="ids")
    return tuple(map(int, words))


def _check_text(text: str | None) -> None:
    if text is not None and not text.strip():
        raise InvalidRequestError("the text is empty", hint="give at least one character", field="text")
    if text is not None and len(text) > MAX_TEXT:
        raise _too_long(len(text), MAX_PROMPT_TOKENS)


def _check_length(folder: Folder, prompt: int, new_tokens: int) -> None:
    """Refuse what is too long to be walked through, or for the model."""
    if prompt > MAX_PROMPT_TOKENS:
        raise _too_long(prompt, MAX_PROMPT_TOKENS)
    if prompt + new_tokens > folder.config.max_tokens:
        raise InvalidRequestError(
            f"{prompt} tokens and {new_tokens} new ones exceed the model's {folder.config.max_tokens}",
            hint="give a shorter text or fewer --new-tokens",
            field="new_tokens",
        )


def _too_long(count: int, limit: int) -> InvalidRequestError:
    return InvalidRequestError(
        f"a text of {count} is too long to be walked through", hint=f"at most {limit} tokens", field="text"
    )


def _unknown(folder: Folder, prompt: tuple[int, ...]) -> tuple[Note, ...]:
    """Say how many pieces of the text the vocabulary lacks."""
    word = getattr(folder.tokenizer.model, "unk_token", None) if folder.has_tokenizer else None
    unknown = folder.tokenizer.token_to_id(word) if word else None
    count = 0 if unknown is None else prompt.count(unknown)
    if not count:
        return ()
    message = f"characters that the vocabulary lacks: {count}; they all share one id"
    return (Note("characters_unknown", "warning", message, (("count", str(count)),)),)
