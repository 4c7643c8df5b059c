"""How fast the page is: ``python benchmarks/page.py``, with Chromium and the package playwright.

First paint and first answer on loopback with an empty cache, bytes that are sent, and what a move of a
slider takes until the picture has changed (from the library's terms) and until the server's answer stands.
Printed and never judged.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

import kvgauge

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
NUM_VISITS, NUM_MOVES = 7, 40

#: Moves the slider, waits for the frame that shows it, then for the answer; returns both in milliseconds.
_MOVE = """async (value) => {
  const slider = document.querySelector('input[type=range]');
  const shown = () => document.querySelector('.now-label').textContent;
  const before = shown();
  const start = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event('input', {bubbles: true}));
  while (shown() === before) await new Promise((done) => setTimeout(done, 0));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const picture = performance.now() - start;
  while ('asking' in document.documentElement.dataset) await new Promise((done) => setTimeout(done, 1));
  return [picture, performance.now() - start];
}"""
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def told(name: str, values: list[float]) -> None:
    """Print the median and the worst."""
    print(f"{name:<44} median {statistics.median(values):7.1f} ms   worst {max(values):7.1f} ms")


def visits(browser: Browser, address: str) -> None:
    """Open the page with an empty cache, several times."""
    paints, answers = [], []
    for _ in range(NUM_VISITS):
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector(".verdict")
        answers.append(page.evaluate("performance.now()"))
        paints.append(page.evaluate(_PAINT))
        context.close()
    told("first paint", paints)
    told("first answer", answers)


def moves(page: Page, address: str, place: str, name: str) -> None:
    """Move the slider of the context."""
    page.goto("about:blank")
    page.goto(address + place)
    page.wait_for_selector(".now-label")
    page.wait_for_timeout(500)
    pictures, answers = [], []
    for at in range(NUM_MOVES):
        picture, answer = page.evaluate(_MOVE, 300 + (at * 37) % 600)
        pictures.append(picture)
        answers.append(answer)
    told(f"slider to picture, {name}", pictures)
    told(f"slider to answer, {name}", answers)


def main() -> None:
    """Measure."""
    static = Path(kvgauge.__file__).parent / "web" / "static"
    files = [path.read_bytes() for path in static.iterdir() if path.is_file()]
    sent = sum(len(gzip.compress(data)) for data in files)
    print(f"{len(files)} files, {sum(map(len, files)):,} bytes, {sent:,} compressed")
    command = [sys.executable, "-m", "kvgauge", "serve", "--port", "0", "--offline"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None  # noqa: S101 - it was asked for
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None  # noqa: S101 - the line is the server's first
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=[*FLAGS])
            visits(browser, found[0])
            page = browser.new_page()
            moves(page, found[0], "#fit?model=Qwen/Qwen3-8B", "fit of one GPU")
            moves(page, found[0], "#fit?model=deepseek-ai/DeepSeek-V3.2&gpu=H200&count=8", "fit of 8 GPUs")
            moves(page, found[0], "#fit?target=size&model=google/gemma-3-27b-it", "size")
            browser.close()
        server.terminate()


if __name__ == "__main__":
    main()
