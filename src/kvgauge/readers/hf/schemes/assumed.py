"""What a quantisation block leaves open, and the notes that say so.

A repository's name tells its scheme, not its group size or which layers stay at 16 bit. A row of the
catalogue that was written from a name lists what it takes for granted under ``_assumed``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kvgauge.architecture import Note
from kvgauge.readers.hf.schemes.block import Block

#: Field of a block of the catalogue: words of the table below.
ASSUMED = "_assumed"


def kept_layers(block: Block) -> Note:
    """Return the warning that a block does not name all layers that stay at 16 bit."""
    text = (
        "does not name all layers that stay at 16 bit; those that the method leaves alone are counted as such"
    )
    message = f"{block.path} {text}, the files may be larger"
    return Note("kept_layers_assumed", "warning", message, (("field", block.path),))


def group_size(block: Block) -> Note:
    """Return the warning that a group size is the usual one."""
    message = f"{block.path} has a group size that is usual, not known; the files may differ"
    return Note("group_size_assumed", "warning", message, (("field", block.path),))


_NOTES: Mapping[str, Callable[[Block], Note]] = {"kept_layers": kept_layers, "group_size": group_size}


def assumptions(block: Block) -> Iterator[Note]:
    """Yield a warning for each thing that the block itself says is assumed."""
    for word in dict.fromkeys(block.names(ASSUMED)):
        if word in _NOTES:
            yield _NOTES[word](block)
