"""How an engine was started, as its log shows it: a config that it prints, its arguments, or a command line.

Lines are data: a command in them is taken apart, never run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from types import MappingProxyType

#: ``name='value'``, ``'name': value``: values are words or quoted texts.
_PAIR = re.compile(
    r"(?<![\w.])'?(?P<name>[a-z]\w{1,60})'?\s?[=:]\s?(?:'(?P<quoted>[^']{0,400})'|\"(?P<double>[^\"]{0,400})\"|"
    r"(?P<word>[\w.:+/-]{1,200}))"
)
_MAX_PAIRS = 2000
_NOTHING = frozenset({"None", "auto", "none", "null", ""})

_VLLM_CONFIG = re.compile(r"(?:LLM engine|engine \(v[\w.+-]+\)) .{0,60}?with config:? ")
_VLLM_ARGS = re.compile(r"non-default args: \{|\bargs: Namespace\(")
_SGLANG_ARGS = re.compile(r"server_args=ServerArgs\(|\bServerArgs\(")
_COMMAND = re.compile(
    r"^(?:[$+#>] ?|.{0,200}?cmd=\"?|.{0,80}?[Cc]ommand:? )?(?:[A-Z_]{2,40}=\S{1,80} "
    r")*(?P<line>(?:\S{0,80}?python[\d.]* -m )?"
    r"(?P<program>vllm serve|vllm\.entrypoints\.\S{1,60}|sglang\.launch_server|trtllm-serve(?: serve)?|"
    r"(?:\S{0,120}/)?(?:llama-server|llama-cli|ollama runner|ollama_llama_server))(?: .{0,20000})?)$"
)

_V: Mapping[str, str] = MappingProxyType({
    "max_seq_len": "--max-model-len", "max_model_len": "--max-model-len",
    "tensor_parallel_size": "--tensor-parallel-size", "pipeline_parallel_size": "--pipeline-parallel-size",
    "data_parallel_size": "--data-parallel-size",
    "decode_context_parallel_size": "--decode-context-parallel-size",
    "kv_cache_dtype": "--kv-cache-dtype", "dtype": "--dtype",
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "max_num_seqs": "--max-num-seqs", "max_num_batched_tokens": "--max-num-batched-tokens",
    "block_size": "--block-size", "num_gpu_blocks_override": "--num-gpu-blocks-override",
    "kv_cache_memory_bytes": "--kv-cache-memory-bytes", "mamba_ssm_cache_dtype": "--mamba-ssm-cache-dtype",
    "mamba_cache_dtype": "--mamba-cache-dtype", "mamba_cache_mode": "--mamba-cache-mode",
    "enforce_eager": "--enforce-eager", "enable_prefix_caching": "--enable-prefix-caching",
    "enable_chunked_prefill": "--enable-chunked-prefill",
    "chunked_prefill_enabled": "--enable-chunked-prefill",
    "enable_expert_parallel": "--enable-expert-parallel",
    "disable_hybrid_kv_cache_manager": "--disable-hybrid-kv-cache-manager",
    "attention_backend": "--attention-backend", "async_scheduling": "--async-scheduling",
})  # fmt: skip
_S: Mapping[str, str] = MappingProxyType({
    "tp_size": "--tp-size", "dp_size": "--dp-size", "pp_size": "--pp-size",
    "mem_fraction_static": "--mem-fraction-static",
    "context_length": "--context-length", "chunked_prefill_size": "--chunked-prefill-size",
    "kv_cache_dtype": "--kv-cache-dtype", "page_size": "--page-size", "dtype": "--dtype",
    "max_running_requests": "--max-running-requests", "cuda_graph_max_bs": "--cuda-graph-max-bs",
    "max_mamba_cache_size": "--max-mamba-cache-size", "mamba_full_memory_ratio": "--mamba-full-memory-ratio",
    "enable_dp_attention": "--enable-dp-attention", "disable_radix_cache": "--disable-radix-cache",
    "speculative_algorithm": "--speculative-algorithm", "speculative_num_steps": "--speculative-num-steps",
    "speculative_eagle_topk": "--speculative-eagle-topk",
    "speculative_num_draft_tokens": "--speculative-num-draft-tokens",
    "attention_backend": "--attention-backend", "swa_full_tokens_ratio": "--swa-full-tokens-ratio",
    "max_total_tokens": "--max-total-tokens", "disable_cuda_graph": "--disable-cuda-graph",
})  # fmt: skip
#: Switches that have an opposite.
_OPPOSITE = frozenset({"--enable-prefix-caching", "--enable-chunked-prefill", "--async-scheduling"})
_SPECULATION = re.compile(r"num_spec(?:ulative)?_tokens'?\"?[=:] ?(?P<tokens>\d{1,3})")
_METHOD = re.compile(r"'?\"?method'?\"?[=:] ?['\"](?P<method>\w{1,40})['\"]")

Facts = dict[str, object]


def launch_facts(line: str) -> tuple[str, Facts] | None:
    """Return (engine, facts) of a line that says how an engine was started: ``model``, ``args`` and others.

    >>> launch_facts("a V1 LLM engine (v0.9.2) with config: model='a/b', tensor_parallel_size=2")
    ('vllm', {'model': 'a/b', 'args': {'--tensor-parallel-size': '2'}})
    """
    match = _VLLM_CONFIG.search(line) or _VLLM_ARGS.search(line)
    if match is not None:
        return "vllm", _vllm(line[match.end() :])
    match = _SGLANG_ARGS.search(line)
    if match is not None:
        return "sglang", _sglang(line[match.end() :])
    match = _COMMAND.match(line)
    return _command(match["program"], line[match.start("program") :]) if match is not None else None


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    for count, match in enumerate(_PAIR.finditer(line)):
        if count == _MAX_PAIRS:
            return
        yield match["name"], match["quoted"] or match["double"] or match["word"] or ""


def _flags(
    pairs: Iterator[tuple[str, str]], table: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return (flags, all pairs); the first of a name holds, as inner objects repeat some."""
    args: dict[str, str] = {}
    seen: dict[str, str] = {}
    for name, value in pairs:
        seen.setdefault(name, value)
    for name, value in seen.items():
        flag = table.get(name)
        word = value.removeprefix("torch.")
        if flag is None or word in _NOTHING:
            continue
        if word in ("True", "False"):
            if word == "True":
                args[flag] = ""
            elif flag in _OPPOSITE:
                args["--no-" + flag[2:]] = ""
        else:
            args[flag] = word
    return args, seen


def _vllm(line: str) -> Facts:
    args, seen = _flags(_pairs(line), _V)
    facts: Facts = {}
    model = seen.get("model") or seen.get("model_tag")
    if model:
        facts["model"] = model
    if seen.get("quantization", "None") not in _NOTHING:
        facts["quantization"] = seen["quantization"]
    drafted = _SPECULATION.search(line)
    if drafted is not None:
        method = _METHOD.search(line)
        name = f'"method": "{method["method"]}", ' if method is not None else ""
        args["--speculative-config"] = f'{{{name}"num_speculative_tokens": {int(drafted["tokens"])}}}'
    return {**facts, "args": args}


def _sglang(line: str) -> Facts:
    args, seen = _flags(_pairs(line), _S)
    model = seen.get("model_path")
    quantization = seen.get("quantization", "None")
    facts: Facts = {"model": model} if model else {}
    if quantization not in _NOTHING:
        facts["quantization"] = quantization
    return {**facts, "args": args}


_ENGINES = (
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("trtllm", "tensorrt-llm"),
    ("llama", "llama.cpp"),
    ("ollama", "llama.cpp"),
)
_MODEL_FLAGS = ("--model", "--model-path", "-m", "--model_path")
#: Flags that name paths and people, not settings.
_UNUSED = frozenset({"--port", "--host", "--api-key", "--served-model-name", "--mmproj", "--threads", "-t"})


def _command(program: str, line: str) -> tuple[str, Facts] | None:
    try:
        words = shlex.split(line.rstrip('"'))
    except ValueError:
        return None
    engine = next((name for word, name in _ENGINES if word in program), "")
    start = next(
        (n for n, word in enumerate(words) if word.startswith("-") and n > 0 and words[n - 1] != "-m"), None
    )
    names = [
        w
        for w in words[: start if start is not None else len(words)]
        if "/" in w and not w.startswith(("/", "."))
    ]
    facts: Facts = {}
    args: dict[str, str] = {}
    rest = iter(words[start:] if start is not None else ())
    flag = ""
    for word in rest:
        if word.startswith("-") and not re.fullmatch(r"-\d+", word):
            flag, equals, value = word.partition("=")
            args[flag] = value if equals else ""
        elif flag:
            args[flag] = f"{args[flag]} {word}".strip()
    for name in _MODEL_FLAGS:
        if args.get(name):
            facts["model"] = args.pop(name)
    if "model" not in facts and names:
        facts["model"] = names[-1]
    return engine, {**facts, "args": {name: value for name, value in args.items() if name not in _UNUSED}}


def args_text(args: Mapping[str, str]) -> str:
    """Return flags as a line.

    >>> args_text({"--enforce-eager": "", "-c": "512"})
    '--enforce-eager -c 512'
    """
    return " ".join(f"{flag} {shlex.quote(value)}" if value else flag for flag, value in args.items())
