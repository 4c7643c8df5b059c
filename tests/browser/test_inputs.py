"""Everything that can be asked with: search, keyboard, files that are dropped, texts that are pasted."""

from __future__ import annotations

import json
import struct

import pytest

import kvgauge

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 12,
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "intermediate_size": 4096,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
}
_DROP = """({name, base64}) => {
  const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], name));
  for (const kind of ["dragenter", "dragover", "drop"])
    document.body.dispatchEvent(new DragEvent(kind, {dataTransfer: files, bubbles: true, cancelable: true}));
}"""


def drop(page, name: str, content: bytes) -> None:
    import base64

    page.evaluate(_DROP, {"name": name, "base64": base64.b64encode(content).decode()})


def gguf(num_words: int) -> bytes:
    """A GGUF whose header is long, as its list of words is, with no tensor."""
    text = lambda word: struct.pack("<Q", len(word)) + word.encode()  # noqa: E731
    fields = {
        "llama.block_count": 8, "llama.context_length": 4096, "llama.embedding_length": 512,
        "llama.feed_forward_length": 2048, "llama.attention.head_count": 8,
        "llama.attention.head_count_kv": 2, "llama.vocab_size": num_words,
    }  # fmt: skip
    body = text("general.architecture") + struct.pack("<I", 8) + text("llama")
    for key, value in fields.items():
        body += text(key) + struct.pack("<II", 4, value)
    words = b"".join(text(f"word{at:08}") for at in range(num_words))
    body += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, num_words) + words
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 2 + len(fields)) + body + bytes(64)


def test_models_are_completed_by_keyboard(visit):
    page = visit.go("#fit")
    field = page.get_by_role("combobox", name="Model")
    field.focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("qwen3-32b")
    page.get_by_role("option").filter(has_text="Qwen/Qwen3-32B").first.wait_for()
    page.keyboard.press("ArrowDown")
    chosen = page.locator("[role=option][aria-selected=true]").first.inner_text().splitlines()[0]
    assert page.locator(f"#{field.get_attribute('aria-activedescendant')}").inner_text().startswith(chosen)
    page.keyboard.press("Enter")
    visit.settle()
    assert field.input_value() == chosen
    assert field.get_attribute("aria-expanded") == "false"


def test_the_page_is_used_by_keyboard_alone(visit):
    page = visit.go("#fit")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "answer"
    seen = set()
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    page.locator(".brand").focus()
    for _ in range(70):
        page.keyboard.press("Tab")
        seen.add(page.evaluate(
            "(document.activeElement.getAttribute('aria-label') || document.activeElement.id"
            " || document.activeElement.textContent).trim().slice(0, 40)"
        ))  # fmt: skip
    for name in ("Context", "Sequences", "engine", "kv", "count", "Link", "Markdown"):
        assert any(name in one for one in seen), (name, seen)
    slider = page.get_by_role("slider", name="Sequences")
    slider.focus()
    page.keyboard.press("ArrowRight")
    visit.settle()
    assert "sequences=9" in page.evaluate("location.hash")
    assert "9 at once" in page.inner_text("#answer")
    page.locator(".verdict .num").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog.drawer[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog.drawer", state="hidden")


def test_a_dropped_config_answers_and_stays_in_the_link(visit):
    page = visit.go("#fit?target=size&engine=theory&context=4096&sequences=2")
    drop(page, "mine.json", json.dumps(CONFIG).encode())
    page.get_by_text("mine.json").first.wait_for()
    visit.settle()
    expected = kvgauge.size(CONFIG, context=4096, sequences=2).cache.total_bytes
    assert page.get_attribute(".verdict h1 .num", "title") == f"{expected:,} B"
    link = page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(".answer .verdict h1 .num")
    visit.settle()
    assert page.get_attribute(".verdict h1 .num", "title") == f"{expected:,} B"


@pytest.mark.parametrize("num_words", [100, 60_000])
def test_a_dropped_gguf_is_read_in_growing_slices(visit, num_words):
    page = visit.go("#fit?target=size&context=2048&sequences=1")
    sent = []
    page.on("request", lambda request: sent.append(request.url) if "/gguf?" in request.url else None)
    drop(page, "tiny.gguf", gguf(num_words))
    page.wait_for_function("() => location.hash.includes('gguf')")
    visit.settle()
    expected = kvgauge.size(
        {
            "general.architecture": "llama",
            "llama.block_count": 8,
            "llama.context_length": 4096,
            "llama.embedding_length": 512,
            "llama.attention.head_count": 8,
            "llama.attention.head_count_kv": 2,
        },
        context=2048,
        sequences=1,
        engine="llama.cpp",
    )
    assert page.get_attribute(".verdict h1 .num", "title") == f"{expected.cache.total_bytes:,} B"
    assert len(sent) == (1 if num_words == 100 else len(sent))
    assert num_words == 100 or len(sent) > 1


def test_a_pasted_config_and_what_is_none(visit):
    page = visit.go("#fit?target=size&engine=theory&context=4096&sequences=2")
    page.get_by_role("button", name="Open a config").click()
    page.get_by_role("textbox", name="Paste a config.json").fill("no json")
    page.get_by_role("button", name="Use it").click()
    assert "no JSON object" in page.inner_text("dialog[open]")
    page.get_by_role("textbox", name="Paste a config.json").fill(json.dumps(CONFIG))
    page.get_by_role("button", name="Use it").click()
    page.get_by_text("config.json").first.wait_for()
    visit.settle()
    expected = kvgauge.size(CONFIG, context=4096, sequences=2).cache.total_bytes
    assert page.get_attribute(".verdict h1 .num", "title") == f"{expected:,} B"


@pytest.mark.parametrize("how", ["dialog", "paste"])
def test_a_pasted_launch_command(visit, how):
    command = "VLLM_USE_V1=1 vllm serve Qwen/Qwen3-14B --max-model-len 16384 -tp 2 --kv-cache-dtype fp8"
    page = visit.go("#fit?model=Qwen/Qwen3-8B&gpu=H100&sequences=4")
    if how == "dialog":
        page.get_by_role("button", name="Paste command").click()
        page.get_by_role("textbox", name="Paste a launch command").fill(command)
        page.get_by_role("button", name="Use it").click()
    else:
        page.evaluate("text => navigator.clipboard.writeText(text)", command)
        page.locator("main").click(position={"x": 5, "y": 5})
        page.keyboard.press("Control+v")
    page.wait_for_function("() => location.hash.includes('14B')")
    visit.settle()
    expected = kvgauge.fit(
        "Qwen/Qwen3-14B", gpu="H100", sequences=4, engine="vllm",
        engine_args="--max-model-len 16384 --tensor-parallel-size 2 --kv-cache-dtype fp8",
    ).to_dict()  # fmt: skip
    assert expected["request"]["context_tokens"] == 16384
    assert expected["verdict"]["sentence"] in page.inner_text(".verdict")
    assert "2 × H100" in page.inner_text(".verdict")


def test_a_suggestion_is_tried(visit):
    page = visit.go("#fit?model=meta-llama/Llama-3.1-70B-Instruct&count=2&context=131072")
    page.locator(".suggestion:has(.mark-fits)").get_by_role("button").first.click()
    page.wait_for_timeout(300)
    visit.settle()
    assert page.locator(".card.verdict-fits, .card.verdict-tight").count() == 1


def test_a_file_that_is_nothing_is_said_so(visit):
    page = visit.go("#fit")
    drop(page, "broken.json", b"{")
    page.locator(".toast.shown.bad").wait_for()
    drop(page, "broken.gguf", b"GGUF" + bytes(3))
    page.locator(".toast.shown.bad").filter(has_text="broken.gguf").wait_for()


def test_errors_name_the_way_on(visit):
    page = visit.go("#fit?model=Qwen/Qwen3-8B&count=5")
    problem = page.get_by_role("alert")
    assert problem.count() == 1
    assert "tp" in problem.inner_text()


@pytest.mark.parametrize("visit", [{"viewport": {"width": 360, "height": 740}}], indirect=True)
def test_the_verdict_peeks_in_below_the_question(visit):
    page = visit.go("#fit?sequences=2")
    assert page.locator(".peek").inner_text().startswith("Fits")
    page.locator(".peek").click()
    page.locator(".card.verdict").wait_for()
    page.wait_for_selector(".peek", state="detached")
