"""The click commands, built from the table of options when one is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from kvgauge.cli.arguments import SHELLS, VERBS, in_order
from kvgauge.cli.option_row import OptionRow
from kvgauge.cli.options import VERB_OPTIONS
from kvgauge.cli.output import Settings
from kvgauge.cli.topics import COMMANDS
from kvgauge.errors import InvalidRequestError

if TYPE_CHECKING:
    from kvgauge.cli.help import OptionHelp

    _TextType = click.ParamType[str]
else:
    _TextType = click.ParamType  # generic from click 8.2 on


def settings_of(ctx: click.Context) -> Settings:
    """Return the settings of a run; plain English where click was started on its own."""
    found = ctx.find_root().obj
    return found if isinstance(found, Settings) else Settings(json=False, lang="en")


class Option(click.Option):
    """An option whose help is looked up in the language of the run."""

    section = "output"

    def described(self, ctx: click.Context) -> OptionHelp:
        """Return its section, its spelling, and its help with the other spellings."""
        texts = settings_of(ctx).texts
        spelling = self.opts[0] if self.is_flag else f"{self.opts[0]} {self.make_metavar(ctx)}"
        own = texts.find(f"help.option.{ctx.command.name}.{self.name}", "")
        text = own or texts(f"help.option.{self.name}")
        others = texts("help.others", others=", ".join(self.opts[1:])) if self.opts[1:] else ""
        return self.section, spelling, text + others


def _refuse_later(ctx: click.Context, param: click.Parameter, value: object) -> None:
    if value:
        flag = param.opts[0]
        takers = [verb for verb in ("fit", "plan") if _takes(verb, flag)]
        raise InvalidRequestError(
            f"{flag} is no option of {ctx.command.name}",
            hint=f"it is one of {', '.join(takers)}: kvgauge {takers[0]} MODEL {flag} ...",
            field=param.name,
        )


def _takes(verb: str, flag: str) -> bool:
    return any(flag in row.flags for row in VERB_OPTIONS[verb] if row.section != "later")


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
    from kvgauge.cli.help import print_help  # noqa: PLC0415

    is_program = isinstance(ctx.command, Program)
    params = make_command("size").params if is_program else ctx.command.params
    options = [p.described(ctx) for p in params if isinstance(p, Option) and not p.hidden]
    print_help("" if is_program else ctx.command.name or "", options, settings_of(ctx))
    ctx.exit(0)


#: Commands that need a model, and the parameters that name one.
_OF_A_MODEL = ("size", "explain", "fit", "compare", "plan")
_NAME_A_MODEL = ("model", "models", "ndjson", "command")


class Command(click.Command):
    """A command that says in our words what is one word too many, or missing."""

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and refuse words that are left."""
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        values = ctx.params
        if self.name in _OF_A_MODEL and not any(values.get(name) for name in _NAME_A_MODEL):
            raise click.MissingParameter(ctx=ctx, param_hint="MODEL")
        if ctx.args:
            from kvgauge.cli.failures import too_many_words  # noqa: PLC0415

            given = (values.get(name) for name in ("model", "log", "filter", "file", "shell", "topic"))
            first = str(next(filter(None, given), ""))
            raise too_many_words(self.name or "", first, ctx.args)
        return rest


def make_command(verb: str) -> click.Command:
    """Build the command of a verb."""
    params: list[click.Parameter] = [_help_option(), *(make_option(row) for row in VERB_OPTIONS[verb])]
    if verb in ("size", "explain", "fit"):
        params.append(click.Argument(["model"], required=False))
    elif verb in ("compare", "plan"):
        params.append(click.Argument(["models"], nargs=-1, metavar="MODEL..."))
    elif verb == "verify":
        params.append(click.Argument(["log"]))
    elif verb == "accuracy":
        params.append(click.Argument(["file"], required=False))
    elif verb == "models":
        params.append(click.Argument(["filter"], required=False))
    elif verb == "gpus":
        params.append(click.Argument(["filter"], nargs=-1, metavar="[FILTER]"))
    elif verb == "learn":
        params.append(click.Argument(["topic"], required=False))
    elif verb in COMMANDS and COMMANDS[verb].argument:
        topic = COMMANDS[verb]
        params.append(click.Argument([topic.keyword], required=topic.is_required, metavar=topic.argument))
    elif verb == "completion":
        params.append(click.Argument(["shell"], type=click.Choice(SHELLS)))
    return Command(verb, params=params, callback=_callback(verb), add_help_option=False)


#: The module of each verb; the others are in ``inventory``.
_MODULES = {
    "size": "answers",
    "compare": "answers",
    "explain": "answers",
    "fit": "fit",
    "plan": "plan",
    "verify": "verify",
    "accuracy": "accuracy",
    "completion": "completion_script",
    "gpus": "gpus",
    "learn": "learn",
    "serve": "serve",
}


def _callback(verb: str) -> Callable[..., int]:
    def answer(**values: object) -> int:
        settings = settings_of(click.get_current_context())
        if verb in COMMANDS:
            from kvgauge.cli.learn import run_topic  # noqa: PLC0415 - one command in twenty

            return run_topic(verb, settings, values)
        module = f"kvgauge.cli.{_MODULES.get(verb, 'inventory')}"
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
        return make_command(cmd_name) if cmd_name in (*VERBS, *COMMANDS) else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, with the verb put first."""
        return super().parse_args(ctx, in_order(args))


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
