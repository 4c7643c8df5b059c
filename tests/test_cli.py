"""The command line: answers, errors, exit codes, streams, terminals."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kvgauge._version import __version__
from kvgauge.cli.app import execute
from kvgauge.cli.arguments import LATER_VERBS, chosen_lang, in_order
from kvgauge.cli.commands import Program
from kvgauge.cli.options import ALL, LATER, VERB_OPTIONS
from kvgauge.errors import FeatureUnsupportedError
from support import config_of

SNAPSHOTS = Path(__file__).parent / "snapshots"
LOGS = Path(__file__).parent / "logs"

QWEN3_8B = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "torch_dtype": "bfloat16",
    "num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "max_position_embeddings": 40960, "intermediate_size": 12288, "vocab_size": 151936,
    "tie_word_embeddings": False,
}  # fmt: skip

MODELS = {
    "gemma": "google/gemma-3-27b-it",
    "hybrid": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "latent": "deepseek-ai/DeepSeek-V3.2",
}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder with a few configs, and an environment without settings."""
    for name in [n for n in os.environ if n.startswith(("KVGAUGE_", "LC_", "LANG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    Path("qwen.json").write_text(json.dumps(QWEN3_8B), encoding="utf-8")
    for name, model in MODELS.items():
        Path(f"{name}.json").write_text(json.dumps(config_of(model)), encoding="utf-8")
    return tmp_path


@pytest.fixture
def kv(capsys):
    """Run a command line in this process: (exit code, stdout, stderr)."""

    def call(*argv: str) -> tuple[int, str, str]:
        code = execute(argv)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def spawn(*argv: str, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess:
    """Run the program in a process of its own."""
    command = [sys.executable, "-c", "from kvgauge.cli import main; main()", *argv]
    return subprocess.run(
        command, input=stdin, capture_output=True, env={**os.environ, **environ}, check=False
    )


# Answers


def test_size_json_is_exact(kv):
    code, out, err = kv("qwen.json", "--context", "32k", "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert answer["schema"] == "kvgauge.size/1"
    assert answer["cache"]["total_bytes"] == 4_831_838_208


@pytest.mark.parametrize(
    "argv",
    [
        ("size", "qwen.json", "--json", "--context", "4k"),
        ("--json", "size", "qwen.json", "--context", "4k"),
        ("--context", "4k", "--json", "qwen.json"),
        ("--context=4k", "qwen.json", "--json"),
        ("--json", "--context", "4k", "size", "--", "qwen.json"),
        ("qwen.json", "--max-model-len", "4096", "--json"),
        ("qwen.json", "-c", "4096", "--json"),
    ],
)
def test_options_stand_before_or_after_the_verb(kv, argv):
    code, out, _ = kv(*argv)
    assert code == 0
    assert json.loads(out)["request"]["context_tokens"] == 4096


def test_engine_words_are_understood(kv):
    argv = (
        "qwen.json",
        "--json",
        "-ctk",
        "q8_0",
        "-ctv",
        "f16",
        "--tensor-parallel-size",
        "2",
        "--batch-size",
        "3",
    )
    request = json.loads(kv(*argv)[1])["request"]
    assert (request["k_dtype"], request["v_dtype"]) == ("q8_0", "fp16")
    assert (request["tensor_parallel"], request["sequences"]) == (2, 3)


def test_bare_mtp_is_one():
    assert in_order(["--mtp", "model"]) == ["size", "--mtp=1", "model"]
    assert in_order(["model", "--mtp", "3"]) == ["size", "model", "--mtp", "3"]
    assert in_order(["explain", "model", "--mtp"]) == ["explain", "model", "--mtp=1"]


def test_overrides_are_json_or_words(kv):
    argv = ("qwen.json", "--json", "--override", "num_hidden_layers=2", "--override", "torch_dtype=float32")
    answer = json.loads(kv(*argv)[1])
    assert answer["model"]["overrides"] == {"num_hidden_layers": 2, "torch_dtype": "float32"}
    assert answer["cache"]["growth_bytes_per_token"] == 2 * 2 * 8 * 128 * 4


def test_environment_sets_options(kv, monkeypatch):
    monkeypatch.setenv("KVGAUGE_CONTEXT", "1k")
    monkeypatch.setenv("KVGAUGE_JSON", "1")
    assert json.loads(kv("qwen.json")[1])["request"]["context_tokens"] == 1024
    assert json.loads(kv("qwen.json", "--context", "2k")[1])["request"]["context_tokens"] == 2048


def test_load_beyond_the_reservation_is_a_warning(kv):
    argv = ("qwen.json", "--context", "8k", "--max-model-len", "4k")
    assert "warning: 8,192 tokens exceed the 4,096" in kv(*argv)[2]
    notes = json.loads(kv(*argv, "--json")[1])["notes"]
    assert [note["code"] for note in notes] == ["context_beyond_reservation"]


def test_notes_go_to_stderr(kv):
    code, out, err = kv("qwen.json", "--context", "64k")
    assert code == 0
    assert "exceed" not in out
    assert err == "warning: 65,536 tokens exceed the model's own limit of 40,960\n"


def test_standard_input_is_read_when_asked():
    done = spawn("-", "--json", stdin=json.dumps(QWEN3_8B).encode())
    assert done.returncode == 0
    assert json.loads(done.stdout)["model"]["source"] == "stdin"


def test_compare_keeps_going_past_a_bad_model(kv):
    code, out, err = kv("compare", "qwen.json", "no/such-model", "gemma.json")
    assert code == 1
    assert "gemma.json" in out
    assert err.startswith("no/such-model: ")
    code, out, _ = kv("compare", "qwen.json", "no/such-model", "gemma.json", "--json")
    rows = json.loads(out)["rows"]
    assert code == 1
    assert ["error" in row for row in rows] == [False, True, False]


def test_why_is_explain(kv):
    assert kv("size", "qwen.json", "--why") == kv("explain", "qwen.json")
    assert json.loads(kv("qwen.json", "--why", "--json")[1])["schema"] == "kvgauge.explain/1"


def test_a_device_makes_it_fit(kv):
    assert in_order(["model", "--gpu=H100"]) == ["fit", "model", "--gpu=H100"]
    assert in_order(["size", "model", "--gpu", "H100"])[0] == "size"
    assert in_order(["--", "--gpu"])[0] == "size"
    answer = json.loads(kv("qwen.json", "--kv-memory", "75931582464", "--context", "32k", "--json")[1])
    assert (answer["schema"], answer["kv_pool"]["num_blocks"]) == ("kvgauge.fit/1", 32_184)


def test_check_is_an_exit_code(kv):
    argv = ("fit", "qwen.json", "--kv-memory", "1GiB")
    assert [kv(*argv)[0], kv(*argv, "--check")[0], kv(*argv, "--check", "--context", "4k")[0]] == [0, 3, 0]
    assert kv(*argv, "--check", "--json")[0] == 3


def test_verdicts_in_chinese_and_other_units(kv):
    argv = ("fit", "qwen.json", "--kv-memory", "1GiB", "--json", "--lang", "zh", "--units", "bytes")
    answer = json.loads(kv(*argv)[1])
    assert "1,073,741,824 B" in answer["verdict"]["sentence"]
    assert "个 token：放得下，余" in answer["suggestions"][1]["message"]


def test_models(kv):
    code, out, _ = kv("models")
    assert code == 0
    assert "Qwen/Qwen3-8B" in out.splitlines()
    assert kv("models", "no-such-name")[:2] == (0, "")
    listed = json.loads(kv("models", "qwen3-8b", "--json")[1])
    assert listed["schema"] == "kvgauge.models/1"
    assert listed["models"][0]["growth_bytes_per_token"] == 147_456


def test_engines(kv):
    listed = json.loads(kv("engines", "--json")[1])
    assert listed["schema"] == "kvgauge.engines/1"
    assert {"theory", "transformers"} <= {engine["name"] for engine in listed["engines"]}
    assert "theory" in kv("engines")[1]


def test_doctor_tells_no_secret(kv, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("https_proxy", "http://user:secret@proxy")
    monkeypatch.setenv("KVGAUGE_UNITS", "gb")
    for argv in (("doctor",), ("doctor", "--json")):
        code, out, _ = kv(*argv)
        assert code == 0
        assert "secret" not in out
    facts = json.loads(kv("doctor", "--json")[1])
    assert {facts["environment"][name] for name in ("HF_TOKEN", "HTTPS_PROXY")} == {"set"}
    assert facts["environment"]["KVGAUGE_UNITS"] == "gb"
    assert facts["version"] == __version__


def test_version(kv):
    assert kv("--version") == (0, f"kvgauge {__version__}\n", "")
    assert json.loads(kv("--version", "--json")[1])["version"] == __version__


def test_bare_command_shows_three_examples(kv):
    code, out, err = kv()
    assert (code, err) == (0, "")
    assert len([line for line in out.splitlines() if line.startswith("  kvgauge ")]) == 3


# Errors


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (("no/such-model",), 4, "offline"),
        (("no-such-model",), 4, "model_not_found"),
        (("./missing.json",), 4, "model_not_found"),
        (("qwen.json", "--contxt", "3"), 2, "invalid_request"),
        (("qwen.json", "--context", "many"), 2, "invalid_request"),
        (("qwen.json", "--tp", "x"), 2, "invalid_request"),
        (("qwen.json", "--sequences", "0"), 2, "invalid_request"),
        (("qwen.json", "--units", "gx"), 2, "invalid_request"),
        (("qwen.json", "--lang", "fr"), 2, "invalid_request"),
        (("qwen.json", "--override", "x"), 2, "invalid_request"),
        (("qwen.json", "--override", "x={"), 2, "invalid_request"),
        (("qwen.json", "--override", "x=NaN"), 2, "invalid_request"),
        (("qwen.json", "other.json"), 2, "invalid_request"),
        (("size",), 2, "invalid_request"),
        (("compare",), 2, "invalid_request"),
        (("--context", "3"), 2, "invalid_request"),
        (("qwen.json", "--tp", "3"), 1, "feature_unsupported"),
        (("qwen.json", "--memory", "80xB"), 2, "invalid_request"),
        (("qwen.json", "--gpu-file", "no-such.json"), 1, "damaged_file"),
        (("qwen.json", "--gpu", "H100", "--reserve", "80GiB"), 2, "invalid_request"),
        (("fit", "qwen.json"), 2, "invalid_request"),
        (("fit",), 2, "invalid_request"),
        (("fit", "qwen.json", "--kv-memory", "1x"), 2, "invalid_request"),
        (("fit", "qwen.json", "--gpu", "no such card", "--kv-memory", "1GiB"), 2, "invalid_request"),
        (("qwen.json", "--kv-memory", "1GiB", "--engine", "transformers"), 1, "feature_unsupported"),
        (("qwen.json", "--engine", "vllm", "--engine-args", "--max-model-length 4"), 2, "invalid_request"),
        (("qwen.json", "--weights", "int5"), 2, "invalid_request"),
        (("--command", "ls -l"), 2, "invalid_request"),
        (("qwen.json", "--engine", "no-such-engine"), 2, "invalid_request"),
    ],
)
def test_errors(kv, argv, code, word):
    found, out, err = kv(*argv)
    assert (found, out) == (code, "")
    assert err.startswith("kvgauge: ")
    assert len(err.splitlines()) <= 2
    assert "Traceback" not in err
    found, out, err = kv(*argv, "--json")
    error = json.loads(out)
    assert (found, err) == (code, "")
    assert error["schema"] == "kvgauge.error/1"
    assert error["error"]["code"] == word
    assert set(error["error"]) == {"code", "message", "hint", "field"}


@pytest.mark.parametrize("verb", LATER_VERBS)
def test_later_verbs_are_named_and_not_listed(kv, verb):
    code, _, err = kv(verb, "qwen.json")
    assert code == 1
    assert f"'{verb}' is not part of this release" in err
    assert not re.search(rf"^  {verb}\b", kv("--help")[1], re.MULTILINE)
    with pytest.raises(FeatureUnsupportedError):
        in_order(["--json", verb])


@pytest.mark.parametrize(
    ("argv", "takers"),
    [
        (("size", "--gpu", "H100"), "fit, plan"),
        (("explain", "--check"), "fit, plan"),
        (("compare", "--emit", "docker"), "plan"),
        (("fit", "--price-file", "prices.json"), "plan"),
    ],
)
def test_an_option_of_other_commands_names_them(kv, argv, takers):
    code, out, err = kv(argv[0], "qwen.json", *argv[1:])
    assert (code, out) == (2, "")
    assert f"{argv[1]} is no option of {argv[0]}" in err
    assert f"it is one of {takers}: kvgauge {takers.split(',')[0]} MODEL {argv[1]}" in err


def test_unknown_option_suggests_one(kv):
    assert "did you mean --context" in kv("qwen.json", "--contex", "3")[2]


def test_damaged_file(kv):
    Path("bad.json").write_text("{", encoding="utf-8")
    code, _, err = kv("bad.json")
    assert code == 1
    assert err.startswith("kvgauge: bad.json is not JSON")


def test_control_characters_are_escaped(kv):
    code, _, err = kv("no/\x1b[2Jsuch\nmodel")
    assert code == 4
    assert "\x1b" not in err
    assert len(err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError("x"), "internal error (RuntimeError)"),
        (MemoryError(), "more memory"),
        (RecursionError(), "too deeply"),
    ],
)
def test_unexpected_errors_are_one_line(kv, monkeypatch, error, text):
    def fail(*_args, **_kwargs):
        raise error

    monkeypatch.setattr("kvgauge.cli.answers.size", fail)
    code, out, err = kv("qwen.json")
    assert (code, out) == (1, "")
    assert text in err
    assert "Traceback" not in err
    assert json.loads(kv("qwen.json", "--json")[1])["error"]["code"] == "internal"


def test_debug_shows_the_traceback(kv, monkeypatch):
    def fail(*_args, **_kwargs):
        raise RuntimeError

    monkeypatch.setattr("kvgauge.cli.answers.size", fail)
    monkeypatch.setenv("KVGAUGE_DEBUG", "1")
    assert "Traceback" in kv("qwen.json")[2]


def test_interrupt(kv, monkeypatch):
    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("kvgauge.cli.answers.size", interrupt)
    code, out, err = kv("qwen.json")
    assert (code, out) == (130, "")
    assert err.split() == ["interrupted"]


# Streams and terminals


@pytest.mark.skipif(os.name == "nt", reason="pipes of another kind")
def test_closed_pipe_is_quiet(place):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", "from kvgauge.cli import main; main()", "qwen.json"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_full_disk_is_one_line(place):
    command = [sys.executable, "-c", "from kvgauge.cli import main; main()", "qwen.json", "--json"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"kvgauge: can't write the answer")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "gbk", "utf-8"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_encoding_is_shown(encoding, lang):
    for verb in ("size", "explain"):
        done = spawn(verb, "gemma.json", "--lang", lang, PYTHONIOENCODING=encoding)
        text = done.stdout.decode(encoding)
        assert done.returncode == 0
        assert b"Traceback" not in done.stderr
        assert "2.91 GiB" in text
        assert "?" not in text
    assert json.loads(
        spawn("gemma.json", "--json", "--lang", lang, PYTHONIOENCODING=encoding).stdout.decode(encoding)
    )


def test_ascii_stand_ins():
    text = spawn("gemma.json", PYTHONIOENCODING="ascii").stdout.decode("ascii")
    assert "L x 2 x H_kv" in text
    assert re.search(r"^#+=+\++$", text, re.MULTILINE)


def test_color_is_on_demand(kv, monkeypatch):
    assert "\x1b[" not in kv("gemma.json")[1]
    colored = kv("gemma.json", "--color", "always")[1]
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored).split() == kv("gemma.json")[1].split()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in kv("gemma.json")[1]


@pytest.mark.parametrize("units", ["gib", "gb", "bytes"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_units_are_not_mixed(kv, units, lang):
    own = {"gib": r"\d [KMGT]iB\b", "gb": r"\d [kMGT]B\b", "bytes": r"\d B\b"}
    for argv in (
        ("size", "hybrid.json", "--tp", "2"),
        ("compare", "hybrid.json", "gemma.json"),
        ("explain", "hybrid.json"),
    ):
        code, out, _ = kv(*argv, "--units", units, "--lang", lang)
        assert code == 0
        assert re.search(own[units], out)
        for other in set(own) - {units, "bytes"}:
            assert not re.search(own[other], out), (argv, other)


@pytest.mark.parametrize("width", [24, 40, 60, 80, 200])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_line_is_wider_than_the_terminal(kv, monkeypatch, width, lang):
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", str(width))
    for argv in (
        ("gemma.json", "--tp", "2", "--pp", "3"),
        ("hybrid.json", "--sequences", "64"),
        ("latent.json", "--context", "max"),
        ("explain", "latent.json"),
        ("fit", "hybrid.json", "--kv-memory", "9GiB", "--sequences", "900"),
        ("gemma.json", "--engine", "vllm"),
        ("compare", "gemma.json", "hybrid.json"),
        ("models", "qwen3-8b"),
        ("engines",),
        ("doctor",),
        ("--help",),
        ("compare", "--help"),
    ):
        lines = kv(*argv, "--lang", lang)[1].splitlines()
        assert max(map(cell_len, lines)) <= width, argv
        assert not any(line.endswith(" ") for line in lines)


def test_language_by_locale():
    assert chosen_lang([], {"LANG": "zh_CN.UTF-8"}) == "zh"
    assert chosen_lang([], {"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}) == "en"
    assert chosen_lang([], {"LANG": "de_DE", "KVGAUGE_LANG": "zh"}) == "zh"
    assert chosen_lang(["--lang", "en"], {"KVGAUGE_LANG": "zh"}) == "en"
    assert chosen_lang(["x", "--lang=zh"], {}) == "zh"


ARTICLE_NAMES = (
    "Qwen/Qwen3-30B-A3B",
    "zai-org/GLM-4.7-Flash",
    "Qwen/Qwen3.5-35B-A3B",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
)

SHOWN = {
    "size_full": ("qwen.json", "--context", "32k"),
    "size_sliding": ("gemma.json", "--tp", "2", "--pp", "3"),
    "size_hybrid": ("hybrid.json", "--sequences", "8", "--context", "max", "--units", "gb"),
    "size_what_if": ("qwen.json", "--weights", "int4", "--context", "32k"),
    "size_latent": ("latent.json", "--kv-dtype", "fp8", "--tp", "8"),
    "size_vllm": ("hybrid.json", "--engine", "vllm@0.33.0", "--sequences", "4", "--context", "32k"),
    "explain_vllm": ("explain", "gemma.json", "--engine", "vllm@0.33.0", "--no-weights"),
    "fit": ("fit", "qwen.json", "--engine", "vllm@0.19.0", "--context", "32k", "--kv-memory", "75931582464"),
    "fit_not": ("hybrid.json", "--kv-memory", "4GiB", "--gpu", "2x H100 SXM", "--sequences", "40"),
    "size_sglang": ("hybrid.json", "--engine", "sglang@0.5.23", "--sequences", "4", "--context", "32k"),
    "explain_sglang": ("explain", "latent.json", "--engine", "sglang", "--no-weights"),
    "fit_sglang": ("hybrid.json", "--engine", "sglang@0.5.23", "--kv-memory", "40GiB", "--gpu", "H200"),
    "fit_trtllm": (
        "qwen.json",
        "--engine",
        "trtllm",
        "--kv-memory",
        "20GiB",
        "--sequences",
        "8",
        "--tp",
        "2",
    ),
    "size_llamacpp": (
        "gemma.json",
        "--engine",
        "llama.cpp@v0.5.0",
        "--sequences",
        "2",
        "--engine-args",
        "-ngl 4",
    ),
    "explain_llamacpp": ("explain", "gemma.json", "--engine", "llama.cpp", "--no-weights"),
    "fit_llamacpp": ("qwen.json", "--engine", "llama.cpp@b7123", "--kv-memory", "4GiB", "--sequences", "8"),
    "fit_card": (
        "fit",
        "qwen.json",
        "--engine",
        "vllm@0.19.0",
        "--context",
        "32k",
        "--memory",
        "95830MiB",
        "--utilization",
        "0.95",
    ),
    "fit_card_not": ("hybrid.json", "--gpu", "2x RTX 4090", "--sequences", "4", "--reserve", "1GiB"),
    "help_fit": ("fit", "--help"),
    "plan": ("plan", "qwen.json", "--gpu", "RTX 4090", "--context", "32k", "--sequences", "8"),
    "help_plan": ("plan", "--help"),
    "verify": ("verify", str(LOGS / "llamacpp_gemma4_windows.log"), "--model", "google/gemma-4-12B-it"),
    "help_verify": ("verify", "--help"),
    "help_accuracy": ("accuracy", "--help"),
    "compare": ("compare", "qwen.json", "gemma.json", "hybrid.json", "no/such-model"),
    "compare_article": ("compare", *ARTICLE_NAMES),
    "explain": ("explain", "qwen.json", "--sequences", "2"),
    "engines": ("engines",),
    "help": ("--help",),
    "help_size": ("size", "--help"),
    "examples": (),
    "learn_activations": ("learn", "activations", "qwen.json"),
    "help_learn_walk": ("learn", "walk", "--help"),
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    ("name", "width"), [*((name, width) for name in SHOWN for width in (80, 40)), ("compare_article", 120)]
)
def test_text_is_as_before(kv, monkeypatch, name, width, lang):
    """Compare with tests/snapshots; UPDATE_SNAPSHOTS=1 writes them anew."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("KVGAUGE_LANG", lang)
    _, out, err = kv(*SHOWN[name])
    shown = out + "".join(f"[stderr] {line}\n" for line in err.splitlines())
    file = SNAPSHOTS / f"{name}.{lang}.{width}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")


# What the program is made of


def test_json_draws_nothing():
    code = (
        "import sys; from kvgauge.cli.app import execute; execute(['qwen.json', '--json']);"
        "print([m for m in sys.modules if m.startswith('rich') or m.endswith('resources')], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr.decode().strip() == "[]"


def test_option_spellings_are_unique():
    for rows in VERB_OPTIONS.values():
        flags = [flag for row in rows for flag in row.flags]
        assert len(flags) == len(set(flags))


def test_every_option_has_a_variable():
    rows = [row for row in ALL if row not in LATER]
    assert len({row.envvar for row in rows}) == len(rows)
    assert all(re.fullmatch(r"KVGAUGE_[A-Z_]+", row.envvar) for row in rows)


def test_program_works_without_settings():
    from click.testing import CliRunner

    result = CliRunner().invoke(Program(), ["qwen.json"])
    assert result.exit_code == 0
    assert "4.50 GiB" in result.output
