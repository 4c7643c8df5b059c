"""A server, a browser and pages that notice what no page may do.

Skipped, and said so, where there is no Chromium, no Playwright or no web extra.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="browser tests need the package playwright")
pytest.importorskip("uvicorn", reason="browser tests need the extra [web]")

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items):
    if CHROMIUM is None:
        here = Path(__file__).parent
        skip = pytest.mark.skip(reason="browser tests need Debian's chromium")
        for item in items:
            if here in item.path.parents:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """A server of this package, offline, at a free port."""
    command = [sys.executable, "-m", "kvgauge", "serve", "--port", "0", "--offline"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    found = None
    for line in process.stdout:
        found = re.search(r"http://[^\s/]+/", line)
        if found:
            break
    rest = threading.Thread(target=process.stdout.read, daemon=True)
    rest.start()
    assert found, "the server did not say where it is"
    yield found[0]
    process.terminate()
    process.wait(10)
    rest.join(10)
    process.stdout.close()


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator[object]:
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


class Visit:
    """One page, with everything that it complained about or asked elsewhere."""

    def __init__(self, context, address: str) -> None:
        self.address, self.context = address, context
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.page.set_default_timeout(10_000)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("console", self._console)
        self.page.on("request", self._request)

    def _console(self, message) -> None:
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(f"console: {message.text}")

    def _request(self, request) -> None:
        if not request.url.startswith((self.address, "blob:", "data:")):
            self.complaints.append(f"outside: {request.url}")

    def go(self, place: str = "") -> object:
        """Open an address of the page and wait for its answer."""
        self.page.goto("about:blank")
        self.page.goto(self.address + place)
        self.page.wait_for_selector("main")
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until no answer is under way and the address is written, which follows the slider slowly."""
        self.page.wait_for_timeout(200)
        self.page.wait_for_function(
            "() => !document.querySelector('.skeleton, [aria-busy=true]')"
            " && !('asking' in document.documentElement.dataset)"
        )


@pytest.fixture
def visit(browser, address, request) -> Iterator[Visit]:
    """A page in a context of its own; ``indirect`` parameters are those of the context."""
    options = {
        "viewport": {"width": 1280, "height": 900},
        "locale": "en-US",
        "accept_downloads": True,
        **getattr(request, "param", {}),
    }
    context = browser.new_context(**options)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address.rstrip("/"))
    found = Visit(context, address)
    yield found
    context.close()
    assert found.complaints == []


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, from the page's own development packages."""
    web = Path(__file__).parents[2] / "web"
    source = web / "node_modules/axe-core/axe.min.js"
    if not source.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("axe-core needs npm")
        subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=web, check=True)
    return source.read_text(encoding="utf-8")
