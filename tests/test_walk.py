"""``learn walk``: its numbers against the model run by hand, its cache against ``size``, what it refuses."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.cli.app import execute
from kvgauge.errors import KvgaugeError
from kvgauge.lab.decoder import softmax
from kvgauge.lab.trace import Trace
from kvgauge.lab.walk import learn_walk
from kvgauge.render.learn_walk import draw_walk
from kvgauge.render.messages import LANGUAGES, Texts
from kvgauge.render.view import View
from lab_models import CONFIGS, make

NAMES = ("llama_gqa", "llama_mha_bias_tied", "qwen3_tied_wide_heads")


@pytest.fixture
def walk():
    return learn_walk()


def test_the_example_of_the_article(walk):
    assert walk.text == "今天天气"
    assert [token.id for token in walk.tokens] == list(walk.folder.tokenizer.encode("今天天气").ids)
    assert "".join(step.text for step in walk.generation.steps) == "真好！\n"
    assert [one.text for one in walk.candidates][:4] == ["真", "很", "不", "怎"]
    english = learn_walk("The weather today")
    assert "".join(step.text for step in english.generation.steps) == " is lovely!\n"


def test_every_step_is_that_of_the_model(walk):
    decoder, ids = walk.folder.decoder, [token.id for token in walk.tokens]
    trace = Trace(frozenset(range(4)))
    logits = decoder.forward(np.array([ids]), watch=trace)[0, -1]
    for token in walk.tokens:
        assert token.row.first == tuple(map(float, decoder.embedding[token.id][:4]))
    seen = walk.attention
    keys, values, query = (trace.of(0, name)[0] for name in ("key", "value", "query"))
    products = keys @ query[-1]
    assert np.allclose([look.product for look in seen.looks], products)
    scores = products / np.sqrt(16)
    assert np.allclose([look.score for look in seen.looks], scores, atol=1e-6)
    shares = np.exp(scores) / np.exp(scores).sum()
    assert np.allclose([look.share for look in seen.looks], shares, atol=1e-6)
    assert np.allclose(seen.taken.first, (shares @ values)[:4], atol=1e-6)
    assert np.allclose([sum(row) for row in (*seen.by_head, *seen.by_token)], 1, atol=1e-5)
    assert not np.triu(np.array(seen.by_token), 1).any()
    by_name = dict(walk.digestion)
    assert by_name["concatenated"].width == 64
    assert np.allclose(by_name["down"].first, trace.of(0, "down")[-1][:4])
    assert [depth.layer for depth in walk.depths] == [0, 1, 3]
    assert len({depth.key.first for depth in walk.depths}) == 3
    assert np.isclose(walk.candidates[0].share, softmax(logits).max())
    assert walk.depths[-1].guess == walk.candidates[0]


def test_one_token_twice_has_one_value_and_two_keys(walk):
    made = walk.projections
    assert (made.first_seen, made.again) == (1, 2)
    assert made.value_change == 0
    assert made.key_change > 0.1
    assert [one.num_elements for one in made.matrices] == [64 * 48, 32 * 48, 32 * 48]
    assert learn_walk("今").projections.again is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompt", ["3", "1,2,3,4,5,6,7"])
def test_the_cache_of_any_folder(tmp_path, name, prompt):
    folder = make(tmp_path, name)
    answer = learn_walk(model=str(tmp_path), ids=prompt, new_tokens=6)
    made = answer.generation
    first = len(prompt.split(","))
    for number, step in enumerate(made.steps):
        tokens = first + number
        said = kvgauge.size(folder.model, context=tokens, kv_dtype="fp32").cache.total_bytes
        assert step.held_bytes == step.size_bytes == step.read_bytes == said
        assert (step.tokens, step.rows_without, len(step.scores)) == (tokens, tokens, tokens)
        assert step.rows == (1 if number else first)
    total = made.tokens
    assert made.rows == total == first + 5
    assert made.rows_without == total * (total + 1) // 2 - first * (first - 1) // 2
    assert made.rows_from_one == total * (total + 1) // 2
    assert made.moved == 0
    assert made.recomputed < 1e-5
    assert made.same_tokens
    assert len({step.query.first for step in made.steps}) == len(made.steps)
    reads = [step.read_bytes for step in made.steps]
    assert reads == sorted(set(reads))
    assert all(token.text == f"#{token.id}" for token in answer.tokens)


def test_sampling_is_seeded():
    def said(seed):
        steps = learn_walk("今天", temperature="2", seed=seed, new_tokens=12).generation.steps
        return [step.chosen for step in steps]

    assert said(1) == said(1)
    assert len({tuple(said(seed)) for seed in range(5)}) > 1


def test_tokens_are_pieces_of_a_real_vocabulary(tmp_path):
    """A byte-level BPE: several characters a token, several tokens a character, a token that begins a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    folder = make(tmp_path, "qwen3_gqa")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=23, min_frequency=2, special_tokens=["<s>"], show_progress=False)
    tokenizer.train_from_iterator([*["the weather"] * 20, "天"], trainer)
    start = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", start)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    answer = learn_walk("the 天", model=str(tmp_path), new_tokens=2)
    assert answer.tokens[0].text == "<s>"
    assert answer.text == "<s>the 天"
    assert len(answer.tokens) < 1 + len("the 天".encode())
    assert "".join(token.text for token in answer.tokens) != answer.text  # 天 is bytes of several tokens
    assert folder.has_tokenizer


def test_a_tokenizer_that_fails_is_one_line(tmp_path, monkeypatch):
    from kvgauge.errors import DamagedFileError
    from kvgauge.lab.folder import Folder

    class Panic(BaseException):
        pass

    class Broken:
        def encode(self, text):
            raise Panic

        decode = encode

    folder = make(tmp_path, "qwen3_gqa")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(Folder, "tokenizer", Broken())
    for call in (lambda: folder.encode("x"), lambda: folder.word(1)):
        with pytest.raises(DamagedFileError, match="the tokenizer can't"):
            call()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_modes_that_part_are_said(walk, lang):
    view = View(Texts(lang), "gib", 80)
    parted = replace(walk, generation=replace(walk.generation, same_tokens=False))
    said = " ".join(view.texts("walk_other_tokens").split())[:20]
    assert said not in draw_walk(walk, view)
    assert said in draw_walk(parted, view)


def test_unknown_characters_are_said():
    answer = learn_walk("今天龘气")
    assert [note.code for note in answer.notes] == ["characters_unknown"]
    assert answer.tokens[2].text == "<unk>"


@settings(max_examples=60, deadline=None)
@given(st.text("0123456789, []x-", max_size=20))
def test_any_ids_are_read_or_refused(ids):
    try:
        answer = learn_walk(ids=ids, new_tokens=1)
    except KvgaugeError as error:
        assert error.exit_code == 2
        return
    assert [str(token.id) for token in answer.tokens] == [str(int(word)) for word in re.findall(r"\d+", ids)]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((" ",), 2, "the text is empty"),
        (("",), 2, "the text is empty"),
        (("a" * 10**6,), 2, "too long"),
        (("a" * 600,), 2, "too long"),
        (("a" * 255,), 2, "exceed the model's 256"),
        (("--new-tokens", "1000000"), 2, "--new-tokens 1000000 is out of range"),
        (("--new-tokens", "0"), 2, "out of range"),
        (("--new-tokens", "x"), 2, "--new-tokens"),
        (("--temperature", "hot"), 2, "--temperature 'hot' is no number"),
        (("--temperature", "nan"), 2, "--temperature nan is out of range"),
        (("--seed", "-1"), 2, "--seed -1 is out of range"),
        (("x", "--ids", "1"), 2, "do not go together"),
        (("--ids", "1,x"), 2, "are no ids"),
        (("--ids", ""), 2, "are no ids"),
        (("--ids", "1,,2"), 2, "are no ids"),
        (("--ids", "1" + ",1" * 600), 2, "too long"),
        (("--ids", "9999"), 2, "no id 9999"),
        (("--model", "nowhere"), 4, "nowhere is no folder"),
        (("--model", "empty"), 4, "holds no config.json"),
        (("--model", "bare"), 4, "holds no safetensors"),
        (("--model", "other"), 1, "not mistral"),
        (("--model", "mute"), 4, "holds no tokenizer.json"),
        (("a", "b"), 2, "b is one word too many"),
    ],
)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_bad_requests_are_one_line(tmp_path, monkeypatch, capsys, words, code, said, lang):
    monkeypatch.chdir(tmp_path)
    config = json.dumps(CONFIGS["llama_gqa"])
    for name in ("empty", "bare", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "bare/config.json").write_text(config, encoding="utf-8")
    other = {**CONFIGS["llama_gqa"], "model_type": "mistral", "architectures": ["MistralForCausalLM"]}
    (tmp_path / "other/config.json").write_text(json.dumps(other), encoding="utf-8")
    make(tmp_path / "mute", "llama_gqa")
    needs_ids = words[-1] in ("bare", "other")
    assert execute(["learn", "walk", *words, *(["--ids", "1"] if needs_ids else []), "--lang", lang]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert 1 <= len(err.splitlines()) <= 2
    assert said in err if lang == "en" else re.search(r"[一-鿿]", err)


@pytest.mark.parametrize("width", ["40", "80", "120"])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_text_shows_what_json_says(capsys, monkeypatch, lang, width):
    monkeypatch.setenv("COLUMNS", width)
    assert execute(["learn", "walk", "--lang", lang]) == 0
    shown = capsys.readouterr().out
    execute(["learn", "walk", "--json", "--lang", lang])
    answer = json.loads(capsys.readouterr().out)
    for token in answer["tokens"]:
        assert re.search(rf"{token['text']} +{token['id']}\b", shown)
    for look in answer["attention"]["looks"]:
        assert f"{100 * look['share']:.1f} %" in shown
    for one in answer["next"]:
        assert f"{one['logit']:+.2f}" in shown
    for step in answer["generation"]["steps"]:
        assert f"{step['held_bytes']:,} B" in shown
    assert f"T = {answer['generation']['rows']}" in shown
    assert answer["model"]["id"] == "kvgauge-lab"
    assert max(map(len, shown.splitlines())) <= int(width)
