"""The kinds of arrays that the lab computes with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Numbers; fp32 but where a function says otherwise.
Floats = NDArray[np.floating[Any]]
#: Token ids.
Ids = NDArray[np.integer[Any]]
