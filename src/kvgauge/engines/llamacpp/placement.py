"""Which device a layer lies on (``load_tensors`` of ``src/llama-model.cpp``).

The last ``-ngl`` of the layers and the output, which counts as one, go to the devices; devices share them in
the ratio of ``-ts``, else of their free memory, which is taken as even. A layer's cache and state follow it.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from kvgauge.engines.llamacpp.settings import LlamaSettings
from kvgauge.values import dataclass

HOST = "host"


@dataclass(frozen=True, slots=True)
class LayerPlacement:
    """Where layers lie.

    Args:
        num_layers: blocks of the file, those of multi-token prediction among them.
        first_on_device: index of the first layer on a device.
        num_on_device: layers on devices, the output among them.
        split_points: share of the layers up to and with each device.
    """

    num_layers: int
    first_on_device: int
    num_on_device: int
    split_points: tuple[float, ...]

    def place(self, layer: int) -> str:
        """Return the place of a layer; ``num_layers`` is the output."""
        at = min(layer, self.num_layers) - self.first_on_device
        if at < 0 or at >= self.num_on_device:
            return HOST
        device = bisect_right(self.split_points, at / self.num_on_device)
        return f"gpu:{min(device, len(self.split_points) - 1)}"

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the places of all devices that hold a layer, in order."""
        places = {self.place(i) for i in range(self.num_layers + 1)} - {HOST}
        return tuple(sorted(places, key=lambda place: int(place.partition(":")[2])))


def layer_placement(settings: LlamaSettings, num_layers: int) -> LayerPlacement:
    """Return the placement of a model's layers.

    >>> places = layer_placement(LlamaSettings(num_gpus=2), 80)
    >>> [sum(places.place(i) == gpu for i in range(80)) for gpu in ("gpu:0", "gpu:1")]
    [41, 39]
    """
    gpus = settings.num_gpus if settings.split_mode != "none" else min(1, settings.num_gpus)
    asked = num_layers + 1 if settings.gpu_layers is None else settings.gpu_layers
    on_device = min(asked, num_layers + 1) if gpus else 0
    ratios = [*settings.tensor_split[:gpus], *(0.0,) * (gpus - len(settings.tensor_split))]
    if not settings.tensor_split or not sum(ratios):
        ratios = [1.0] * gpus
    total = sum(ratios) or 1.0
    return LayerPlacement(
        num_layers,
        max(num_layers + 1 - asked, 0),
        on_device,
        tuple(part / total for part in accumulate(ratios)),
    )
