"""Every error message and hint has a Chinese text, which is used where it is shown."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvgauge
from error_texts import SOURCE, literals, plain
from kvgauge.cli.app import execute
from kvgauge.layers import Role
from kvgauge.render.messages import zh
from kvgauge.render.messages.errors_zh import HOLE, TABLES, chinese, foreign, note_value, reasons
from support import config_of

ROWS = [row for table in TABLES for row in table.items()]
SKELETONS = {plain(english) for english, _ in ROWS}

#: How a phrase is put into a message where it is not passed on alone: ``TEXT`` is the phrase.
COMPOSED = (
    "TEXT", "{} TEXT", "{} TEXT ({})", "TEXT, or allow the network",
    "{} TEXT, and {} keeps off the network", "TEXT{}",
)  # fmt: skip

#: Rows that several texts of the source are joined to.
JOINED = {
    "no public shape for the model here ({})", "not predicted yet ({})",
    "the config has no {}, which {}", "the config has no {}, which {} can't be read without",
    "the metadata has no {}, which {}", "the mirror {} ({}): {}", "text or an object", "a whole number or text",
    "if it is private, set MODELSCOPE_API_TOKEN; or give a config.json",
    *(f"{role.value} in {{}}" for role in Role),
}  # fmt: skip

#: Texts with a blank that no error shows, or that are parts of a joined row.
NOT_SHOWN = {
    "PCIe {}: {}", "one NVMe disk on {} of {} lanes; {}", "both directions", "{}; one direction is half",
    "dense {}; {}",
    "{} machines", "{} with {} {} on {} of {}", "{} --host 0.0.0.0 --port {}", "exec {}", "exit 1",
    'exec ray start --address="$LWS_LEADER_ADDRESS:{}" --block', "exec {} --host 0.0.0.0 --port {}",
    '{} --nnodes "$LWS_GROUP_SIZE" --node-rank "$LWS_WORKER_INDEX" '
    '--dist-init-addr "$LWS_LEADER_ADDRESS:{}"',
    "KServe's runtime image brings its own vLLM: the plan holds for the version named above.",
    "The model is read from a volume of this name, under hf/.",
    "start {}",
    "4 B × {} logits × {} sequence{}", "{} to {} B", "{} + {} B", " × {} streams", "{} layer{} × {} {} × {}",
    "kernels and workspaces that come with the weights", "seven start-up logs",
    "a tenth of the weights, by a rule of thumb",
    ", which {}", ", which {} can't be read without", " and {} more", "{} or is private",
    "if it is private, set MODELSCOPE_API_TOKEN; or {}",
    "{} {}, and {} keeps off the network", "{} in {}", "{}.kv_cache_quant_algo = {}",
    "help.verb.learn {}", "  kvgauge learn {} {}", "kvgauge [COMMAND] MODEL [OPTIONS]", "kvgauge {} [OPTIONS]", "learn {}",
    "local cache", "local cache, {}", "pulled by Ollama", "{}, commit {}", ", commit {}", "as {}: {}",
    "own file", "this machine", "rule: the tool's total less what a driver keeps", "vram total memory (b)",
    "card series", "card model", "device name", "gfx version", "Apple M",
    "does not name all layers that stay at 16 bit; those that the method leaves alone are counted as such",
    "a request failed: %s", "an answer failed: %s", "vllm serve",
    "(?<!\\S)(?:vllm serve|vllm\\.entrypoints\\.\\S{1,60}|sglang\\.launch_server|trtllm-serve|(?:[\\w./-]{0,120}/)?llama-(?:server|cli))(?!\\S)",
    "Bearer {}", "bytes (\\d{1,19})-(\\d{1,19})/(\\d{1,19})", "{} {} layers", "{} layers", "layers {}", "layer {}",
}  # fmt: skip

_WORDS = re.compile(r"(?<![\w./'-])[A-Za-z][a-z']*(?: [A-Za-z][a-z']*){3,}(?![\w./=-])")


def forms(text: str) -> set[str]:
    """Return the skeletons that a text may stand in; names before a verb are one hole."""
    parts = {text, text.strip(), text.removeprefix("{}").strip(), text.replace("{} {} is", "{} is")}
    return {plain(form.replace("TEXT", part)) for part in parts for form in COMPOSED}


def refusals() -> set[str]:
    """Return why data rows are refused: reasons and hints."""
    found = set()
    for name in ("gguf_architectures", "model_types"):
        text = (SOURCE / f"data/{name}.json").read_text(encoding="utf-8")
        found |= {part for said in re.findall(r'"refused": "([^"]+)"', text) for part in said.split("; ")}
    return found


def test_every_refusal_has_a_chinese_text():
    assert len(refusals()) > 4
    assert not refusals() - SKELETONS, (
        "add rows to src/kvgauge/render/messages/errors_zh/readers.py or gguf.py"
    )


def test_every_message_has_a_chinese_text():
    missing = [
        f"{place}: {text!r}"
        for text, place in literals()
        if text not in NOT_SHOWN and not forms(text) & SKELETONS
    ]
    assert not missing, (
        "these texts of errors have no row in src/kvgauge/render/messages/errors_zh/*.py; add one with "
        "{0}, {1} ... for what is filled in, or, if no error shows them, name them in NOT_SHOWN:\n"
        + "\n".join(missing)
    )


def test_every_row_translates_something():
    said = {text for text, _ in literals(everything=True)}
    formed = {form for text in said | refusals() for form in forms(text)} | JOINED
    ours = {
        plain(english) for table in TABLES if table not in (foreign.TABLE, reasons.TABLE) for english in table
    }
    unsaid = sorted(ours - formed)
    assert not unsaid, f"nothing says these texts of errors_zh any more; remove or reword them: {unsaid}"


@pytest.mark.parametrize(("english", "text"), ROWS, ids=[english[:60] for english, _ in ROWS])
def test_both_sides_have_the_same_holes(english, text):
    holes = HOLE.findall(english)
    assert sorted(holes) == sorted(set(holes)) == sorted(set(HOLE.findall(text)))
    assert "}{" not in english, "two holes side by side can't be told apart"


def test_no_text_has_two_rows():
    assert len(SKELETONS) == len(ROWS)


def english_left(text: str) -> str:
    """Return a run of more than three English words that is left in a text, or ""."""
    found = _WORDS.search(text)
    return found[0] if found else ""


COMMANDS = [
    "nope", "a/b", "Qwen/Qwen3-8C", "./nope.json", ".", "Qwen/Qwen3-8B@v1", "Qwen/Qwen3-8B:x.gguf",
    "Qwen/Qwen3-8B:x.bin", "ms:a/b", "https://example.com/a/b", "http://huggingface.co/a", "x.gguf",
    "Qwen/Qwen3-8B --refresh --offline", "Qwen/Qwen3-8B --revision ../x", "./broken.json --revision x",
    "./broken.json", "./twice.json", "./empty.json", "./list.json", "./deep.json", "./bytes.json",
    "./lora.json", "./bert.json", "./mamba.json", "./model.gguf", "./m-00002-of-00001.gguf",
    "compare", "compare nope ./nope.json", "a b c", "serve --port 99999", "serve --host 192.0.2.1", "serve --host a..b", "serve --port x", "plan Qwen/Qwen3-8B --gpu h100 --network 400g", "plan Qwen/Qwen3-8B --gpu h100 --no-weights --emit x", "fit Qwen/Qwen3-8B --gpu H100:-1", "plan Qwen/Qwen3-8B --gpu all,H100", "fit Qwen/Qwen3-8B --gpu V100 --engine vllm",
    "Qwen/Qwen3-8B --contxt 3", "Qwen/Qwen3-8B --quxx", "Qwen/Qwen3-8B --why=3", "Qwen/Qwen3-8B --units x",
    "Qwen/Qwen3-8B --sequences x", "Qwen/Qwen3-8B --sequences 0", "Qwen/Qwen3-8B --context 3q",
    "Qwen/Qwen3-8B --context 1.5", "Qwen/Qwen3-8B --context 99999999999m", "Qwen/Qwen3-8B --mtp",
    "Qwen/Qwen3-8B --context 3 --shared-prefix 4", "Qwen/Qwen3-8B --tp 7", "Qwen/Qwen3-8B --tp 0",
    "Qwen/Qwen3-8B --pp 99", "Qwen/Qwen3-8B --tp 2 --dcp 2", "Qwen/Qwen3-8B --dcp 3",
    "Qwen/Qwen3-8B --kv-dtype foo", "Qwen/Qwen3-8B --kv-dtype zzzzzz", "Qwen/Qwen3-8B --kv-dtype fp8_ds_mla",
    "deepseek-ai/DeepSeek-V3 --k-dtype bf16 --v-dtype fp8",
    "Qwen/Qwen3-8B --override x", "Qwen/Qwen3-8B --override x=[", "Qwen/Qwen3-8B --override a..b=1",
    "Qwen/Qwen3-8B --override model_type.x=1", "Qwen/Qwen3-8B --override num_hidden_layers=null",
    "Qwen/Qwen3-8B --override num_key_value_heads=5", "Qwen/Qwen3-8B --engine foo",
    "fit Qwen/Qwen3-8B --gpu H100 --utilization 7", "Qwen/Qwen3-8B --gpu H100 --reserve 90GiB",
    "Qwen/Qwen3-8B --gpu H100:2 --memory 80GiB:4", "fit Qwen/Qwen3-8B", "fit Qwen/Qwen3-8B --kv-memory 1GiB --engine transformers",
    "fit Qwen/Qwen3-8B --gpu H100:4 --tp 8 --kv-memory 1GiB", "Qwen/Qwen3-8B --engine vllm@0.1",
    "Qwen/Qwen3-8B --engine vllm --k-dtype bf16 --v-dtype fp8", "Qwen/Qwen3-8B --engine theory@1",
    "Qwen/Qwen3-8B --engine-args x",
    "Qwen/Qwen3-8B --engine transformers@x", "Qwen/Qwen3-8B --engine transformers@3.0.0",
    "Qwen/Qwen3-8B --engine transformers --engine-args x", "Qwen/Qwen3-8B --engine transformers --shared-prefix 9",
    "Qwen/Qwen3-8B --engine transformers --kv-dtype fp8", "Qwen/Qwen3-8B --engine transformers --engine-args a=b",
    "Qwen/Qwen3-8B --engine transformers --engine-args cache=x",
    "Qwen/Qwen3-8B --engine transformers --engine-args nbits=3",
    "google/gemma-3-27b-it --engine transformers --engine-args cache=quantized",
    "Qwen/Qwen3-Next-80B-A3B-Instruct --engine transformers --engine-args cache=dynamic_without_config",
]  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    texts = {
        "broken.json": b'{"a": 1,}', "twice.json": b'{"a": 1, "a": 2}', "empty.json": b"", "list.json": b"[]",
        "deep.json": b"[" * 99, "bytes.json": b'{"a": "\xff"}', "lora.json": b'{"peft_type": "LORA"}',
        "bert.json": b'{"model_type": "new", "architectures": ["NewForClassification"]}',
        "mamba.json": b'{"model_type": "new", "num_hidden_layers": 2, "layer_types": ["mamba", "mamba"]}',
        "model.gguf": b"GGUF\x03\x00\x00\x00", "m-00002-of-00001.gguf": b"GGUF",
    }  # fmt: skip
    for name, data in texts.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_failing_commands_speak_chinese(command, files, capsys):
    assert execute([*command.split(), "--lang", "zh"]) != 0
    said = capsys.readouterr().err
    assert said
    for line in said.splitlines():
        assert re.search(r"[一-鿿]", line), line
        assert not english_left(line), line


def test_json_stays_english(capsys):
    execute(["Qwen/Qwen3-8B", "--tp", "7", "--json", "--lang", "zh"])
    assert (
        json.loads(capsys.readouterr().out)["error"]["message"]
        == "--tp 7 does not divide the 32 attention heads"
    )


def test_titles_stand_before_texts_that_have_no_chinese(capsys):
    from kvgauge.cli.output import Settings, write_error
    from kvgauge.errors import GatedModelError

    write_error(GatedModelError("no such text", hint="nor this"), Settings(json=False, lang="zh"))
    said = capsys.readouterr().err
    assert "无权访问：no such text\n" in said
    assert "提示：nor this\n" in said


DESIGNS = (
    "Qwen/Qwen3-8B", "google/gemma-3-27b-it", "deepseek-ai/DeepSeek-V3.2", "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "moonshotai/Kimi-Linear-48B-A3B-Instruct", "tiiuae/falcon-7b", "ai21labs/Jamba-v0.1",
    "openai/gpt-oss-20b", "google-t5/t5-base", "Zyphra/Zamba-7B-v1",
)  # fmt: skip


@pytest.mark.parametrize("design", DESIGNS)
def test_errors_of_damaged_configs_are_chinese(design):
    config = config_of(design)
    for level in (config, *(v for v in config.values() if isinstance(v, dict))):
        for name in list(level):
            kept = level[name]
            for value in (None, "x", -1, [], {}, 7, True):
                level[name] = value
                assert not untranslated(config)
            level[name] = kept


def untranslated(config: dict) -> str:
    """Return what is not Chinese of the error that a config leads to, or ""."""
    try:
        kvgauge.size(config)
    except kvgauge.KvgaugeError as error:
        for text in (error.message, error.hint):
            if text and (chinese(text) == text or english_left(chinese(text))):
                return text
    return ""


def test_every_note_has_a_chinese_text():
    codes: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Note" and node.args:
                codes |= {n.value for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant)}
    assert len(codes) > 20
    assert not codes - set(zh.NOTES)


def test_phrases_stand_in_for_holes():
    assert chinese("the config has no a.b, which sliding layers need") == "配置中没有 a.b，滑动窗口层需要它"
    assert chinese("the config has no a.b, which is odd") == "配置中没有 a.b, which is odd"
    assert chinese("did you mean a/b or c/d? Else try again") == "是否指 a/b 或 c/d？否则请重试"
    assert chinese("the mirror https://x (HF_ENDPOINT): https://x cut the answer off") == (
        "镜像 https://x（HF_ENDPOINT）：https://x 中断了应答"
    )


def test_blanks_stand_between_chinese_and_letters_alone():
    assert chinese("standard input is empty") == "标准输入是空的"
    assert chinese("a.json is empty") == "a.json 是空的"
    assert chinese("there is no file 甲 乙.json") == "没有文件 甲 乙.json"
    assert chinese("a/b has no revision x on the mirror https://y (HF_ENDPOINT)") == (
        "a/b 在镜像 https://y（HF_ENDPOINT）上没有版本 x"
    )
    assert chinese("context {'a': 1} is not a token count") == "context {'a': 1} 不是 token 数"


def test_values_of_notes_are_chinese():
    assert note_value("recurrent in fp32, index in bf16") == "循环状态（fp32）、索引（bf16）"
    assert note_value("recurrent in fp32, a = b") == "recurrent in fp32, a = b"


@given(st.lists(st.sampled_from([*(p for e, _ in ROWS for p in HOLE.split(e)), "{0}", "x" * 300, "\n"])))
def test_any_text_is_taken_in_little_time(parts):
    begin = time.process_time()
    chinese("".join(parts)[:400])
    assert time.process_time() - begin < 1


def test_the_tables_are_loaded_when_an_error_is_shown():
    check = (
        "import sys\nfrom kvgauge.cli.app import execute\n"
        "execute(['Qwen/Qwen3-8B', '--lang', 'zh'])\nexecute(['nope', '--lang', 'en'])\n"
        "assert not [name for name in sys.modules if 'errors_zh' in name]\n"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
