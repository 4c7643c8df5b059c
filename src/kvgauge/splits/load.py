"""What every split starts from: a sized model, the cards, the machine around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.cache import CacheAnswer
    from kvgauge.hardware import Accelerator
    from kvgauge.size_result import SizeResult
    from kvgauge.splits.figures import Assumption
    from kvgauge.stored_weights import StoredWeights


@dataclass(frozen=True)
class SplitLoad:
    """A load and the machine that it runs on.

    Args:
        sized: the model under the whole load, cut over the ranks of one replica, weights included.
        one: one sequence of the whole context.
        prompt: one sequence, prefilled and not yet decoded.
        card: None where a split needs none.
        host_bytes: memory of the host that may hold caches; None: not given.
        sram: the card that holds weights in on-chip memory.
    """

    sized: SizeResult
    one: CacheAnswer
    prompt: CacheAnswer
    card: Accelerator | None
    network: Assumption
    host_bytes: int | None = None
    sram: Accelerator | None = None

    @property
    def cache(self) -> CacheAnswer:
        """The cache of the whole load."""
        return self.sized.cache

    @property
    def sequences(self) -> int:
        """Sequences held at once."""
        return self.cache.workload.sequences

    @property
    def num_gpus(self) -> int:
        """Ranks of one replica."""
        return self.cache.parallelism.tensor * self.cache.parallelism.pipeline

    @property
    def stored(self) -> StoredWeights:
        """The weights as they are stored.

        Raises:
            InvalidRequestError: they were left out.
        """
        if self.sized.weights is None:
            raise InvalidRequestError(
                "this split needs the weights", hint="leave out --no-weights", field="no_weights"
            )
        return self.sized.weights.stored

    @property
    def device(self) -> Accelerator:
        """The card.

        Raises:
            InvalidRequestError: none is named.
        """
        if self.card is None:
            raise InvalidRequestError("this split needs a card", hint="--gpu NAME[:COUNT]", field="gpu")
        return self.card

    @property
    def sram_card(self) -> Accelerator:
        """The card that holds weights in on-chip memory.

        Raises:
            InvalidRequestError: none is named.
        """
        if self.sram is None or not self.sram.sram_bytes:
            raise InvalidRequestError(
                "this split needs a card that holds weights in on-chip memory",
                hint="one of: kvgauge gpus sram",
                field="sram",
            )
        return self.sram

    def needs(self, found: Assumption | None, what: str) -> Assumption:
        """Return what is known of the card.

        Raises:
            FeatureUnsupportedError: it is not known.
        """
        if found is None:
            raise FeatureUnsupportedError(
                f"{what} of {self.device.name} is not known",
                hint="name a card whose row has it: kvgauge gpus --json, or --gpu-file",
                field="gpu",
            )
        return found
