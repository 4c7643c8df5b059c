"""What a model of the hub costs: ``python benchmarks/hub.py``, against a server on loopback, no network.

CPU of a whole process with a warm local cache; requests, bytes and time of the headers of a model of a
terabyte, in safetensors and in GGUF. Printed and never judged.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parent)]

HOME = tempfile.mkdtemp(prefix="kvgauge-hub-")
NUM_FILES, NUM_EXPERTS = 160, 256


def big_safetensors(size: int) -> bytes:
    """Return the header of one file of many: a layer with its experts, ``size`` bytes of data."""
    each = size // (3 * NUM_EXPERTS) // 2 * 2
    rows: dict[str, object] = {}
    for number in range(3 * NUM_EXPERTS):
        end = size // 2 * 2 if number == 3 * NUM_EXPERTS - 1 else (number + 1) * each
        shape = [(end - number * each) // 2]
        name = f"model.layers.17.mlp.experts.{number // 3}.{('gate', 'up', 'down')[number % 3]}_proj.weight"
        rows[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [number * each, end]}
    text = json.dumps(rows).encode()
    return struct.pack("<Q", len(text)) + text


def big_gguf(num_tokens: int) -> bytes:
    """Return the beginning of a GGUF with a tokenizer of today's size."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    words = b"".join(text(f"token {n}") for n in range(num_tokens))
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, num_tokens) + words,
        text("tokenizer.ggml.merges") + struct.pack("<IIQ", 9, 8, num_tokens) + words,
    ]
    tensor = text("output.weight") + struct.pack("<IQIQ", 1, 1 << 39, 1, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs) + tensor
    return head.ljust(-(-len(head) // 32) * 32, b"\0")


def main() -> None:
    """Print the table."""
    from hub_server import File, HubServer  # noqa: PLC0415 - its folder is added above

    server = HubServer()
    os.environ |= {"HF_ENDPOINT": server.url, "HF_HOME": HOME, "NO_PROXY": "127.0.0.1"}
    config = {
        "model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64,
        "num_key_value_heads": 8, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
    }  # fmt: skip
    head, size = big_safetensors((1 << 40) // NUM_FILES), (1 << 40) // NUM_FILES // 2 * 2
    names = [f"model-{n:05}-of-{NUM_FILES:05}.safetensors" for n in range(1, NUM_FILES + 1)]
    server.add("org/model", {"config.json": config})
    server.add("org/tera", {name: File(head, len(head) + size, linked=True) for name in names})
    gguf = big_gguf(150_000)
    server.add("org/gguf", {"tera.gguf": File(gguf, len(gguf) + (1 << 40), linked=True)})
    _warm_cache()
    _headers(server, names)
    server.close()


def _warm_cache() -> None:
    from run import MAIN, cpu_ms  # noqa: PLC0415 - as above

    import kvgauge  # noqa: PLC0415 - after the environment is set

    kvgauge.load("org/model")
    bare = cpu_ms(["-c", "pass"])
    print(f"{'process':34} {'CPU ms over bare':>16}")
    for name, arguments in {
        "size, from the catalogue": ["Qwen/Qwen3-8B", "--json"],
        "size, from the hub's local cache": ["org/model", "--json"],
    }.items():
        print(f"{name:34} {cpu_ms(['-c', MAIN, *arguments]) - bare:16.1f}")


def _headers(server: object, names: list[str]) -> None:
    import kvgauge.sources as sources  # noqa: PLC0415, PLR0402
    from kvgauge.sources.hub import connect  # noqa: PLC0415
    from kvgauge.sources.names import HubName  # noqa: PLC0415
    from kvgauge.sources.safetensors import read_header  # noqa: PLC0415

    repository = connect(HubName("org/tera"))
    calls: dict[str, Callable[[], object]] = {
        "a cached config, asked for again": lambda: sources.load_raw("org/model", refresh=True),
        f"1 TiB, {NUM_FILES} safetensors": lambda: [read_header(repository.open(n), n) for n in names],
        "1 TiB, one GGUF": lambda: sources.load_raw("org/gguf:tera.gguf"),
    }
    print(f"{'headers':34} {'requests':>9} {'MiB':>8} {'s':>6}")
    for name, call in calls.items():
        before, sent, start = len(server.requests), server.sent_bytes, time.perf_counter()  # type: ignore[attr-defined]
        call()
        num_requests = len(server.requests) - before  # type: ignore[attr-defined]
        mib = (server.sent_bytes - sent) / (1 << 20)  # type: ignore[attr-defined]
        print(f"{name:34} {num_requests:9} {mib:8.2f} {time.perf_counter() - start:6.2f}")


if __name__ == "__main__":
    main()
