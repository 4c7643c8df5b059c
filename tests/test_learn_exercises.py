"""``learn exercises``: solutions by hand, what is accepted, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvgauge.errors import InvalidRequestError
from kvgauge.lab.exercises import exercises, learn_exercises
from kvgauge.units import GIB

BY_HAND = {
    "l0-rows": 4 + 5 + 6,
    "l1-token": 28 * 2 * 8 * 128 * 2,
    "l2-batch": 147_456 * 8192 * 16,
    "l2-room": 10 * GIB // 147_456,
    "l3-state": -(-49_082_368 // 6144),
    "l3-window": 24_576 * (131_072 + 128),
    "l3-latent": 61 * (512 + 64) * 2,
    "l4-int4": 6_071_347_200,
    "l5-ranks": 20_480 * 32768 // 2 + 64_389_120 // 4,
    "a-scores": 32 * 8192 * 8192 * 2,
    "a-pages": 63,
    "b-racks": 9,
    "c-kept": 2,
    "c-gate": 8192 * 12_288 * 2,
}


@pytest.mark.parametrize("one", exercises(), ids=lambda one: one.id)
def test_the_solution_is_that_by_hand(one):
    assert one.solution == BY_HAND[one.id]


def test_every_chapter_has_one():
    assert {one.chapter for one in exercises()} == {"L0", "L1", "L2", "L3", "L4", "L5", "A", "B", "C"}


def test_every_exercise_is_here():
    assert {one.id for one in exercises()} == set(BY_HAND)


@pytest.mark.parametrize(
    ("exercise", "answer", "right"),
    [
        ("l2-batch", "18GiB", True),
        ("l2-batch", "18.0 GiB", True),
        ("l2-batch", "18GB", False),
        ("l2-batch", "19327352832", True),
        ("l2-room", "72,817", True),
        ("l2-room", "72818", False),
        ("l4-int4", "6.1GB", True),
        ("l4-int4", "5GB", False),
    ],
)
def test_answers_are_judged(exercise, answer, right):
    assert learn_exercises(exercise=exercise, answer=answer).is_right is right


def test_nothing_is_given_away():
    told = learn_exercises(exercise="l2-room").to_dict()
    assert (told["solution"], told["why"], told["is_right"]) == (None, None, None)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"exercise": "l2-bach"}, "no exercise"),
        ({"answer": "3"}, "needs an exercise"),
        ({"exercise": "l2-room", "answer": "many"}, "not a whole number"),
        ({"exercise": "l2-batch", "answer": "many"}, "not understood"),
    ],
)
def test_what_can_not_be_judged_is_said(options, text):
    with pytest.raises(InvalidRequestError, match=text):
        learn_exercises(**options)


@given(st.sampled_from(exercises()), st.text(max_size=20))
def test_any_text_is_judged_or_refused(one, text):
    try:
        one.read(text)
    except InvalidRequestError:
        return
    assert one.read(text) >= 0
