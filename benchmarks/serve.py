"""What the server bears: ``python benchmarks/serve.py [RATE] [REQUESTS]``, by default 300 a second, 100,000.

Requests are sent when they are due, whether the ones before are answered or not, over a few connections that
stay open, as browsers do; a latency counts from when a request was due. The server is a process of its own,
the client is this one. Printed and never judged.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from urllib.parse import urlencode, urlsplit

NUM_CONNECTIONS = 32
MODELS = (
    "Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3.2", "google/gemma-3-27b-it", "Qwen/Qwen3.5-35B-A3B",
    "openai/gpt-oss-120b", "meta-llama/Llama-3.1-70B-Instruct", "moonshotai/Kimi-K2-Instruct",
    "openai/whisper-large-v3",
)  # fmt: skip
ENGINES = ("theory", "vllm", "theory", "transformers", "llama.cpp")


@dataclass
class Seen:
    """What the client saw."""

    latencies_ms: list[float] = field(default_factory=list)
    failures: int = 0
    sent_bytes: int = 0


def addresses() -> Iterator[str]:
    """Yield addresses of ``size``: models, contexts and engines in turn, one not as the one before."""
    engines = cycle(ENGINES)
    for number, model in enumerate(cycle(MODELS)):
        load = {"context": 1024 + 512 * (number % 61), "sequences": 1 + number % 16, "engine": next(engines)}
        if model.endswith("whisper-large-v3"):
            load = {"sequences": load["sequences"]}
        yield f"/api/v1/size?{urlencode({'model': model, **load})}"


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, path: str
) -> tuple[int, int]:
    """Send one request; return (status, bytes of the body)."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:"))
    await reader.readexactly(length)
    return int(lines[0].split()[1]), length


async def connection(url: str, due: asyncio.Queue[tuple[float, str] | None], seen: Seen) -> None:
    """Send what is due, one after the other."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    while (item := await due.get()) is not None:
        at, path = item
        status, length = await ask(reader, writer, parts.netloc, path)
        seen.latencies_ms.append(1000 * (time.perf_counter() - at))
        seen.failures += status != 200
        seen.sent_bytes += length
    writer.close()


async def load(url: str, rate: float, count: int, pid: int) -> None:
    """Send ``count`` requests at a rate and print what came of them, and the server's memory on the way."""
    due: asyncio.Queue[tuple[float, str] | None] = asyncio.Queue()
    seen = Seen()
    clients = [asyncio.create_task(connection(url, due, seen)) for _ in range(NUM_CONNECTIONS)]
    start, memory, cpu = time.perf_counter(), [resident_mib(pid)], cpu_s(pid)
    for number, path in zip(range(count), addresses(), strict=False):
        at = start + number / rate
        wait = at - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        due.put_nowait((at, path))
        if number % max(1, count // 10) == 0 and number:
            memory.append(resident_mib(pid))
    for _ in clients:
        due.put_nowait(None)
    await asyncio.gather(*clients)
    seconds = time.perf_counter() - start
    _print(seen, seconds)
    each = 1000 * (cpu_s(pid) - cpu) / count
    print(f"{each:.2f} ms of CPU for each, {seen.sent_bytes / count / 1024:.1f} KiB")
    print("MiB of the server  " + "  ".join(f"{value:.0f}" for value in [*memory, resident_mib(pid)]))


def _print(seen: Seen, seconds: float) -> None:
    times = sorted(seen.latencies_ms)
    count = len(times)
    at_most = {share: times[min(count - 1, int(share / 100 * count))] for share in (50, 90, 99, 99.9)}
    shown = "  ".join(f"p{share:g} {value:.1f}" for share, value in at_most.items())
    print(
        f"{count} requests of size in {seconds:.1f} s: {count / seconds:.0f} a second, {seen.failures} failed"
    )
    print(f"ms  {shown}  max {times[-1]:.1f}")


def resident_mib(pid: int) -> float:
    """Return the memory that a process holds, where the system tells."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has taken, where the system tells."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def once(url: str) -> None:
    """Print what single answers cost, asked one after the other: the page's full answer."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    for name, load_of in (
        ("size", {"model": MODELS[0]}),
        ("size, vllm", {"model": MODELS[1], "engine": "vllm"}),
        ("explain", {"model": MODELS[3]}),
        ("fit", {"model": MODELS[0], "gpu": "H100"}),
        ("fit, 8 GPUs", {"model": MODELS[1], "gpu": "H200:8"}),
    ):
        took = []
        for context in range(1024, 1024 * 12, 512):
            path = f"/api/v1/{name.partition(',')[0]}?{urlencode({**load_of, 'context': context})}"
            start = time.perf_counter()
            status, _ = await ask(reader, writer, parts.netloc, path)
            took.append(1000 * (time.perf_counter() - start))
            assert status == 200, path  # noqa: S101 - a benchmark of failures says nothing
        print(f"{name:12} first {took[0]:6.1f} ms, then {sorted(took[1:])[len(took) // 2]:6.1f} ms")
    writer.close()


def main() -> None:
    """Start a server, ask, stop it."""
    rate, count = (*[int(word) for word in sys.argv[1:]], *(300, 100_000)[len(sys.argv) - 1 :])
    start = "import sys; from kvgauge.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "serve", "--port", "0", "--offline", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as server:
        url = json.loads(server.stdout.readline() if server.stdout else "{}")["url"]
        asyncio.run(once(url))
        asyncio.run(load(url, rate, count, server.pid))
        server.terminate()


if __name__ == "__main__":
    main()
