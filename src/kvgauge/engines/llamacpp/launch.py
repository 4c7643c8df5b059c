"""The line that starts llama-server for a load, the user's own flags kept as they are."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from kvgauge.engines.llamacpp.settings import LlamaSettings


def launch_command(model: str, settings: LlamaSettings, args: str, told: Mapping[str, object]) -> str:
    """Return ``llama-server`` with a flag for everything that is not its default."""
    own = shlex.split(args)
    if own and not own[0].startswith("-") and "=" not in own[0]:
        own = own[1:]
    named = {"-m", "--model", "-hf", "-hfr", "--hf-repo"} & {word.partition("=")[0] for word in own}
    words = ["llama-server", *([] if named else _model_words(model))]
    for flag, value, option in _flags(settings):
        if option not in told:
            words += [flag, value] if value else [flag]
    return shlex.join([*words, *own])


def _model_words(model: str) -> list[str]:
    """Return the flags for a file of a hub, or for a path."""
    repository, colon, file = model.partition(":")
    if colon and repository.count("/") == 1 and file.endswith(".gguf") and not repository.startswith("."):
        return ["-hf", repository, "--hf-file", file]
    return ["-m", model]


def _flags(settings: LlamaSettings) -> Iterator[tuple[str, str, str]]:
    yield "-c", str(settings.context_tokens), "max_model_len"
    is_default = settings.sequences == settings.build.slots and settings.unified == settings.build.unified
    if not is_default:
        yield "-np", str(settings.sequences), "sequences"
    if settings.k_type != "f16":
        yield "-ctk", settings.k_type, "k_dtype"
    if settings.v_type != "f16":
        yield "-ctv", settings.v_type, "v_dtype"
    if settings.mtp:
        yield "--spec-type", "draft-mtp", "mtp"
        yield "--spec-draft-n-max", str(settings.rollback_tokens), "mtp"
