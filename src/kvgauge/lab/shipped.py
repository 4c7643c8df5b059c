"""The small model that ships with the package: one character is one token."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import kvgauge.data

if TYPE_CHECKING:
    from kvgauge.lab.folder import Folder

#: How answers call it, and where it lies.
SHIPPED_NAME = "kvgauge-lab"
SHIPPED = Path(kvgauge.data.__file__).parent / "lab_model"


def shipped_folder() -> Folder:
    """Return the model that runs where no other is named.

    >>> from kvgauge.lab.generate import complete
    >>> complete(shipped_folder(), "今天天气", 3)
    '真好！'
    """
    from kvgauge.lab.folder import open_folder  # noqa: PLC0415 - NumPy

    return open_folder(SHIPPED)
