"""What each Transformers version stores: a table of facts, newest last.

Read from the released packages of 4.57.3, 5.0.0, 5.14.0 and 5.24.0, and held against cache bytes after real
forward passes of 4.57.3 and 5.24.0 (torch 2.13.0, CPU).
"""

from __future__ import annotations

from dataclasses import dataclass

from kvgauge.architecture import Note
from kvgauge.engines.versions import too_old
from kvgauge.errors import InvalidRequestError
from kvgauge.layers import Mechanism

_MAMBA = frozenset({Mechanism.MAMBA1, Mechanism.MAMBA2})

#: RecurrentGemma keeps window and state in its modules; a plain forward hands no cache object back.
_GRIFFIN = frozenset({"recurrent_gemma"})
#: Before the common cache, these classes made their own cache in ``generate`` alone.
_GENERATE_ONLY = frozenset({"bamba", "falcon_h1", "granitemoehybrid", "jamba", "zamba"})


@dataclass(frozen=True, slots=True)
class VersionRules:
    """Facts of one version and of those after it, up to the next entry.

    Args:
        release: (major, minor).
        latents_expanded: MLA keeps K and V of every head; later the latent and its rope part.
        state_in_model_dtype: recurrences whose state follows the model dtype; others are fp32.
        convolution_everywhere: attention layers of short-convolution models hold a column buffer too.
        state_in_static: StaticCache takes layers that keep a state.
        no_cache_object: model types whose plain forward returns no cache.
        quantized_backends: what QuantizedCache accepts.
        fetches_every_hybrid: layers with state and attention come back from the host, static and sliding too.
        shared_states_persist: what layers read of another layer's cache stays on the device between steps.
        quantized_checks_layers: QuantizedCache refuses windows; before, it held them at full length.
    """

    version: str
    release: tuple[int, int]
    latents_expanded: bool = False
    state_in_model_dtype: frozenset[Mechanism] = frozenset()
    convolution_everywhere: bool = False
    state_in_static: bool = True
    no_cache_object: frozenset[str] = _GRIFFIN
    quantized_backends: tuple[str, ...] = ("quanto", "hqq")
    fetches_every_hybrid: bool = True
    shared_states_persist: bool = False
    quantized_checks_layers: bool = True


VERSIONS: tuple[VersionRules, ...] = (
    VersionRules(
        "4.57.3",
        (4, 57),
        latents_expanded=True,
        state_in_model_dtype=_MAMBA,
        convolution_everywhere=True,
        state_in_static=False,
        no_cache_object=_GRIFFIN | _GENERATE_ONLY,
        shared_states_persist=True,
        quantized_checks_layers=False,
    ),
    VersionRules("5.14", (5, 14), latents_expanded=True, fetches_every_hybrid=False),
    VersionRules("5.15", (5, 15), fetches_every_hybrid=False),
    VersionRules("5.24.0", (5, 24), quantized_backends=("quanto", "hqq", "fp8")),
)
NEWEST = VERSIONS[-1]


def rules_for(version: str | None) -> VersionRules:
    """Return the rules of a version; None is the newest.

    Raises:
        InvalidRequestError: not a version.
        FeatureUnsupportedError: older than the oldest entry.

    >>> rules_for("5.16.1").version
    '5.15'
    """
    if version is None:
        return NEWEST
    release = _release(version)
    known = [rules for rules in VERSIONS if rules.release <= release]
    if not known:
        raise too_old("transformers", version, VERSIONS[0].version)
    return known[-1]


def version_notes(version: str) -> tuple[Note, ...]:
    """Say where the rules of another version stand in for those of ``version``."""
    rules = rules_for(version)
    release = _release(version)
    if release == rules.release:
        return ()
    newer = rules is NEWEST
    values = (("engine", "transformers"), ("version", version), ("rules", rules.version))
    text = f"transformers {version} is read with the rules of {rules.version}, " + (
        "the newest known" if newer else "the last version before it that was checked"
    )
    return (Note("engine_version_newer" if newer else "engine_version_nearest", "info", text, values),)


def _release(version: str) -> tuple[int, int]:
    parts = version.removeprefix("v").split(".")
    if len(parts) < 2 or not all(part.isdecimal() and len(part) < 6 for part in parts[:2]):
        raise InvalidRequestError(
            f"{version!r} is not a version of transformers",
            hint="for example transformers@5.24.0",
            field="engine",
        )
    return int(parts[0]), int(parts[1])
