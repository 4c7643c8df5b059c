"""The options of every question, as the page offers them: names, sections, texts, words that they take."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from kvgauge.cli.completion import words_of
from kvgauge.cli.option_row import OptionRow
from kvgauge.cli.options import ALL
from kvgauge.render.messages import Lang, Texts
from kvgauge.web.answers import QUESTIONS, Question
from kvgauge.web.telling import Told, told

if TYPE_CHECKING:
    from kvgauge.web.asking import Speech
    from kvgauge.web.desk import Desk, Keywords

Json = dict[str, object]

#: Names of options that a request spells otherwise.
_OTHERWISE = {"override": "overrides"}


async def answer_options(desk: Desk, keywords: Keywords, speech: Speech) -> Told:
    """Return the ``kvgauge.options/1`` object."""
    del desk, keywords
    return told(options(speech.lang))


@lru_cache(maxsize=2)
def options(lang: Lang) -> Json:
    """Return every option that a request may hold, with the words that it takes where they are known."""
    texts = Texts(lang)
    questions = {question.name: question.keywords for question in QUESTIONS}
    rows = []
    for option in {row.name: row for row in ALL if row.section != "later"}.values():
        name = _OTHERWISE.get(option.name, option.name)
        takes = [question for question, keywords in questions.items() if name in keywords]
        if takes:
            rows.append({**_row(option, texts), "name": name, "questions": takes})
    return {"schema": "kvgauge.options/1", "options": rows}


def _row(option: OptionRow, texts: Texts) -> Json:
    return {
        "flag": option.flags[0],
        "spellings": list(option.flags[1:]),
        "section": option.section,
        "section_title": texts(f"help.section.{option.section}"),
        "kind": option.kind,
        "metavar": option.metavar,
        "text": texts(f"help.option.{option.name}"),
        "words": words_of(option),
    }


OPTIONS = Question("options", {}, answer_options, by_body=False)
