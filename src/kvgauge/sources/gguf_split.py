"""Names of split sets: ``NAME-00001-of-00003.gguf``, as ``llama-gguf-split`` writes them."""

from __future__ import annotations

import re

from kvgauge.errors import DamagedFileError
from kvgauge.values import dataclass

MAX_FILES = 1000

_NAME = re.compile(
    r"(?P<prefix>[^/\\\0]+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class SplitName:
    """One file of a split set, numbered from 1."""

    prefix: str
    number: int
    count: int
    suffix: str = ".gguf"

    @classmethod
    def parse(cls, name: str) -> SplitName | None:
        """Take the bare name of a file apart; None where it is not one of a set.

        Raises:
            DamagedFileError: the numbers contradict each other.

        >>> SplitName.parse("m-00002-of-00003.gguf").number
        2
        """
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        number, count = int(match["number"]), int(match["count"])
        if not 1 <= number <= count or count > MAX_FILES:
            raise DamagedFileError(
                f"{name} is no file of a set of {count}", hint="check its name", field=name
            )
        return cls(match["prefix"], number, count, name[-5:])

    def all_names(self) -> list[str]:
        """Return the bare names of the whole set, in order.

        >>> SplitName("m", 2, 2).all_names()
        ['m-00001-of-00002.gguf', 'm-00002-of-00002.gguf']
        """
        return [f"{self.prefix}-{i:05d}-of-{self.count:05d}{self.suffix}" for i in range(1, self.count + 1)]
