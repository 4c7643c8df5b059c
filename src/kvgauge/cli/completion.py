"""Completion in bash, zsh and fish: what a shell loads, and the answers that it asks for.

Each press of the key runs the program anew: nothing is imported here but tables of names. A shell asks with
its name in ``_KVGAUGE_COMPLETE`` and the words of the line so far as arguments, the unfinished one last; the
answer is one word a line, ``<files>`` standing for the files that fit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from kvgauge.cli.arguments import SHELLS, VERBS, positionals
from kvgauge.cli.option_row import OptionRow
from kvgauge.cli.options import BY_FLAG, VERB_OPTIONS
from kvgauge.cli.topics import TOPICS, topic_command

FILES = "<files>"

_BASH = r"""# kvgauge completion for bash: eval "$(kvgauge completion bash)"
_kvgauge() {
    local IFS=$'\n' word
    COMPREPLY=()
    for word in $(_KVGAUGE_COMPLETE=bash "$1" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
        if [[ $word == '<files>' ]]; then
            compopt -o filenames 2>/dev/null
            COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
        else
            COMPREPLY+=("$word")
        fi
    done
}
complete -o nosort -F _kvgauge kvgauge 2>/dev/null || complete -F _kvgauge kvgauge
"""

_ZSH = r"""#compdef kvgauge
# kvgauge completion for zsh: eval "$(kvgauge completion zsh)", after compinit
_kvgauge() {
    local -a found
    found=(${(f)"$(_KVGAUGE_COMPLETE=zsh "${words[1]}" "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ${found[(I)<files>]} )); then
        found=(${found:#<files>})
        _files
    fi
    compadd -U -V kvgauge -a found
}
if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
    _kvgauge "$@"
else
    compdef _kvgauge kvgauge
fi
"""

_FISH = r"""# kvgauge completion for fish: kvgauge completion fish | source
function __kvgauge_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for word in (env _KVGAUGE_COMPLETE=fish kvgauge $words[2..-1] "$current" 2>/dev/null)
        if test "$word" = '<files>'
            __fish_complete_path "$current"
        else
            echo $word
        end
    end
end
complete -c kvgauge -f -a '(__kvgauge_complete)'
"""

_SCRIPTS = dict(zip(SHELLS, (_BASH, _ZSH, _FISH), strict=True))


def script(shell: str) -> str:
    """Return the text that a shell is to load."""
    return _SCRIPTS[shell]


def answer_shell(shell: str, words: Sequence[str]) -> None:
    """Print how a line may go on; nobody listening is no error."""
    try:
        sys.stdout.write("".join(f"{word}\n" for word in offers(words, splits=shell == "bash")))
        sys.stdout.flush()
    except OSError:
        sys.stderr.close()


def offers(words: Sequence[str], *, splits: bool = False) -> list[str]:
    """Return the words that may stand in place of the last, unfinished one.

    Args:
        splits: the shell takes ``--engine=t`` for three words, and wants the value alone.

    >>> offers(["size", "Qwen/Qwen3-8B", "--engine", "th"]), offers(["comple"])
    (['theory'], ['completion', '<files>'])
    """
    *before, last = words or [""]
    if splits and before and (before[-1] == "=" or last == "="):
        last = "" if last == "=" else last
        before = [word for word in before if word != "="]
    option = _option(before, before[-1]) if before else None
    if option is not None and option.takes_value and not (option.name == "mtp" and last.startswith("-")):
        return _fitting(_values(option), last)
    if last.startswith("-") and last != "-":
        return _flags(before, last)
    return _fitting(_arguments([word.text for word in positionals(before)], last), last)


def _option(before: Sequence[str], flag: str) -> OptionRow | None:
    """Return the option of a spelling as the command means it; any command's where it has none."""
    rows = VERB_OPTIONS.get(_command(word.text for word in positionals(before)), ())
    return next((row for row in rows if flag in row.flags), BY_FLAG.get(flag))


def _flags(before: Sequence[str], last: str) -> list[str]:
    """Return the options of the verb, or the values of one that is joined to its value by ``=``."""
    flag, equals, value = last.partition("=")
    if equals:
        option = _option(before, flag)
        values = _fitting(_values(option), value) if option is not None and option.takes_value else []
        return [f"{flag}={word}" for word in values if word != FILES]
    verb = _command(word.text for word in positionals(before))
    rows = VERB_OPTIONS.get(verb, VERB_OPTIONS["size"])
    flags = [flag for row in rows if row.section != "later" for flag in row.flags]
    own = [] if verb in VERBS else ["--version"]
    return [flag for flag in (*flags, "--help", *own) if flag.startswith(last)]


def _command(given: Iterable[str]) -> str:
    """Return the command that words name, with its topic where it is ``learn``."""
    verb, topic, *_ = [*given, "", ""]
    return (verb == "learn" and topic_command(topic)) or verb


def words_of(option: OptionRow) -> list[str]:
    """Return the words that an option takes, none where they are not a short list."""
    return [] if option.name == "model" else [word for word in _values(option) if word != FILES]


def _values(option: OptionRow) -> Iterable[str]:
    if option.choices:
        return option.choices
    if option.metavar == "DTYPE":
        from kvgauge.dtypes import dtype_words  # noqa: PLC0415

        return dtype_words()
    if option.metavar in ("FILE", "FOLDER"):
        return (FILES,)
    words = {
        "engine": _engines,
        "weights": _schemes,
        "gpu": _gpus,
        "gpu_file": _files,
        "context": _contexts,
        "model": _models,
    }
    return words[option.name]() if option.name in words else ()


def _files() -> Iterable[str]:
    return (FILES,)


def _contexts() -> Iterable[str]:
    return ("max",)


def _schemes() -> Iterable[str]:
    from kvgauge.weight_schemes import scheme_words  # noqa: PLC0415

    return scheme_words()


def _engines() -> Iterable[str]:
    from kvgauge.engines.index import ENGINES  # noqa: PLC0415

    for name, engine in ENGINES.items():
        yield name
        yield from (f"{name}@{version}" for version in engine.versions)


def _arguments(given: Sequence[str], last: str) -> Iterable[str]:
    """Return what may stand as an argument: verbs first, then what the verb takes."""
    if not given:
        return (*VERBS, *(_models() if last else ()), FILES)
    verb = given[0]
    if verb == "learn":
        return _of_topic(given)
    if verb == "help":
        return VERBS
    if verb in _ONE_WORD:
        return _ONE_WORD[verb]() if len(given) == 1 else ()
    takes_one = verb in ("size", "explain", "fit", "models") and len(given) == 1
    takes_model = takes_one or verb in ("compare", "plan")
    return (*_models(), FILES) if takes_model else ()


#: Commands that take one word, no model: what it may be.
_ONE_WORD: dict[str, Callable[[], Iterable[str]]] = {
    "completion": lambda: SHELLS,
    "accuracy": lambda: (FILES,),
    "verify": lambda: (FILES,),
    "gpus": lambda: _gpus()[:-1],
}


def _of_topic(given: Sequence[str]) -> Iterable[str]:
    """Return the topics of ``learn``, or what the argument of one may be."""
    if len(given) == 1:
        return tuple(TOPICS)
    topic = TOPICS.get(given[1])
    takes_model = topic is not None and topic.keyword == "model" and len(given) == 2
    return (*_models(), FILES) if takes_model else ()


def _models() -> Iterable[str]:
    """Return every name, as ``sources.catalogue.model_names`` does, from the list alone."""
    import json  # noqa: PLC0415

    from kvgauge.data import read_data  # noqa: PLC0415

    names = json.loads(read_data("names.json"))
    return sorted((*names["models"], *names["aliases"]), key=str.lower)


def _gpus() -> list[str]:
    """Return the ids of the accelerators, and ``local``, from the list of names alone."""
    import json  # noqa: PLC0415

    from kvgauge.data import read_data  # noqa: PLC0415

    return [*(row[0] for row in json.loads(read_data("accelerator_names.json"))), "local"]


def _fitting(words: Iterable[str], last: str) -> list[str]:
    """Return the words that start like the last one, in any case; files are the shell's to choose."""
    wanted = last.lower()
    return [word for word in words if word == FILES or word.lower().startswith(wanted)]
