"""What people type: variables, languages, typos, help; and what stays secret."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kvgauge.cli.app import execute
from kvgauge.cli.arguments import VERBS, chosen_lang, in_order
from kvgauge.cli.inventory import environment
from kvgauge.cli.options import ALL, VERB_OPTIONS
from kvgauge.cli.topics import COMMANDS
from kvgauge.engines.index import ENGINES
from kvgauge.sources.catalogue import model_names, near_filter

NAME = "Qwen/Qwen3-8B"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    for name in [n for n in os.environ if n.startswith(("KVGAUGE_", "LC_", "LANG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def kv(capsys):
    def call(*argv: str) -> tuple[int, str, str]:
        code = execute(argv)
        return (code, *capsys.readouterr())

    return call


# Variables

#: The first that takes an option is asked for it.
VERBS_BY_USE = ("size", "fit", "plan", "verify", "accuracy", "serve")

VALUES = {
    "context": "4k", "max_model_len": "8k", "sequences": "3", "encoder_tokens": "7", "image_tokens": "9",
    "shared_prefix": "5", "mtp": "2", "kv_dtype": "fp8", "k_dtype": "fp8", "v_dtype": "q8_0", "state_dtype": "fp32",
    "index_dtype": "fp8", "tp": "2", "pp": "3", "dp": "4", "ep": "5", "dcp": "2", "engine": "transformers",
    "engine_args": "cache=static", "override": "a=1", "revision": "v1", "ndjson": "-", "lang": "zh", "units": "gb",
    "color": "never",
}  # fmt: skip


@pytest.mark.parametrize("row", [row for row in ALL if row.section != "later"], ids=lambda row: row.name)
def test_a_variable_is_the_option(kv, monkeypatch, row):
    seen = []
    verb = next(verb for verb in (*VERBS_BY_USE, *COMMANDS) if row in VERB_OPTIONS[verb])
    module = "answers" if verb == "size" else verb
    if verb in COMMANDS:
        monkeypatch.setattr("kvgauge.cli.learn.run_topic", lambda _, __, values: seen.append(values) or 0)
    else:
        monkeypatch.setattr(f"kvgauge.cli.{module}.run_{verb}", lambda _, values: seen.append(values) or 0)
    value = VALUES.get(row.name, "1")
    words = [NAME] if verb in VERBS_BY_USE[:-1] or (verb in COMMANDS and COMMANDS[verb].argument) else []
    verb = verb.split()
    assert kv(*verb, *words, row.flags[0], *([value] if row.takes_value else []))[0] == 0
    monkeypatch.setenv(row.envvar, value)
    assert kv(*verb, *words)[0] == 0
    assert seen[0] == seen[1]
    assert seen[0][row.name] not in (None, False, ())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("KVGAUGE_LANG", "fr", "KVGAUGE_LANG: 'fr' is not one of en, zh"),
        ("KVGAUGE_JSON", "maybe", "KVGAUGE_JSON: 'maybe' is neither yes nor no"),
        ("KVGAUGE_TP", "two", "KVGAUGE_TP: 'two' is not"),
        ("KVGAUGE_UNITS", "kg", "KVGAUGE_UNITS: 'kg' is not one of"),
    ],
)
def test_a_wrong_variable_is_named(kv, monkeypatch, name, value, message):
    monkeypatch.setenv(name, value)
    code, _, err = kv(NAME)
    assert code == 2
    assert message in err
    assert f"{name}" in err.splitlines()[1]


def test_the_language_goes_from_the_line_to_the_locale():
    order = [
        ("KVGAUGE_LANG", "zh"),
        ("LC_ALL", "zh_CN.UTF-8"),
        ("LC_MESSAGES", "zh_TW"),
        ("LANG", "zh_HK.UTF-8"),
    ]
    for place, (name, value) in enumerate(order):
        below = {other: "de_DE.UTF-8" for other, _ in order[place + 1 :]}
        assert chosen_lang([], {**below, name: value}) == "zh"
        assert chosen_lang([], {**dict.fromkeys(below, value), name: "en_US.UTF-8"}) == "en"
        assert chosen_lang(["--lang", "en"], {name: value}) == "en"
    assert chosen_lang([], {"LC_ALL": "", "LANG": "zh_CN"}) == "zh"
    assert chosen_lang([], {"LANG": "C.UTF-8"}) == "en"


def test_the_locale_reaches_the_answer():
    environ = {**os.environ, "LC_ALL": "zh_CN.UTF-8", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "kvgauge", NAME]
    done = subprocess.run(command, env=environ, capture_output=True, encoding="utf-8", check=True)
    assert "条 32,768 token 的序列" in done.stdout


# Typos


@pytest.mark.parametrize(
    ("argv", "message", "hint"),
    [
        (("siez", NAME), "there is no command siez", "did you mean size?"),
        (("comapre", NAME, NAME), "there is no command comapre", "did you mean compare?"),
        (("siez",), "siez is not in", "did you mean the command size?"),
        ((NAME, "openai/gpt-oss-20b"), "one model is sized at a time", "kvgauge compare"),
        (("explain", NAME, "b"), "one model is sized at a time", "kvgauge compare"),
        (("doctor", "x"), "x is one word too many", "--help"),
        ((NAME, "-ngl", "99"), "there is no option -ngl", "--engine-args"),
        ((NAME, "--contex", "9"), "there is no option --contex", "did you mean --context"),
        ((NAME, "--kv_dtype", "fp8"), "there is no option --kv_dtype", "--kv-dtype"),
        (("completion",), "SHELL is missing", "kvgauge completion bash"),
        (("completion", "tcsh"), "SHELL: 'tcsh' is not one of", ""),
        (("llama3",), "llama3 is not in", "kvgauge models llama3"),
        (("gemma3",), "gemma3 is not in", "kvgauge models gemma-3"),
        (("mistral-7b",), "mistral-7b is not in", "kvgauge models mistral-7b"),
        (("llama3.1:8b",), "llama3.1 is not in", "kvgauge models llama-3.1"),
    ],
)
def test_typos_get_a_step(kv, argv, message, hint):
    code, out, err = kv(*argv)
    assert code in (2, 4)
    assert out == ""
    assert message in err
    assert hint in err
    error = json.loads(kv("--json", *argv)[1])["error"]
    assert message in error["message"]
    assert hint in error["hint"]


@pytest.mark.parametrize(
    "name", ["llama3", "gemma3", "mistral-7b", "llama3.1:8b", "Qwen", "deepseek", "phi4"]
)
def test_a_filter_that_is_named_finds_something(name):
    word = near_filter(name)
    assert word
    assert any(word in known.lower() for known in model_names())


@pytest.mark.parametrize("name", ["", "x", "../etc", "no/such", "zzzz", "[a-z]*", "7b"])
def test_nothing_is_named_where_nothing_fits(name):
    assert near_filter(name) == ""


def test_a_file_with_the_name_of_a_command_is_read(kv):
    Path("siez").write_text("{", encoding="utf-8")
    assert "not JSON" in kv("siez")[2]


# Help


def test_help_is_a_word_too(kv):
    assert kv("help") == kv("--help")
    assert kv("help", "compare") == kv("compare", "--help")
    assert in_order(["help", "nonsense"]) == ["--help"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_help_lists_every_option(kv, verb, lang):
    code, out, err = kv(verb, "--help", "--lang", lang)
    assert (code, err) == (0, "")
    words = set(re.findall(r"(?<![\w-])--?[\w-]+", out))
    missing = {f for row in VERB_OPTIONS[verb] if row.section != "later" for f in row.flags} - words
    assert not missing


def test_help_of_size_says_what_a_model_is(kv):
    out = " ".join(kv("size", "--help")[1].split())
    for text in (
        "MODEL is a name of the catalogue",
        "config.json",
        "Example: kvgauge size",
        "Default: 0",
        "1500",
    ):
        assert text in out
    assert all(engine in out for engine in ENGINES)
    assert "KVGAUGE_CONTEXT for --context" in " ".join(kv("--help")[1].split())


@pytest.mark.parametrize("verb", ["size", "compare", "explain", "models"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_example_in_the_help_works(kv, verb, lang):
    out = " ".join(kv(verb, "--help", "--lang", lang)[1].split())
    (example,) = re.findall(r"kvgauge (\w+ [\w./-]+(?: [\w./-]+)*?) (?:负载|Load|输出|Output)", out)[-1:]
    assert example.startswith(verb)
    assert kv(*example.split())[0] == 0


# Secrets


@pytest.mark.parametrize(
    "value",
    [
        "hf_abcdefghijklmnop",
        "sk-abc123def456",
        "http://user:pass@host",
        "A" * 40,
        "ms-0123456789",
        "ghp_0123456789",
    ],
)
def test_doctor_shows_no_token(kv, monkeypatch, value):
    for name in ("KVGAUGE_REVISION", "KVGAUGE_API_KEY", "KVGAUGE_ENGINE_ARGS"):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KVGAUGE_SECRET", "short")
    for argv in (("doctor",), ("doctor", "--json")):
        code, out, _ = kv(*argv)
        assert code == 0
        assert value not in out
        assert "short" not in out
    assert set(environment({"KVGAUGE_SECRET": "short"}).values()) == {"set", None}


def test_doctor_shows_settings(monkeypatch):
    settings = {"KVGAUGE_CONTEXT": "32k", "KVGAUGE_ENGINE": "transformers@5.24.0", "KVGAUGE_UNITS": "gb"}
    shown = environment({**settings, "KVGAUGE_ENGINE_ARGS": "cache=static max_cache_len=64"})
    assert {name: shown[name] for name in settings} == settings
    assert shown["KVGAUGE_ENGINE_ARGS"] == "cache=static max_cache_len=64"


def test_doctor_says_what_is_not_installed(kv, monkeypatch):
    monkeypatch.setattr("kvgauge.cli.inventory._installed", lambda _: None)
    out = kv("doctor")[1]
    assert re.search(r"dependencies\.huggingface_hub +not installed", out)
    assert re.search(r"environment\.HF_TOKEN +not set", out)


# Streams


@pytest.mark.skipif(os.name == "nt", reason="pipes and signals of another kind")
def test_a_batch_ends_quietly_where_nobody_reads():
    read, write = os.pipe()
    os.close(read)
    lines = f'{{"model": "{NAME}"}}\n'.encode() * 50
    command = [sys.executable, "-m", "kvgauge", "size", "--ndjson", "-"]
    done = subprocess.run(command, input=lines, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(os.name == "nt", reason="pipes and signals of another kind")
def test_a_batch_is_interrupted():
    command = [sys.executable, "-m", "kvgauge", "size", "--ndjson", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        process.stdin.write(f'{{"model": "{NAME}"}}\n'.encode())
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"{")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        assert process.stderr.read().split() == [b"interrupted"]


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "gbk"])
def test_every_encoding_takes_every_form(encoding):
    for words in (["--markdown"], ["--why", "--markdown"], ["--json"]):
        environ = {**os.environ, "PYTHONIOENCODING": encoding}
        command = [sys.executable, "-m", "kvgauge", "google/gemma-3-27b-it", *words]
        done = subprocess.run(command, env=environ, capture_output=True, check=False)
        assert (done.returncode, done.stderr.count(b"Traceback")) == (0, 0)
        assert "?" not in done.stdout.decode(encoding)
