"""The click commands, built from the table of options when one is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from kvgauge.cli.arguments import VERBS, in_order
from kvgauge.cli.options import ALL, LATER, LOAD, OUTPUT, WHY, OptionRow
from kvgauge.cli.output import Settings
from kvgauge.errors import FeatureUnsupportedError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    _TextType = click.ParamType[str]
else:
    _TextType = click.ParamType  # generic from click 8.2 on

_SECTIONS = ("load", "dtypes", "parallel", "engine", "output")

_VERB_OPTIONS: dict[str, tuple[OptionRow, ...]] = {
    "size": (*LOAD, WHY, *OUTPUT, *LATER),
    "compare": (*LOAD, *OUTPUT, *LATER),
    "explain": (*LOAD, *OUTPUT, *LATER),
    "models": OUTPUT,
    "engines": OUTPUT,
    "doctor": OUTPUT,
}


class ModelName(_TextType):
    """A model; completion offers the names of the catalogue and files."""

    name = "model"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that start with what was typed, else files."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        return model_completions(incomplete) or [CompletionItem(incomplete, type="file")]


def model_completions(incomplete: str) -> list[CompletionItem]:
    """Return catalogue names that start with what was typed."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415

    from kvgauge.sources.catalogue import model_names  # noqa: PLC0415

    wanted = incomplete.lower()
    return [CompletionItem(name) for name in model_names() if name.lower().startswith(wanted)]


def settings_of(ctx: click.Context) -> Settings:
    """Return the settings of a run; plain English where click was started on its own."""
    found = ctx.find_root().obj
    return found if isinstance(found, Settings) else Settings(json=False, lang="en")


class Option(click.Option):
    """An option whose help is looked up in the language of the run."""

    section = "output"

    def described(self, ctx: click.Context) -> tuple[str, str]:
        """Return its spelling, and its help with the other spellings."""
        texts = settings_of(ctx).texts
        spelling = self.opts[0] if self.is_flag else f"{self.opts[0]} {self.make_metavar(ctx)}"
        text = texts(f"help.option.{self.name}")
        return spelling, f"{text} [{', '.join(self.opts[1:])}]" if self.opts[1:] else text


def _refuse_later(ctx: click.Context, param: click.Parameter, value: object) -> None:
    if value:
        raise FeatureUnsupportedError(
            f"{param.opts[0]} is not part of this release",
            hint="this release sizes cache and state; leave the option out",
            field=param.name,
        )


def make_option(row: OptionRow) -> Option:
    """Build the click option of a row."""
    later = row.section == "later"
    settings: dict[str, Any] = {"hidden": later, "envvar": None if later else row.envvar}
    if later:
        settings |= {"expose_value": False, "is_eager": True, "callback": _refuse_later}
    if row.kind == "flag":
        settings["is_flag"] = True
    elif row.choices:
        settings |= {
            "type": click.Choice(row.choices, case_sensitive=False),
            "metavar": "|".join(row.choices),
        }
    else:
        settings |= {"metavar": row.metavar, "multiple": row.kind == "list"}
        settings["type"] = int if row.kind == "count" else str
    if row.name == "lang":
        settings["type"] = _Language()
    option = Option([*row.flags, row.name], **settings)
    option.section = row.section
    return option


class _Language(_TextType):
    """A language word; locale names such as ``zh_CN.UTF-8`` are understood."""

    name = "language"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return en or zh."""
        word = value.lower()
        if word[:2] not in ("en", "zh") and not (word in ("c", "posix") or word.startswith("c.")):
            self.fail(f"{value!r} is not one of en, zh", param, ctx)
        return "zh" if word.startswith("zh") else "en"


def _help_option() -> click.Option:
    return click.Option(
        ["--help", "-h"], is_flag=True, expose_value=False, is_eager=True, callback=_print_help
    )


def _print_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from kvgauge.cli.output import make_view, write  # noqa: PLC0415
    from kvgauge.render.help import HelpSection, draw_help  # noqa: PLC0415

    settings = settings_of(ctx)
    texts, name = settings.texts, ctx.command.name or ""
    sections = [HelpSection(title, rows) for title, rows in _option_sections(ctx)]
    if isinstance(ctx.command, Program):
        verbs = [(f"{verb}{_ARGUMENTS.get(verb, '')}", texts(f"help.verb.{verb}")) for verb in VERBS]
        sections.insert(0, HelpSection(texts("help.commands"), verbs))
        usage, about = "kvgauge [COMMAND] MODEL [OPTIONS]", texts("help.about")
    else:
        usage, about = f"kvgauge {name}{_ARGUMENTS.get(name, '')} [OPTIONS]", texts(f"help.verb.{name}")
    view = make_view(settings, units="gib", color="auto")
    write(draw_help(texts("help.usage") + usage, about, sections, view))
    ctx.exit(0)


def _option_sections(ctx: click.Context) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the options of a command, by section; the program shows those of ``size``."""
    texts = settings_of(ctx).texts
    params = make_command("size").params if isinstance(ctx.command, Program) else ctx.command.params
    options = [p for p in params if isinstance(p, Option) and not p.hidden]
    sections = []
    for section in _SECTIONS:
        rows = [option.described(ctx) for option in options if option.section == section]
        if section == "output":
            rows.append(("--help", f"{texts('help.option.help')} [-h]"))
            if isinstance(ctx.command, Program):
                rows.append(("--version", texts("help.option.version")))
        sections.append((texts(f"help.section.{section}"), rows))
    return sections


def make_command(verb: str) -> click.Command:
    """Build the command of a verb."""
    params: list[click.Parameter] = [_help_option(), *(make_option(row) for row in _VERB_OPTIONS[verb])]
    if verb in ("size", "explain"):
        params.append(click.Argument(["model"], type=ModelName()))
    elif verb == "compare":
        params.append(
            click.Argument(["models"], type=ModelName(), nargs=-1, required=True, metavar="MODEL...")
        )
    elif verb == "models":
        params.append(click.Argument(["filter"], required=False))
    return click.Command(verb, params=params, callback=_callback(verb), add_help_option=False)


def _callback(verb: str) -> Callable[..., int]:
    def answer(**values: object) -> int:
        settings = settings_of(click.get_current_context())
        module = "kvgauge.cli.answers" if verb in ("size", "compare", "explain") else "kvgauge.cli.inventory"
        run: Callable[[Settings, dict[str, Any]], int] = getattr(import_module(module), f"run_{verb}")
        return run(settings, values)

    return answer


class Program(click.Group):
    """``kvgauge``: the commands, ``size`` where none is named."""

    def __init__(self) -> None:
        super().__init__("kvgauge", add_help_option=False)
        version = click.Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_print_version
        )
        self.params = [_help_option(), version]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Build a command."""
        return make_command(cmd_name) if cmd_name in VERBS else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, with the verb put first."""
        return super().parse_args(ctx, in_order(args))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer verbs, the models of the catalogue, and the options of ``size``."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        if incomplete.startswith("-"):
            flags = [flag for row in ALL if row not in LATER for flag in row.flags]
            return [CompletionItem(flag) for flag in flags if flag.startswith(incomplete)]
        verbs = [CompletionItem(verb) for verb in VERBS if verb.startswith(incomplete)]
        return [*verbs, *model_completions(incomplete)]


_ARGUMENTS = {"size": " MODEL", "compare": " MODEL...", "explain": " MODEL", "models": " [FILTER]"}


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from kvgauge._version import __version__  # noqa: PLC0415
    from kvgauge.cli.output import write, write_json  # noqa: PLC0415

    if settings_of(ctx).json:
        write_json({"schema": "kvgauge.version/1", "version": __version__})
    else:
        write(f"kvgauge {__version__}\n")
    ctx.exit(0)
