"""The page that ships is what its sources build to, byte for byte, and small."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

import kvgauge

WEB = Path(__file__).parents[1] / "web"
STATIC = Path(kvgauge.__file__).parent / "web" / "static"
MAX_COMPRESSED_BYTES = 300_000


def test_the_page_is_small_compressed():
    files = [path for path in STATIC.rglob("*") if path.is_file()]
    assert {"index.html", "app.js", "app.css"} <= {path.name for path in files}
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < MAX_COMPRESSED_BYTES


def test_nothing_is_loaded_from_elsewhere_or_written_inline():
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    assert "http://" not in text
    assert "https://" not in text
    assert "style=" not in text
    assert text.count("<script") == text.count("<script src=") + text.count('<script type="module" src=')
    assert "@import" not in (STATIC / "app.css").read_text(encoding="utf-8")


def test_the_sources_build_to_what_ships(tmp_path):
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("building the page needs Node.js and npm")
    copy = tmp_path / "web"
    shutil.copytree(WEB, copy, ignore=shutil.ignore_patterns("node_modules"))
    if (WEB / "node_modules").is_dir():
        (copy / "node_modules").symlink_to(WEB / "node_modules")
    else:
        subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=copy, check=True)
    subprocess.run([npm, "run", "--silent", "check"], cwd=copy, check=True)
    subprocess.run(["node", "build.mjs", "--out", str(tmp_path / "out")], cwd=copy, check=True)
    built = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    shipped = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.is_file()}
    assert built.keys() == shipped.keys()
    assert [name for name in built if built[name] != shipped[name]] == []
