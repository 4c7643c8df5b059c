"""A name that no local place and no catalogue row answers: which site to ask, and for what."""

from __future__ import annotations

from dataclasses import replace

from kvgauge.errors import InvalidRequestError, ModelNotFoundError, NetworkError, OfflineError
from kvgauge.sources import RawModel
from kvgauge.sources.catalogue import did_you_mean, find_model
from kvgauge.sources.hub_cache import DEFAULT_REVISION, cached_config, keeps_offline, this_cache
from kvgauge.sources.names import HubName

_FILE_NAMES = (".json", ".gguf", ".safetensors")


def find_remote(name: HubName, *, refresh: bool, offline: bool) -> RawModel:
    """Return a model of the hub or of ModelScope.

    Args:
        refresh: ask the site even where the local cache has an answer.
        offline: stay away from the network.

    Raises:
        InvalidRequestError: refresh and offline contradict each other.
        KvgaugeError: ``model_not_found``, ``gated``, ``offline``, ``network``, ``damaged_file``.
    """
    _check(name)
    if refresh and offline:
        raise InvalidRequestError(
            "--refresh asks the hub, and --offline keeps off the network",
            hint="leave one of them out",
            field="refresh",
        )
    why = keeps_offline(offline=offline)
    found = None if refresh else _cached(name)
    if found is not None:
        return _with_weights(found, name, offline=bool(why))
    if why:
        raise _offline(name, why)
    from kvgauge.sources.online import fetch  # noqa: PLC0415 - what is at hand needs no network

    try:
        return _with_weights(fetch(name), name, refresh=refresh)
    except NetworkError as error:
        error.hint = did_you_mean(name.id) + error.hint  # a mistyped name of the catalogue needs no network
        raise


def _with_weights(raw: RawModel, name: HubName, *, offline: bool = False, refresh: bool = False) -> RawModel:
    """Say where the weight files are, which nobody has looked at."""
    if name.file is not None:
        return raw
    from kvgauge.sources.weight_files import HubWeights  # noqa: PLC0415 - a GGUF has its table

    cached = raw.revision is not None and name.site == "hf"
    folder = this_cache(name.id).folder / "snapshots" / str(raw.revision) if cached else None
    pinned = replace(name, revision=raw.revision or name.revision)
    return replace(raw, weight_files=HubWeights(pinned, folder, offline, refresh))


def _cached(name: HubName) -> RawModel | None:
    """Return what the hub's local cache holds."""
    if name.site != "hf":
        return None
    if name.file is None:
        return cached_config(name)
    cache = this_cache(name.id)
    commit = cache.commit(name.revision or DEFAULT_REVISION)
    path = cache.find(commit, name.file) if commit else None
    if path is None:
        return None
    from kvgauge.sources.gguf_local import read_gguf  # noqa: PLC0415
    from kvgauge.sources.gguf_split import SplitName  # noqa: PLC0415

    split = SplitName.parse(path.name)
    if split is not None and not all(path.with_name(other).is_file() for other in split.all_names()):
        return None  # a part of the set is not there
    return replace(read_gguf(path, f"{name.shown}:{name.file}", "local cache"), revision=commit)


def _check(name: HubName) -> None:
    """Refuse what no hub can have before anybody is asked."""
    shown = name.shown[:120]
    if "://" in name.id:
        raise ModelNotFoundError(
            f"{shown} is no address of a model on a hub",
            hint="huggingface.co, hf.co, modelscope.cn and the host of HF_ENDPOINT are known, as org/name",
            field="MODEL",
        )
    if shown.endswith(_FILE_NAMES):
        raise ModelNotFoundError(f"there is no file {shown}", hint="check the path", field="MODEL")
    if not replace(name, revision=None, file=None).is_valid:
        raise ModelNotFoundError(
            f"{shown} is not in the shipped catalogue, and a name on the hub is org/name",
            hint=f"{did_you_mean(name.id)}give a config.json or a folder that holds one",
            field="MODEL",
        )
    if not replace(name, file=None).is_valid:
        raise ModelNotFoundError(
            f"{(name.revision or '')[:60]} is no name of a revision",
            hint="give a branch, a tag or a commit",
            field="revision",
        )
    if name.file is not None and not (name.is_valid and name.file.lower().endswith(".gguf")):
        raise ModelNotFoundError(
            f"{name.file[:60]} is no name of a GGUF file",
            hint=f"give it as {shown}:FILE.gguf",
            field="MODEL",
        )


def _offline(name: HubName, why: str) -> OfflineError:
    """Return the error of a model that is in no local place."""
    place = "the local hub cache" if name.site == "hf" else "any local place"
    shipped = find_model(name.id)
    what = f"revision {name.revision[:60]} of " if name.revision else ""
    what = f"the file {name.file[:60]} of " if name.file else what
    if shipped:
        unknown = f"is on the hub only, not in {place}"
        step = f"leave it out to use the shipped config of {shipped.id}"
    else:
        unknown = f"is not in the shipped catalogue nor in {place}"
        step = f"{did_you_mean(name.id)}give a config.json or a folder that holds one"
    return OfflineError(
        f"{what}{name.shown[:120]} {unknown}, and {why} keeps off the network",
        hint=f"{step}, or allow the network",
        field="MODEL",
    )
