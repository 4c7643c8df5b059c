"""The small model that ships with the package: one character is one token."""

from __future__ import annotations

from pathlib import Path

import kvgauge.data
from kvgauge.lab.folder import Folder, open_folder

#: How answers call it.
SHIPPED_NAME = "kvgauge-lab"


def shipped_folder() -> Folder:
    """Return the model that runs where no other is named.

    >>> from kvgauge.lab.generate import complete
    >>> complete(shipped_folder(), "今天天气", 3)
    '真好！'
    """
    return open_folder(Path(kvgauge.data.__file__).parent / "lab_model")
