"""``completion``: print what a shell loads."""

from __future__ import annotations

from typing import Any

from kvgauge.cli.completion import script
from kvgauge.cli.output import Settings, write, write_json


def run_completion(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``completion``."""
    shell = values["shell"]
    if settings.json:
        write_json({"schema": "kvgauge.completion/1", "shell": shell, "script": script(shell)})
    else:
        write(script(shell))
    return 0
