"""Shell scripts that start a job on machines: one script, run on each with its role."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from kvgauge.launching import DIST_PORT, RAY_PORT, ray_flags

if TYPE_CHECKING:
    from kvgauge.emit.jobs import Job

RPC_PORT = 50052


def with_ray(job: Job) -> str:
    """Return the launch line of vLLM with Ray named as what joins machines, where there are several."""
    words = list(job.words)
    if job.num_machines > 1:
        words += ray_flags(job.words, job.data)
    return shlex.join(words)


def wait_for_gpus(num_gpus: int) -> str:
    """Return the lines that wait until Ray has the GPUs of all machines."""
    count = (
        'python3 -c \'import ray; ray.init(address="auto", logging_level="ERROR"); '
        'print(int(ray.cluster_resources().get("GPU", 0)))\''
    )
    return f'until [ "$({count})" -ge {num_gpus} ]; do sleep 5; done'


def _header(job: Job, roles: tuple[str, ...]) -> str:
    lines = [
        "#!/usr/bin/env bash",
        f"# {job.title}",
        *(f"#   {role}" for role in roles),
        "set -euo pipefail",
    ]
    return "\n".join(lines) + "\n"


def ray_script(job: Job) -> str:
    """Return a script for vLLM on Ray: ``head`` on one machine, ``worker HEAD`` on the others."""
    if job.num_machines == 1:
        return f"{_header(job, ())}exec {job.launch}\n"
    roles = (
        "./ray.sh head                  on the first machine",
        "./ray.sh worker HEAD_ADDRESS   on each of the others",
    )
    return (
        _header(job, roles)
        + f"""port="${{RAY_PORT:-{RAY_PORT}}}"
case "${{1:-}}" in
  head)
    ray start --head --port="$port"
    {wait_for_gpus(job.num_gpus)}
    exec {with_ray(job)}
    ;;
  worker)
    exec ray start --address="${{2:?HEAD_ADDRESS is missing}}:$port" --block
    ;;
  *)
    echo "usage: $0 head | worker HEAD_ADDRESS" >&2
    exit 2
    ;;
esac
"""
    )


def sglang_script(job: Job) -> str:
    """Return a script for SGLang: one command on each machine, with its number and the first's address."""
    if job.num_machines == 1:
        return f"{_header(job, ())}exec {job.launch}\n"
    last = job.num_machines - 1
    return (
        _header(job, (f"./sglang.sh NUMBER FIRST_ADDRESS   on each machine, NUMBER from 0 to {last}",))
        + f"""number="${{1:?NUMBER is missing}}"
first="${{2:?FIRST_ADDRESS is missing}}:${{DIST_PORT:-{DIST_PORT}}}"
exec {job.launch} --nnodes {job.num_machines} --node-rank "$number" --dist-init-addr "$first"
"""
    )


def rpc_script(job: Job) -> str:
    """Return a script for llama.cpp over RPC: ``worker`` on other machines, ``main HOST...`` on one.

    The RPC server has no authentication, which the script says.
    """
    if job.num_machines == 1:
        return f"{_header(job, ())}exec {job.launch}\n"
    roles = (
        "./llama-rpc.sh worker        on each other machine: devices for anyone who can reach the port,",
        "                             so keep it in a network of your own",
        "./llama-rpc.sh main HOST...  on the machine that answers, with the others' addresses",
    )
    others = job.num_machines - 1
    return (
        _header(job, roles)
        + f"""port="${{RPC_PORT:-{RPC_PORT}}}"
case "${{1:-}}" in
  worker)
    exec "${{RPC_SERVER:-ggml-rpc-server}}" --host 0.0.0.0 --port "$port"
    ;;
  main)
    shift
    [ "$#" -eq {others} ] || {{ echo "{others} HOST expected, got $#" >&2; exit 2; }}
    servers="$(printf "%s:$port," "$@")"
    exec {job.launch} --rpc "${{servers%,}}"
    ;;
  *)
    echo "usage: $0 worker | main HOST..." >&2
    exit 2
    ;;
esac
"""
    )
