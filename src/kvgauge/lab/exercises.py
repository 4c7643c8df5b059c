"""``learn exercises``: questions to the chapters, and their answers as the library gives them."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from kvgauge.architecture import Note
from kvgauge.data import read_data
from kvgauge.errors import InvalidRequestError
from kvgauge.fit_search import largest
from kvgauge.sizing import size
from kvgauge.units import parse_size

#: No context is looked for beyond this.
MOST_TOKENS = 1 << 40
_COUNT = re.compile(r"\d{1,20}")


def _sized(model: str, **options: Any) -> Any:  # noqa: ANN401 - the keywords of ``size``
    return size(model, **options)


def longest_context(model: str, room_bytes: int) -> int:
    """Return the longest context of one sequence whose cache fits; one token more does not."""
    cache = _sized(model, context=1, no_weights=True).cache
    return largest(MOST_TOKENS, lambda tokens: cache.bytes_at(tokens) <= room_bytes)


def _racks(model: str) -> int:
    from kvgauge.splits import splits  # noqa: PLC0415 - one exercise asks

    (found,) = splits(model, ["sram"], context=1).splits
    return int(found["racks_for_weights"])


def _activation(model: str, tokens: int, name: str) -> int:
    from kvgauge.lab.activations import learn_activations  # noqa: PLC0415 - one chapter asks

    made = learn_activations(model, tokens=tokens).groups[0].prefill.made
    return next(one.size_bytes for one in made if one.life.name == name)


def _kept_activations(model: str) -> int:
    from kvgauge.lab.activations import learn_activations  # noqa: PLC0415 - one chapter asks

    made = learn_activations(model).groups[0].decode.made
    return sum(one.life.fate.value == "cached" for one in made)


def _state_in_tokens(model: str) -> int:
    cache = _sized(model, no_weights=True).cache
    tokens: int = math.ceil(Fraction(cache.fixed_bytes_per_sequence) / cache.growth_bytes_per_token)
    return tokens


#: What an exercise may ask.
ASKED: Mapping[str, Callable[..., int | Fraction]] = {
    "rows_without_cache": lambda prompt, answer: sum(range(prompt, prompt + answer)),
    "token_bytes": lambda model: _sized(model, no_weights=True).cache.growth_bytes_per_token,
    "cache_bytes": lambda **load: _sized(**load, no_weights=True).cache.total_bytes,
    "rank_bytes": lambda **load: max(_sized(**load, no_weights=True).cache.per_rank_bytes),
    "weight_bytes": lambda **load: _sized(**load).weights.total_bytes,
    "longest_context": longest_context,
    "state_in_tokens": _state_in_tokens,
    "score_bytes": lambda heads, tokens, element_bytes: heads * tokens * tokens * element_bytes,
    "pages": lambda tokens, page_tokens: -(-tokens // page_tokens),
    "racks": _racks,
    "activation_bytes": _activation,
    "kept_activations": _kept_activations,
}


@dataclass(frozen=True, slots=True)
class Exercise:
    """One question.

    Args:
        unit: ``bytes``, ``tokens`` or ``count``; bytes may be answered in any unit.
        tolerance: share that an answer may be off by.
        question, why: by language.
    """

    id: str
    chapter: str
    unit: str
    ask: str
    arguments: Mapping[str, Any]
    tolerance: Fraction
    question: Mapping[str, str]
    why: Mapping[str, str]

    @property
    def solution(self) -> int:
        """The answer, computed."""
        return int(ASKED[self.ask](**self.arguments))

    def accepts(self, given: int) -> bool:
        """Whether an answer is right. Bytes in a rounded unit are: 4.5GiB."""
        return abs(given - self.solution) <= self.tolerance * self.solution

    def read(self, text: str) -> int:
        """Return an answer as a number.

        Raises:
            InvalidRequestError: it is none.
        """
        if self.unit == "bytes":
            return parse_size(text, what="answer", rounds=True)
        plain = text.strip().replace(",", "").replace("_", "")
        if not _COUNT.fullmatch(plain):
            raise InvalidRequestError(
                f"answer {text!r} is not a whole number", hint="write it like 47472", field="answer"
            )
        return int(plain)


@lru_cache(maxsize=1)
def exercises() -> tuple[Exercise, ...]:
    """Return all exercises, in the order of the chapters."""
    return tuple(_exercise(row) for row in json.loads(read_data("exercises.json")))


#: Half a unit of the third figure, in which sizes are shown everywhere.
_ROUNDED = Fraction(1, 200)


def _exercise(row: Mapping[str, Any]) -> Exercise:
    tolerance = Fraction(str(row.get("tolerance", 0))) or (
        _ROUNDED if row["unit"] == "bytes" else Fraction(0)
    )
    return Exercise(
        row["id"], row["chapter"], row["unit"], row["ask"], row["with"], tolerance,
        {"en": row["en"], "zh": row["zh"]}, {"en": row["why_en"], "zh": row["why_zh"]},
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExercisesAnswer:
    """The answer of ``learn exercises``.

    Args:
        given: what was answered; None where nothing was.
        is_right: None where nothing was answered.
    """

    asked: tuple[Exercise, ...]
    given: int | None = None
    is_right: bool | None = None
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.learn_exercises/1`` object; solutions only of what was answered."""
        return {
            "schema": "kvgauge.learn_exercises/1",
            "exercises": [
                {"id": one.id, "chapter": one.chapter, "unit": one.unit, "question": dict(one.question)}
                for one in self.asked
            ],
            "given": self.given,
            "is_right": self.is_right,
            "solution": None if self.given is None else self.asked[0].solution,
            "why": None if self.given is None else dict(self.asked[0].why),
            "notes": [note.to_dict() for note in self.notes],
        }


def learn_exercises(
    *, exercise: str | None = None, answer: str | None = None, offline: bool = False
) -> ExercisesAnswer:
    """Return the questions, one of them, or whether an answer to it is right.

    Raises:
        InvalidRequestError: no such exercise, an answer to none, or no number.

    >>> learn_exercises(exercise="l2-batch", answer="18GiB").is_right
    True
    """
    known = {one.id: one for one in exercises()}
    if exercise is None:
        if answer is not None:
            raise InvalidRequestError(
                "--answer needs an exercise", hint="kvgauge learn exercises lists them", field="answer"
            )
        return ExercisesAnswer(exercises())
    if exercise not in known:
        near = difflib.get_close_matches(exercise, known, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else "kvgauge learn exercises lists them"
        raise InvalidRequestError(f"there is no exercise {exercise}", hint=hint, field="exercise")
    found = known[exercise]
    if answer is None:
        return ExercisesAnswer((found,))
    given = found.read(answer)
    return ExercisesAnswer((found,), given, found.accepts(given))
