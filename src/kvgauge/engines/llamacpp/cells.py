"""How many cells the sub-caches have (``src/llama-context.cpp``, ``src/llama-kv-cache-iswa.cpp``)."""

from __future__ import annotations

from kvgauge.engines.llamacpp.settings import LlamaSettings
from kvgauge.errors import InvalidRequestError
from kvgauge.values import dataclass

#: Cells of DeepSeek-V4's compressed caches are rounded up to this.
COMPRESSED_PADDING = 256


@dataclass(frozen=True, slots=True)
class ContextSizes:
    """Sizes of a context.

    Args:
        n_ctx: tokens over all sequences, after rounding.
        cells: cells of one stream, which is the context of one sequence.
        streams: streams of the caches; 1 where sequences share one.
        sequences: sequences served.
        batch_tokens, micro_batch_tokens: after the context's own limit.
    """

    n_ctx: int
    cells: int
    streams: int
    sequences: int
    batch_tokens: int
    micro_batch_tokens: int

    def window_cells(self, window_tokens: int, settings: LlamaSettings, *, shared: bool) -> int:
        """Return cells of a stream of the window pool: all windows that share it, and a micro-batch.

        Args:
            shared: one stream holds the windows of all sequences.
        """
        if settings.full_windows or not settings.build.window_pool:
            return self.cells
        windows = window_tokens * (self.sequences if shared else 1)
        padding = settings.build.window_padding_tokens or context_padding(settings)
        return pad(min(self.cells, windows + self.micro_batch_tokens), padding)

    def compressed_cells(self, ratio: int) -> int:
        """Return cells of a stream that keeps one record every ``ratio`` tokens."""
        return pad(max(1, -(-self.cells // ratio)), COMPRESSED_PADDING)


def pad(tokens: int, multiple: int) -> int:
    """Round up to a multiple.

    >>> pad(5000, 256)
    5120
    """
    return -(-tokens // multiple) * multiple


def context_padding(settings: LlamaSettings) -> int:
    """Return what the cells of a stream are rounded up to."""
    build = settings.build
    return build.plain_padding_tokens if settings.flash == "off" else build.padding_tokens


def context_sizes(settings: LlamaSettings, context_limit_tokens: int | None) -> ContextSizes:
    """Return the sizes of the context that llama.cpp makes.

    Raises:
        InvalidRequestError: neither the flags nor the model say how long it is.

    >>> context_sizes(LlamaSettings(context_tokens=5000, sequences=3), None).n_ctx
    5376
    """
    asked = settings.context_tokens or context_limit_tokens
    if not asked:
        raise InvalidRequestError(
            "neither the flags nor the model say how long the context is",
            hint="pass --context, or -c in the flags",
            field="context",
        )
    batch = min(asked, settings.batch_tokens)
    padding = context_padding(settings)
    total = pad(asked, padding)
    streams = 1 if settings.unified else settings.sequences
    # Rounded once over all and once a stream, so a context that sequences do not divide evenly goes up.
    cells = total if streams == 1 else pad(max(1, total // settings.sequences), padding)
    return ContextSizes(
        n_ctx=cells * streams,
        cells=cells,
        streams=streams,
        sequences=settings.sequences,
        batch_tokens=batch,
        micro_batch_tokens=min(batch, settings.micro_batch_tokens),
    )
