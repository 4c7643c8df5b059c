"""The topics of ``kvgauge learn``, as a table: each is a command that runs what it teaches.

A topic is one row here, one function that computes its answer in ``lab``, one that draws it in ``render``,
its texts in both languages (``help.verb.learn NAME``, ``help.option.NAME`` of its options), and a schema
``data/schemas/learn_NAME.json``.
"""

from __future__ import annotations

from typing import NamedTuple

from kvgauge.cli.option_row import OptionRow


class Topic(NamedTuple):
    """One topic.

    Args:
        answer: ``module:function`` in ``kvgauge.lab``. The function takes the argument and the options that
            were given as keywords, under their rows' names, and ``offline`` where that was asked for; it
            returns an answer with ``to_dict()``.
        draw: ``module:function`` in ``kvgauge.render`` that takes the answer and a view and returns text.
        argument: what follows the topic, as the help writes it: ``MODEL``, or ``[TEXT]`` where it may be
            left out. Its keyword is this in small letters. Empty: nothing follows.
        needs: modules of the extra ``lab`` that it can't do without.
        example: a command that works on any machine with the extra.
    """

    answer: str
    draw: str
    argument: str = ""
    options: tuple[OptionRow, ...] = ()
    needs: tuple[str, ...] = ("numpy",)
    example: str = ""

    @property
    def keyword(self) -> str:
        """The keyword of the argument, or ""."""
        return self.argument.strip("[].").lower()

    @property
    def is_required(self) -> bool:
        """Whether the argument must be given."""
        return bool(self.argument) and not self.argument.startswith("[")


#: Rows that several topics take; an option has one meaning, whatever the topic.
CONTEXT = OptionRow("tokens", ("--tokens", "--context"), "load", metavar="TOKENS")
MEASURE = OptionRow("measure", ("--measure",), "load", "flag")
DTYPE = OptionRow("dtype", ("--dtype",), "dtypes", metavar="DTYPE")
SEED = OptionRow("seed", ("--seed",), "load", "count", "N")
#: Rows that other commands have too, spelled as there.
SEQUENCES = OptionRow("sequences", ("--sequences", "--batch-size", "--concurrency"), "load", "count", "N")
SHARED_PREFIX = OptionRow("shared_prefix", ("--shared-prefix",), "load", metavar="TOKENS")
MAX_MODEL_LEN = OptionRow(
    "max_model_len", ("--max-model-len", "--context-length", "--ctx-size", "-c"), "load", metavar="TOKENS"
)

TOPICS: dict[str, Topic] = {
    "walk": Topic(
        "walk:learn_walk",
        "learn_walk:draw_walk",
        "[TEXT]",
        (
            OptionRow("model", ("--model",), "engine", metavar="FOLDER"),
            OptionRow("ids", ("--ids",), "load", metavar="LIST"),
            OptionRow("new_tokens", ("--new-tokens",), "load", "count", "N"),
            OptionRow("temperature", ("--temperature",), "load", metavar="NUMBER"),
            SEED,
        ),
        needs=("numpy", "tokenizers"),
        example="kvgauge learn walk 今天天气",
    ),
    "activations": Topic(
        "activations:learn_activations",
        "learn_activations:draw_activations",
        "MODEL",
        (CONTEXT, DTYPE, MEASURE),
        needs=(),
        example="kvgauge learn activations Qwen/Qwen3-8B --tokens 32k",
    ),
    "mechanisms": Topic(
        "mechanisms.answer:learn_mechanisms",
        "learn_mechanisms:draw_mechanisms",
        "[MODEL]",
        (CONTEXT,),
        example="kvgauge learn mechanisms",
    ),
    "flash": Topic(
        "flash.answer:learn_flash",
        "learn_flash:draw_flash",
        "[MODEL]",
        (CONTEXT, SEQUENCES, OptionRow("tile", ("--tile",), "load", metavar="ROWSxROWS"), DTYPE),
        example="kvgauge learn flash Qwen/Qwen3-8B --tokens 32k",
    ),
    "paged": Topic(
        "paging.answer:learn_paged",
        "learn_paged:draw_paged",
        options=(
            OptionRow("pool", ("--pool",), "load", metavar="TOKENS"),
            OptionRow("requests", ("--requests",), "load", "count", "N"),
            MAX_MODEL_LEN,
            OptionRow("block_sizes", ("--block-sizes",), "load", metavar="N,N,..."),
            SHARED_PREFIX,
            SEED,
        ),
        example="kvgauge learn paged --block-sizes 16,64",
    ),
    "quantised": Topic(
        "quantised.answer:learn_quantised",
        "learn_quantised:draw_quantised",
        options=(
            CONTEXT,
            OptionRow("head_dim", ("--head-dim",), "load", "count", "N"),
            OptionRow("outliers", ("--outliers",), "load", "count", "N"),
            SEED,
        ),
        example="kvgauge learn quantised",
    ),
    "exercises": Topic(
        "exercises:learn_exercises",
        "learn_exercises:draw_exercises",
        "[EXERCISE]",
        (OptionRow("answer", ("--answer",), "load", metavar="VALUE"),),
        needs=(),
        example="kvgauge learn exercises l2-batch --answer 18GiB",
    ),
    "pipeline": Topic(
        "pipeline:learn_pipeline",
        "learn_pipeline:draw_pipeline",
        "MODEL",
        (CONTEXT, DTYPE),
        needs=(),
        example="kvgauge learn pipeline Qwen/Qwen3-8B --tokens 32k",
    ),
}

#: The topics under the names of their commands.
COMMANDS = {f"learn {name}": topic for name, topic in TOPICS.items()}

#: Every option of a topic, once.
OPTIONS = tuple({row.name: row for topic in TOPICS.values() for row in topic.options}.values())


def topic_command(word: str) -> str | None:
    """Return the command of a topic, or None where there is no such topic.

    >>> topic_command("activations"), topic_command("nonsense")
    ('learn activations', None)
    """
    command = f"learn {word}"
    return command if command in COMMANDS else None
