"""Text from files and arguments, made safe to show."""

from __future__ import annotations


def clean(text: str) -> str:
    r"""Escape what a terminal would act on or can't show: control, bidirectional and surrogate characters.

    >>> clean("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
