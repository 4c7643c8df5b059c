"""From keywords to a request: the model is read, the engine found, and what was left out filled in.

``size`` and ``fit`` both start here, so that the same words mean the same load.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.dtypes import canonical_dtype
from kvgauge.engine_models import classes_of, model_notes
from kvgauge.engines import load_engine, parse_engine
from kvgauge.engines.base import RequestedDtypes
from kvgauge.engines.setup import Setup
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.models import Model, ModelLike, load
from kvgauge.request_notes import (
    context_notes,
    idle_option_notes,
    override_notes,
    parallel_notes,
    reservation_notes,
)
from kvgauge.size_result import Request
from kvgauge.units import parse_size, parse_tokens
from kvgauge.values import dataclass
from kvgauge.workload import Parallelism, Workload

if TYPE_CHECKING:
    from kvgauge.engines.base import Engine
    from kvgauge.engines.setup import Card
    from kvgauge.launch_lines import LaunchLine
    from kvgauge.sources.weight_files import Progress

DEFAULT_CONTEXT_TOKENS = 32768
#: Engines whose flags are known by version.
FLAGGED = frozenset({"vllm", "sglang", "llama.cpp"})
_LONGEST_SHARE = 12


@dataclass(frozen=True)
class Options:
    """The load and model options of every command, as they were given; None was not.

    Args:
        max_model_len: tokens that the engine is told to reserve; alone it is the context too.
        kv_memory, utilization: what ``fit`` takes beside them.
    """

    context: int | str | None = None
    max_model_len: int | str | None = None
    sequences: int | None = None
    encoder_tokens: int | str | None = None
    image_tokens: int | str | None = None
    shared_prefix: int | str | None = None
    kv_dtype: str | None = None
    k_dtype: str | None = None
    v_dtype: str | None = None
    state_dtype: str | None = None
    index_dtype: str | None = None
    mtp: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    ep: int | None = None
    dcp: int | None = None
    kv_memory: int | str | None = None
    utilization: float | str | None = None

    @property
    def parallelism(self) -> Parallelism:
        """The ranks, one of each kind where none are given."""
        given = (self.tp, self.pp, self.dp, self.ep, self.dcp)
        return Parallelism(*(1 if ranks is None else ranks for ranks in given))


@dataclass(frozen=True)
class Prepared:
    """A request that is understood, before anything is counted.

    Args:
        notes: what to say about the request; those of the engine's answer come after them.
        late_notes: what to say after the engine's.
        architecture: shapes of the model, as the engine reads it.
    """

    model: Model
    engine: Engine
    options: Options
    request: Request
    setup: Setup
    notes: tuple[Note, ...]
    late_notes: tuple[Note, ...]
    architecture: ModelArchitecture


def with_command(
    command: str | None,
    model: ModelLike | None,
    engine: str | None,
    engine_args: str,
) -> tuple[ModelLike, str | None, str]:
    """Return model, engine and flags with those of a launch line in place of what is not given.

    Args:
        model: None where the line is to name it; a model that is given goes before the line's.
        engine: may say the version of the engine that the line starts.

    Raises:
        InvalidRequestError: the line starts another engine, or nothing names a model.
    """
    if command is not None:
        from kvgauge.launch_lines import read_launch_line  # noqa: PLC0415 - few give a whole line

        line = read_launch_line(command)
        model = (line.model or None) if model is None else model
        engine, engine_args = _engine(engine, line), " ".join(filter(None, (line.args, engine_args)))
    if model is None:
        raise InvalidRequestError(
            "MODEL is missing", hint="give a model, or a --command that names one", field="model"
        )
    return model, engine, engine_args


def _engine(engine: str | None, line: LaunchLine) -> str:
    if engine is None:
        return line.engine_name
    name, version = parse_engine(engine)
    if name != line.engine:
        raise InvalidRequestError(
            f"--engine is {name}, and --command starts {line.engine}",
            hint="leave --engine out",
            field="engine",
        )
    return engine if version else line.engine_name


def prepare(
    model: ModelLike,
    options: Options,
    *,
    engine: str | None,
    engine_args: str,
    card: Card | None = None,
    overrides: Mapping[str, object] | None = None,
    revision: str | None = None,
    refresh: bool = False,
    offline: bool = False,
    progress: Progress | None = None,
) -> Prepared:
    """Return the request that options make; an engine's flags go before them.

    Raises:
        KvgaugeError: the model or the request is refused.
    """
    loaded = load(
        model, overrides=overrides, revision=revision, refresh=refresh, offline=offline, progress=progress
    )
    name, version = parse_engine(engine) if engine else ("theory", None)
    implementation = load_engine(name)
    version, version_notes = implementation.resolve_version(version)
    architecture = loaded.converted if implementation.reads_gguf else loaded.architecture
    given = options
    flag_notes: tuple[Note, ...] = ()
    told: Mapping[str, object] = {}
    if engine_args.strip():
        limit = architecture.context_limit_tokens
        told = implementation.told_beside(engine_args, version, options.sequences, limit)
    if told:
        from kvgauge.told_flags import flags_first  # noqa: PLC0415 - few give flags

        options, flag_notes = flags_first(options, told)
    if engine_args.strip():
        from kvgauge.engines.flag_notes import unknown_flag_notes  # noqa: PLC0415 - few give flags

        flag_notes = (*flag_notes, *unknown_flag_notes(name, version, engine_args))
    if name in FLAGGED:
        from kvgauge.engines.flag_tables import refuse_lacking  # noqa: PLC0415 - engines without flags

        refuse_lacking(name, version, engine_args, _asked_ranks(options))
    reserve = _reserve(options.max_model_len, architecture)
    workload = _workload(architecture, options, reserve)
    dtypes = RequestedDtypes(
        _dtype(options.k_dtype or options.kv_dtype),
        _dtype(options.v_dtype or options.kv_dtype),
        _dtype(options.state_dtype),
        _dtype(options.index_dtype),
    )
    spread = implementation.ranks(options.parallelism)
    word = options.k_dtype or options.v_dtype or options.kv_dtype
    memory = None if options.kv_memory is None else parse_size(options.kv_memory, what="kv-memory")
    request = Request(
        workload, spread, dtypes, name, version, engine_args, _defaulted(options, architecture, engine)
    )
    return Prepared(
        loaded,
        implementation,
        options,
        request,
        Setup(
            spread,
            reserve,
            None if _dtype(word) is None else word,
            card,
            memory,
            options.sequences is None,
            _share(options.utilization) if memory is None else None,
        ),
        (
            *architecture.notes,
            *override_notes(architecture, loaded.raw.overrides, _weight_paths(loaded)),
            *context_notes(architecture, workload),
            *reservation_notes(workload, reserve),
            *idle_option_notes(
                architecture, workload, dtypes, encoder_given=given.encoder_tokens is not None
            ),
            *version_notes,
            *model_notes(
                name,
                version,
                classes_of(loaded.raw.config),
                loaded.architecture,
                is_reduced=loaded.raw.source == "catalogue",
            ),
            *flag_notes,
        ),
        parallel_notes(workload, spread, loaded.raw.config),
        architecture,
    )


def _asked_ranks(options: Options) -> tuple[str, ...]:
    """Return the kinds of ranks of which there are several."""
    counts = {"tp": options.tp, "pp": options.pp, "dp": options.dp, "dcp": options.dcp}
    return tuple(name for name, count in counts.items() if count is not None and count > 1)


def _weight_paths(model: Model) -> tuple[str, ...]:
    """Return the config fields behind the model's tensors, where a field was changed that may be one."""
    if not model.raw.overrides:
        return ()
    from kvgauge.weight_fields import fields_behind  # noqa: PLC0415 - only a changed field asks

    return tuple(path for fields in fields_behind(model.raw).values() for path in fields)


def _defaulted(options: Options, architecture: ModelArchitecture, engine: str | None) -> tuple[str, ...]:
    """Return the fields of the request that were not given."""
    given = {
        "context_tokens": options.context if options.context is not None else options.max_model_len or None,
        "sequences": options.sequences,
        "encoder_tokens": options.encoder_tokens if architecture.is_encoder_decoder else 0,
        "k_dtype": options.k_dtype or options.kv_dtype,
        "v_dtype": options.v_dtype or options.kv_dtype,
        "engine": engine,
    }
    return tuple(name for name, value in given.items() if value is None)


def _dtype(word: str | None) -> str | None:
    return None if word is None or word.strip().lower() == "auto" else canonical_dtype(word)


def _share(text: float | str | None) -> str | None:
    """Return a share of the card as it was written.

    Raises:
        InvalidRequestError: no number above 0 and up to 1.
    """
    if text is None:
        return None
    word = f"{text:g}" if isinstance(text, float) else str(text).strip()
    if (
        not 0 < len(word) <= _LONGEST_SHARE
        or not re.fullmatch(r"[01]?(\.\d+)?", word)
        or not 0 < float(word) <= 1
    ):
        raise InvalidRequestError(
            f"utilization {word[:40]!r} is no share of a card",
            hint="write it like 0.9",
            field="utilization",
        )
    return word


def _reserve(text: int | str | None, architecture: ModelArchitecture) -> int | None:
    return None if text is None else _tokens(text, architecture, "max-model-len")


def _workload(architecture: ModelArchitecture, options: Options, reserve: int | None) -> Workload:
    limit = architecture.context_limit_tokens
    if options.context is not None:
        context = _tokens(options.context, architecture, "context")
    elif reserve:
        context = reserve
    else:
        context = DEFAULT_CONTEXT_TOKENS if limit is None else min(DEFAULT_CONTEXT_TOKENS, limit)
    if options.encoder_tokens is not None:
        encoder = parse_tokens(options.encoder_tokens, what="encoder-tokens")
    elif architecture.is_encoder_decoder:
        encoder = architecture.encoder_tokens or context
    else:
        encoder = 0
    mtp = options.mtp or 0
    if mtp and not architecture.mtp_layers:
        raise FeatureUnsupportedError(
            "the config describes no multi-token-prediction layers", hint="leave --mtp out", field="mtp"
        )
    return Workload(
        context,
        1 if options.sequences is None else options.sequences,
        encoder,
        parse_tokens(options.image_tokens or 0, what="image-tokens"),
        parse_tokens(options.shared_prefix or 0, what="shared-prefix"),
        mtp,
    )


def _tokens(text: int | str, architecture: ModelArchitecture, option: str) -> int:
    limit = architecture.context_limit_tokens
    if isinstance(text, str) and text.strip().lower() == "max":
        if limit is None:
            raise InvalidRequestError(
                f"--{option} max: the config states no limit", hint="give a number of tokens", field=option
            )
        return limit
    return parse_tokens(text, what=option)


__all__ = ["Model", "Options", "Prepared", "prepare", "with_command"]
