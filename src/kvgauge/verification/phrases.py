"""The phrases of start-up logs, engine by engine, as a table: a figure has the name of its field.

Names are those of a record (``docs/accuracy.md``); ``extra__`` before one puts it into ``extra``.
Written from the
phrasings that logs of vLLM 0.6 to 0.33, SGLang 0.4 to 0.5, llama.cpp (b2000 to v0.5), ik_llama.cpp,
Ollama and
TensorRT-LLM show.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: A number as logs print it.
_N = r"-?\d[\d,]{0,18}(?:\.\d{1,9})?"


@dataclass(frozen=True, slots=True)
class Phrase:
    """One phrasing of a line.

    Args:
        engine: whose line it is.
        says: pattern; named groups are fields.
    """

    engine: str
    says: re.Pattern[str]


def _phrase(engine: str, says: str) -> Phrase:
    return Phrase(engine, re.compile(re.sub(r"(?<!\?P)<(\w+)>", lambda name: f"(?P<{name[1]}>{_N})", says)))


def _sizes(says: str) -> re.Pattern[str]:
    """Compile a pattern in which ``<name>`` stands for a size with decimals."""
    return re.compile(
        re.sub(r"(?<!\?P)<(\w+)>", lambda name: rf"(?P<{name[1]}>\d{{1,9}}(?:\.\d{{1,6}})?)", says)
    )


VLLM = tuple(_phrase("vllm", says) for says in (
    r"vLLM (?:API server )?version (?P<engine_version>v?\d[\w.+-]{1,40})",
    r"(?:LLM engine|V1 LLM engine) \((?P<engine_version>v?\d[\w.+-]{1,40})\)",
    # weights
    r"[Ll]oading model weights took <weights_gib> ?G",
    r"Model loading took <weights_gib> ?Gi?B",
    # profiling, three generations
    r"total_gpu_memory=<total_gpu_gib>GiB",
    r"peak_torch_memory=<extra__peak_torch_gib>GiB",
    r"non_torch_memory=<non_torch_gib>GiB",
    r"kv_cache_size=<kv_available_gib>GiB",
    r"gpu_memory_utilization=<gpu_memory_utilization>\b",
    r"total_gpu_memory \(<total_gpu_gib> ?GiB\) x gpu_memory_utilization \(<gpu_memory_utilization>\)",
    r"model weights take <weights_gib> ?GiB",
    r"non_torch_memory takes <non_torch_gib> ?GiB",
    r"activation peak memory takes <activation_peak_gib> ?GiB",
    r"reserved for KV Cache is <kv_available_gib> ?GiB",
    r"Free memory on device (?:cuda:\d+ )?\(<extra__free_gib>/<total_gpu_gib> GiB\)",
    r"[Dd]esired GPU memory utilization is \(<gpu_memory_utilization>,",
    r"<weights_gib> GiB for weight",
    r"<extra__consumed_gib> GiB for consumed memory",
    r"<activation_peak_gib> GiB for peak activation",
    r"<non_torch_gib> GiB for non-torch",
    r"<graph_gib> GiB for CUDAGraph",
    r"CUDA out of memory\..{0,120}? total capac[a-z]+ of <total_gpu_gib> GiB",
    # graphs
    r"[Gg]raph capturing finished in .{1,20}, took <graph_gib> ?Gi?B",
    r"Estimated (?:MRV2 )?CUDA graph memory:? <extra__graph_est_gib> ?GiB",
    # pool
    r"Available KV cache memory: <kv_available_gib> ?GiB",
    r"# (?:GPU|cuda|rocm|xpu|hpu) blocks: <gpu_blocks>",
    r"num_gpu_blocks(?: is)?:? <gpu_blocks>\b",
    r"GPU KV cache size: <kv_tokens> tokens",
    r"Maximum concurrency for <max_model_len> tokens per request: <max_concurrency>x",
    r"Setting attention block size to <attention_block_size> tokens",
    r"Chunked prefill is enabled with max_num_batched_tokens=<max_num_batched_tokens>",
    r"Using max model len <max_model_len>",
    # refusals
    r"exceeds available Mamba cache blocks \(<gpu_blocks>\)",
    r"at least one request with the models?'s max seq len \(<max_model_len>\),? \(?<kv_needed_gib> "
    r"?GiB KV cache is needed",
    r"larger than the available KV cache memory \(<kv_available_gib> ?GiB\)",
    r"estimated maximum model length is <estimated_max_len>",
    r"max seq len \(<max_model_len>\) is larger than the maximum number of tokens that can be stored "
    r"in KV cache "
    r"\(<kv_tokens>\)",
))  # fmt: skip

SGLANG = tuple(_phrase("sglang", says) for says in (
    r"(?i:sglang)[ _](?:server )?(?:version|v)[ =:]{1,3}'?(?P<engine_version>v?\d[\w.+-]{1,40})",
    r"Load weight begin\. avail mem=<avail_mem_before_load_gb> GB",
    r"Load weight end\..{0,400}?avail mem=<avail_mem_after_load_gb> GB",
    r"Load weight end\..{0,400}?mem usage=<weights_gb> GB",
    r"KV Cache is allocated\..{0,80}?#tokens: <tokens>",
    r"KV Cache is allocated\..{0,120}?\bK size: <k_gb> GB, V size: <v_gb> GB",
    r"KV Cache is allocated\..{0,120}?\bKV size: <kv_gb> GB",
    r"Mamba Cache is allocated\..{0,80}?max_mamba_cache_size: <mamba_cache_size>",
    r"conv_state size: <conv_gb> ?GB",
    r"ssm_state size: <ssm_gb> ?GB",
    r"max_total_num_tokens=<tokens>",
    r"max_running_requests=<max_running_requests>\b",
    r"context_len=<context_len>\b",
    r"Memory pool end\. avail mem=<pool_end_avail_gb> GB",
    r"Capture (?:cuda )?graph end\..{0,80}?mem usage=<graph_gb> GB",
))  # fmt: skip

LLAMA = tuple(_phrase("llama.cpp", says) for says in (
    r"\bbuild(?:_info)?\s?[:=]\s+(?P<engine_version>b?\d{3,6})\b",
    r"KV self size\s+=\s+<kv_mib> MiB",
    r"KV self size .{0,80}?K \((?P<k_type>\w+)\):\s+<k_mib> MiB, V \((?P<v_type>\w+)\):\s+<v_mib> MiB",
    r"\bn_ctx\s+=\s+<n_ctx>$",
    r"\bn_ctx_per_seq\s+=\s+<n_ctx_per_seq>$",
    r"\bn_seq_max\s+=\s+<n_seq_max>$",
    r"\bn_batch\s+=\s+<n_batch>$",
    r"\bn_ubatch\s+=\s+<n_ubatch>$",
    r"\bflash_attn\s+=\s+(?P<flash_attn>\w+)$",
    r"\bkv_unified\s+=\s+(?P<kv_unified>true|false)$",
    r"kv_size = <cells>,",
    r"type_k = '(?P<k_type>\w+)', type_v = '(?P<v_type>\w+)'",
    r"(?:file|model) size\s+=\s+(?P<hparams__model_size>[\d.]{3,12} [GM]iB \([\d.]{3,9} BPW\))",
    r"(?:file|model f)type\s+=\s+(?P<quant>[\w .-]{1,40}?)$",
    r"file type\s+=\s+(?P<quant>[\w .-]{1,40}?)$",
    r"offloaded <ngl>/<n_layer_all> layers to GPU",
    r"general\.name\s+(?:str\s+)?=\s+(?P<model>[\w .:/-]{1,80})$",
    r'memory\.required\.full="<extra__planned_gib> GiB"',
    r'memory\.required\.kv="<extra__planned_kv_gib> GiB"',
    r"loading model '?(?P<file>[\w ./:\\-]{1,200}\.gguf)",
    r"loaded meta data with .{0,60}? from (?P<file>[\w ./:\\-]{1,200}?)(?: \(|$)",
))  # fmt: skip

TRTLLM = tuple(_phrase("tensorrt-llm", says) for says in (
    r"TensorRT-LLM version:? (?P<engine_version>v?\d[\w.+-]{1,40})",
    r"Allocated <kv_gib> GiB for max tokens in paged KV cache \(<tokens>\)",
    r"Number of tokens per block: <tokens_per_block>",
    r"Number of blocks in KV cache primary pool: <blocks>",
    r"calculating max tokens in paged kv cache: total: <extra__total_gib> GiB, available: "
    r"<extra__available_gib> GiB",
    r"Max KV cache (?:pages|blocks) per sequence: <extra__max_pages_per_seq>",
    r"[Ll]oaded engine size: <engine_size_mib> MiB",
))  # fmt: skip

PHRASES = (*VLLM, *SGLANG, *LLAMA, *TRTLLM)

#: Lines of llama.cpp that bring several figures, some by device; read by ``llamacpp_lines``.
LLAMA_CACHE = _sizes(
    r"size\s+=\s+<mib> MiB \(\s*(?P<cells>\d{1,12}) cells,\s+(?P<layers>\d{1,6}) layers,"
    r"\s+(?P<seqs>\d{1,6})(?:/\s*(?P<streams>\d{1,6}))? seqs?\s*\)"
    r"(?:,\s+K \((?P<k_type>\w+)\):\s+<k_mib> MiB,\s+V "
    r"\((?P<v_type>\w+)\):\s+<v_mib> MiB)?"
    r"(?:,\s+R \(\w+\):\s+<r_mib> MiB,\s+S \(\w+\):\s+<s_mib> MiB)?"
)
LLAMA_BUFFER = _sizes(
    r"(?P<device>[A-Za-z][\w-]{0,30})\s+(?P<kind>model|KV|RS|compute|output) buffer "
    r"size\s+=\s+<mib> MiB"
)
#: Ollama's own engine names what it allocates by device, in units that differ from line to line.
OLLAMA_BUFFER = _sizes(
    r'msg="(?P<kind>model weights|kv cache|compute graph)" device="?(?P<device>[A-Za-z][\w-]{0,30})"? '
    r'size="<size> (?P<unit>GiB|MiB|KiB|B)"'
)
LLAMA_KV = re.compile(
    r"- kv\s+\d{1,4}:\s+(?P<key>[\w.-]{3,80})\s+(?P<type>u8|u16|u32|u64|i8|i16|i32|i64|f32|f64|bool|"
    r"str|arr\[\w+,\d+\])"
    r"\s+=\s+(?P<value>.{0,400})$"
)
LLAMA_INFO = re.compile(
    r"(?:print_info|llm_load_print_meta):\s+(?P<key>arch|n_layer|n_head|n_head_kv|n_embd|n_embd_head_k|n_embd_head_v|n_swa"
    r"|n_ctx_train|n_vocab|n_expert|n_expert_used|n_ff|ssm_d_conv|ssm_d_inner|ssm_d_state|ssm_n_group|ssm_dt_rank)"
    r"\s+=\s+(?P<value>[\w\[\], ]{1,2000})$"
)
LLAMA_BREAKDOWN = re.compile(
    r"memory_breakdown_print: \|\s+- (?P<device>[A-Za-z]\w{0,30})\b.{0,80}?\|.{0,60}?"
    r"(?P<model>\d{1,9}) \+\s+(?P<context>\d{1,9}) \+\s+(?P<compute>\d{1,9})\b"
)
LLAMA_POOLS = re.compile(r"creating +(?P<kind>non-SWA|SWA|indexer|SWA-only)? ?KV cache", re.I)

#: The first line that an engine prints: what follows belongs to another start.
BANNER = re.compile(
    r"vLLM API server version v?\d|^(?:main: |system_info: )?build(?:_info)?\s?[:=]\s+b?\d{3,6}\b"
)
#: Names that functions of llama.cpp had for a while, with a build of that time.
LLAMA_ERAS = (
    (re.compile(r"\bllm_load_(?:print_meta|tensors): |\bllama_new_context_with_model: "), "b4400"),
    (re.compile(r"\bllama_kv_cache_unified(?:_iswa)?: .{0,80}\b\d+/ ?\d+ seqs"), "b6500"),
    (re.compile(r"\bllama_kv_cache_unified_iswa: "), "b5500"),
)

#: What a failure says -> its code.
FAILURES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("pool_too_small", re.compile(r"KV cache is needed, which is larger than the available KV cache memory")),
    (
        "pool_too_small",
        re.compile(r"is larger than the maximum number of tokens that can be stored in KV cache"),
    ),
    ("no_pool", re.compile(r"No available memory for the cache blocks")),
    (
        "share_not_free",
        re.compile(r"Free memory on device .{0,80}is less than desired GPU memory utilization"),
    ),
    ("no_pool", re.compile(r"Not enough memory\. Please try to increase --mem-fraction-static")),
    ("sequences_exceed_blocks", re.compile(r"max_num_seqs .{0,80}exceeds available Mamba cache blocks")),
    ("out_of_memory", re.compile(r"CUDA out of memory|HIP out of memory|cudaMalloc failed: out of memory")),
    ("out_of_memory", re.compile(r"model requires more system memory")),
    (
        "out_of_memory",
        re.compile(r"failed to allocate (?:\w+ ){0,2}buffer|unable to allocate \w+ buffer|OutOfDeviceMemory"),
    ),
    ("out_of_memory", re.compile(r"Device memory allocation of size \d+ failed|[Ii]nsufficient [Mm]emory")),
)
TRIED = _sizes(
    r"[Tt]ried to allocate <size> (?P<unit>GiB|MiB)|allocating <mib> "
    r"MiB on device"
)

#: Words of lines that are looked at; nearly all lines of a long log have none.
WANTED = re.compile(
    rb"version|oncurrency for|engine \(|odel loading|odel weights|oading model|meta data|model=|model "
    rb"size|ftype"
    rb"|file type|file size|general\.name|GiB|KV Cache is|KV cache size|KV self|KV cache,|KV cache "
    rb"primary|kv_cache_size"
    rb"|avail mem|max_total_num_tokens|Mamba|mamba page|attention block size|n_ctx|n_seq_max|n_batch|"
    rb"n_ubatch|flash_attn"
    rb"|kv_unified|kv_size|type_k|buffer size|buffer type|cells,|- kv |print_info|print_meta|build|"
    rb"blocks|tokens per block"
    rb"|pages per sequence|engine size|out of memory|allocate|allocating|Namespace\(|ServerArgs\(|"
    rb"non-default args"
    rb"|offloaded|No available memory|Not enough memory|prefill is enabled|max model len|vllm serve|"
    rb"vllm\.entrypoints"
    rb"|launch_server|llama-server|llama-cli|llama_server|trtllm-serve|ollama runner|seq len|memory_breakdown"
    rb"|llm_load_tensors|llama_new_context|kv_cache_unified|OutOfDevice|Device memory|nsufficient "
    rb"|memory\.required|kv cache|compute graph|system memory|Free memory on"
)

LOOKED_FOR = (
    "vLLM's 'GPU KV cache size' or '# GPU blocks', SGLang's 'KV Cache is allocated', llama.cpp's "
    "'KV buffer size' "
    "or 'cells', TensorRT-LLM's 'max tokens in paged KV cache'"
)
#: What a failure means, by code.
FAILED = {
    "pool_too_small": "one request of the longest length does not fit the pool",
    "share_not_free": "less of the device is free at the start than the share that is asked for",
    "no_pool": "nothing is left for a pool once weights and the profiling pass are taken off",
    "sequences_exceed_blocks": "more sequences are allowed than there are pages of state",
    "out_of_memory": "an allocation was refused by the device",
}
