"""English texts of ``serve``."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "serve_at": "kvgauge is at {url} (Ctrl-C ends it)",
    "serve_open": "warning: whoever reaches this machine can ask, and name any model that its hub token may "
    "see; without --host the page is for this machine alone",
    "error.forbidden": "",
    "error.not_found": "",
    "error.method_not_allowed": "",
    "error.timeout": "",
    "error.too_large": "",
    "error.unsupported_media_type": "",
    "error.busy": "",
    "help.verb.serve": "The page and the JSON API, on this machine alone unless --host opens them.",
    "help.section.serve": "Server",
    "help.option.host": "Where to listen: 127.0.0.1 unless given; 0.0.0.0 opens it to the network.",
    "help.option.port": "The port: 8642 unless given; 0 takes any that is free.",
}
