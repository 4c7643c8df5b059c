"""``--help`` of the program and of each command, in the language of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.cli.arguments import VERBS
from kvgauge.cli.output import Settings, make_view, write
from kvgauge.cli.topics import COMMANDS
from kvgauge.render.help import HelpSection, draw_help

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvgauge.render.messages import Texts

SECTIONS = ("serve", "device", "load", "dtypes", "weights", "parallel", "engine", "split", "output")

ARGUMENTS = {
    "size": " MODEL",
    "compare": " MODEL...",
    "explain": " MODEL",
    "fit": " MODEL",
    "plan": " MODEL...",
    "verify": " LOG",
    "accuracy": " [FILE]",
    "models": " [FILTER]",
    "gpus": " [FILTER]",
    "completion": " bash|zsh|fish",
    "learn": " [TOPIC]",
    **{command: f" {topic.argument}".rstrip() for command, topic in COMMANDS.items()},
}

_EXAMPLES = {
    "size": "kvgauge size Qwen/Qwen3-8B --context 32k --sequences 8 --kv-dtype fp8",
    "compare": "kvgauge compare Qwen/Qwen3-8B Qwen/Qwen3-32B --sequences 8",
    "explain": "kvgauge explain Qwen/Qwen3.5-35B-A3B --context 32k",
    "fit": "kvgauge fit Qwen/Qwen3-8B --gpu H100 --context 32k --sequences 8",
    "plan": "kvgauge plan Qwen/Qwen3-8B --context 32k --sequences 8 --gpu L4",
    "verify": "kvgauge verify server.log --gpu H100",
    "accuracy": "kvgauge accuracy measurements.jsonl --configs configs",
    "models": "kvgauge models qwen3",
    "gpus": "kvgauge gpus h100",
    **{command: topic.example for command, topic in COMMANDS.items() if topic.example},
    "serve": "kvgauge serve --port 0",
}

#: Section, spelling and meaning of one option.
OptionHelp = tuple[str, str, str]


def print_help(verb: str, options: Sequence[OptionHelp], settings: Settings) -> None:
    """Write the help of a verb, or of the program where there is none."""
    texts = settings.texts
    sections = [_section(name, options, texts, is_program=not verb) for name in SECTIONS]
    if verb:
        usage = f"kvgauge {verb}{ARGUMENTS.get(verb, '')} [OPTIONS]"
    else:
        usage = "kvgauge [COMMAND] MODEL [OPTIONS]"
        verbs = [(f"{name}{ARGUMENTS.get(name, '')}", texts(f"help.verb.{name}")) for name in VERBS]
        sections.insert(0, HelpSection(texts("help.commands"), verbs))
    if verb == "learn":
        topics = [(f"{name}{ARGUMENTS[name]}", texts(f"help.verb.{name}")) for name in COMMANDS]
        sections.insert(0, HelpSection(texts("help.topics"), topics))
    view = make_view(settings, units="gib", color="auto")
    write(draw_help(texts("help.usage") + usage, _about(verb, texts), sections, view))


def _about(verb: str, texts: Texts) -> str:
    """What it is for, what MODEL may be, and an example."""
    if not verb:
        return texts("help.about")
    lines = [texts(f"help.verb.{verb}"), texts.find(f"help.about.{verb}", "")]
    if "MODEL" in ARGUMENTS.get(verb, ""):
        lines.append(texts("help.model"))
    if verb in _EXAMPLES:
        lines.append(texts("help.example", example=_EXAMPLES[verb]))
    return "\n".join(line for line in lines if line)


def _section(name: str, options: Sequence[OptionHelp], texts: Texts, *, is_program: bool) -> HelpSection:
    rows = [(spelling, meaning) for section, spelling, meaning in options if section == name]
    if name == "output":
        rows.append(("--help", texts("help.option.help") + texts("help.others", others="-h")))
        if is_program:
            rows.append(("--version", texts("help.option.version")))
    return HelpSection(texts(f"help.section.{name}"), rows)
