"""``models``, ``engines`` and ``doctor``: what this installation knows and how it is set up."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvgauge._version import __version__
from kvgauge.cli.options import ALL
from kvgauge.cli.output import Settings, make_view, write, write_json, write_note
from kvgauge.engines.index import ENGINES
from kvgauge.inventory import describe_model, engines_answer, find_models, models_answer

if TYPE_CHECKING:
    from kvgauge.render.view import View

#: Up to this many names, ``models`` shows the figures of each.
MAX_DETAILED = 20

_SHOWN_VARIABLES = (
    "NO_COLOR", "COLUMNS", "TERM", "PYTHONIOENCODING", "PYTHONUTF8", "LC_ALL", "LC_MESSAGES", "LANG",
)  # fmt: skip
_HIDDEN_VARIABLES = (
    "HF_TOKEN", "HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_HUB_DOWNLOAD_TIMEOUT",
    "MODELSCOPE_ENDPOINT", "MODELSCOPE_DOMAIN", "MODELSCOPE_API_TOKEN", "HTTP_PROXY", "HTTPS_PROXY",
    "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE",
)  # fmt: skip


def _view(settings: Settings, values: dict[str, Any]) -> View:
    return make_view(settings, units=values["units"] or "gib", color=values["color"] or "auto")


def run_models(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``models``."""
    asked = values["filter"] or ""
    if settings.json:
        write_json(models_answer(asked))
        return 0
    names = find_models(asked)
    if not names:
        write_note(settings.texts("models_none", filter=asked))
        return 0
    from kvgauge.render.inventory import draw_models, draw_names  # noqa: PLC0415

    is_detailed = bool(asked) and len(names) <= MAX_DETAILED
    if values["markdown"]:
        from kvgauge.render.markdown import to_markdown  # noqa: PLC0415
        from kvgauge.render.sheet import models_sheet, names_sheet  # noqa: PLC0415

        view = _view(settings, values)
        rows = [describe_model(name) for name in names] if is_detailed else []
        write(to_markdown(models_sheet(rows, view) if is_detailed else names_sheet(names, view)))
        return 0
    if is_detailed:
        write(draw_models([describe_model(name) for name in names], _view(settings, values)))
        return 0
    write(draw_names(names))
    write_note(settings.texts("models_count", count=len(names)))
    write_note(settings.texts("models_hint"))
    return 0


def run_engines(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``engines``."""
    if settings.json:
        write_json(engines_answer())
        return 0
    from kvgauge.render.inventory import draw_engines  # noqa: PLC0415

    write(draw_engines(list(ENGINES.values()), _view(settings, values)))
    return 0


def run_doctor(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``doctor``."""
    facts = installation(settings)
    if settings.json:
        write_json(facts)
        return 0
    from kvgauge.render.inventory import draw_doctor  # noqa: PLC0415

    write(draw_doctor(facts, _view(settings, values)))
    return 0


def installation(settings: Settings) -> dict[str, object]:
    """Return the ``kvgauge.doctor/1`` object; values that may hold a secret are left out."""
    import kvgauge  # noqa: PLC0415
    from kvgauge.sources.catalogue import model_names  # noqa: PLC0415

    return {
        "schema": "kvgauge.doctor/1",
        "version": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "encoding": getattr(sys.stdout, "encoding", None) or "",
        "lang": settings.lang,
        "catalogue": {"names": len(model_names())},
        "engines": list(ENGINES),
        "dependencies": {name: _installed(name) for name in ("click", "rich", "huggingface_hub")},
        "paths": {"package": str(Path(kvgauge.__file__).parent), "python": sys.executable},
        "environment": environment(os.environ),
    }


def _may_be_secret(value: str) -> bool:
    """Whether a value looks like a token, or like an address that may hold a password."""
    return bool(re.search(r"://|@.*@|\b(?:hf|ms|sk|ghp|gho|pat)[_-]\w{6}|[A-Za-z0-9+=_-]{24}", value))


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def environment(environ: Mapping[str, str]) -> dict[str, str | None]:
    """Return the variables that matter; ``set`` stands for values that may hold a secret, null for unset.

    Our own variables are shown where they belong to an option and hold no more than a word.

    >>> found = environment({"HF_TOKEN": "hf_x", "KVGAUGE_LANG": "zh", "KVGAUGE_KEY": "x"})
    >>> found["HF_TOKEN"], found["KVGAUGE_LANG"], found["KVGAUGE_KEY"]
    ('set', 'zh', 'set')
    """
    ours = sorted(name for name in environ if name.startswith("KVGAUGE_"))
    known = {row.envvar for row in ALL if row.section != "later"} | {"KVGAUGE_DEBUG"}
    found: dict[str, str | None] = {
        name: environ[name] if name in known and not _may_be_secret(environ[name]) else "set" for name in ours
    }
    found |= {name: environ.get(name) for name in _SHOWN_VARIABLES}
    either = {name: environ.get(name) or environ.get(name.lower()) for name in _HIDDEN_VARIABLES}
    return found | {name: "set" if value else None for name, value in either.items()}
