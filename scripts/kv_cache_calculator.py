#!/usr/bin/env python3
"""KV cache calculator: the growing cache of a model at a context, and its state where it has one.

python scripts/kv_cache_calculator.py Qwen/Qwen3-8B
python scripts/kv_cache_calculator.py Qwen/Qwen3-8B --context-length 131072 --batch-size 4 --dtype-bytes 1
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if find_spec("kvgauge") is None:  # a checkout that is not installed
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

if TYPE_CHECKING:
    from kvgauge.size_result import SizeResult

#: Families under the article's names; the rest keep their own.
#: The article knows four words; other families go by what their growing cache is made of.
ARCHITECTURES = {
    "hybrid_linear": "hybrid_attention",
    "hybrid_mamba": "hybrid_mamba",
    "recurrent": "hybrid_mamba",
    "mla": "mla",
    "compressed": "mla",
}
DTYPES = {1: "fp8", 2: "bf16", 4: "fp32"}
GIB, GB = 1 << 30, 10**9


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        from kvgauge.errors import InvalidRequestError  # noqa: PLC0415

        raise InvalidRequestError(message, hint="see --help")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = _Parser(prog="kv_cache_calculator.py", description="KV cache of a model, in bytes.")
    parser.add_argument("model", metavar="MODEL", help="a model id, a config.json or a folder that holds one")
    parser.add_argument(
        "--context-length", default="32768", metavar="N", help="tokens of one sequence (32768)"
    )
    parser.add_argument("--batch-size", type=int, default=1, metavar="N", help="sequences at once (1)")
    parser.add_argument(
        "--dtype-bytes", type=int, default=2, choices=sorted(DTYPES), help="bytes an element (2)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    return parser.parse_args(arguments)


def _heads(result: SizeResult) -> tuple[int, int, int]:
    """Return (caching layers' KV heads, head width, caching layers); a latent counts as one wide head."""
    from kvgauge.design import STATE_ROLES  # noqa: PLC0415
    from kvgauge.layers import Axis, LayerKind, Role  # noqa: PLC0415

    groups = [
        d for d in result.cache.demand.groups
        if any(s.counted.axis is Axis.DECODER and s.role not in STATE_ROLES | {Role.INDEX} for s in d.streams)
    ]  # fmt: skip
    if not groups:
        return 0, 0, 0
    layers = len({index for demand in groups for index in demand.group.indices})
    shown = next((d for d in groups if d.group.kind is LayerKind.FULL), groups[0])
    rows = [s for s in shown.streams if s.counted.axis is Axis.DECODER]
    if rows[0].role is Role.KEY:
        return rows[0].vectors, rows[0].width, layers
    return 1, sum(s.width for s in rows if s.role is not Role.INDEX), layers


def answer(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the figures that the text prints, in the same order."""
    import kvgauge  # noqa: PLC0415
    from kvgauge.design import sequence_parts  # noqa: PLC0415
    from kvgauge.units import json_number  # noqa: PLC0415

    result = kvgauge.size(
        arguments.model,
        context=arguments.context_length,
        sequences=arguments.batch_size,
        kv_dtype=DTYPES[arguments.dtype_bytes],
    )
    parts = sequence_parts(result.cache)
    heads, width, caching = _heads(result)
    growth = result.cache.growth_bytes_per_token
    total = parts.growing_bytes * arguments.batch_size
    return {
        "model": result.model.raw.id,
        "architecture": ARCHITECTURES.get(result.cache.family, "gqa"),
        "layers": result.model.architecture.num_layers,
        "attention_layers": caching,
        "num_kv_heads": heads,
        "head_dim": width,
        "per_token_bytes": json_number(growth),
        "per_token_kib": float(growth / 1024),
        "context_length": result.request.workload.context_tokens,
        "batch_size": arguments.batch_size,
        "dtype_bytes": arguments.dtype_bytes,
        "total_bytes": total,
        "total_gib": total / GIB,
        "total_gb": total / GB,
        "state_bytes": parts.state_bytes * arguments.batch_size,
        "cross_attention_bytes": parts.cross_bytes * arguments.batch_size,
    }


def lines(figures: dict[str, object]) -> list[str]:
    """Return the article's lines, then one for the state where there is any."""
    rows = [f"Model: {figures['model']}", f"Architecture: {figures['architecture']}"]
    shapes = ["layers", "num_kv_heads", "head_dim"]
    if figures["attention_layers"] != figures["layers"]:
        shapes.insert(1, "attention_layers")
    rows += [f"  {name + ':':<21}{figures[name]:>12}" for name in shapes]
    values = {
        "per_token_bytes": f"{figures['per_token_bytes']}",
        "per_token_kib": f"{figures['per_token_kib']:.1f}",
        "context_length": f"{figures['context_length']}",
        "total_gib": f"{figures['total_gib']:.4f}",
    }
    rows += [f"  {name + ':':<20}{value:>12}" for name, value in values.items()]
    load = f"for {figures['context_length']} tokens, batch={figures['batch_size']}"
    rows += ["", f"  >>> KV Cache = {figures['total_gib']:.4f} GiB ({figures['total_gb']:.4f} GB) {load}"]
    named = (
        ("Recurrent state", figures["state_bytes"]),
        ("Cross-attention", figures["cross_attention_bytes"]),
    )
    for name, size in named:
        if isinstance(size, int) and size:
            beside = f"{size / GIB:.4f} GiB ({size / GB:.4f} GB), {size} bytes"
            rows.append(f"  >>> {name} = {beside}, batch={figures['batch_size']}, at any context")
    return rows


def main(arguments: list[str]) -> int:
    """Print the answer; return the exit code."""
    from kvgauge.errors import KvgaugeError  # noqa: PLC0415

    try:
        figures = answer(_parse(arguments))
    except KvgaugeError as error:
        if "--json" in arguments:
            print(json.dumps(error.to_dict(), ensure_ascii=False))
        else:
            hint = f" ({error.hint})" if error.hint else ""
            print(" ".join(f"error: {error.message}{hint}".split()), file=sys.stderr)
        return error.exit_code
    print(json.dumps(figures, ensure_ascii=False) if "--json" in arguments else "\n".join(lines(figures)))
    return 0


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)
