"""Files that start a plan elsewhere: Kubernetes objects by their published fields, scripts by running them."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import kvgauge
from kvgauge.emit import Job, emit, job_of, render_files, systems_of
from kvgauge.emit.jobs import systems_table
from kvgauge.emit.writing import parse_target
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError

FIELDS = json.loads((Path(__file__).parent / "golden/kubernetes_fields.json").read_text(encoding="utf-8"))
ROOTS = {
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): "LeaderWorkerSet",
    ("v1", "Service"): "V1Service",
    ("serving.kserve.io/v1beta1", "InferenceService"): "V1beta1InferenceService",
}
PLAIN = {"str": str, "int": int, "bool": bool, "object": (str, int)}


def check(value, kind, where):
    """Hold a value against a type of the published schemas, field by field; what is not known is an error."""
    if isinstance(kind, list):
        assert value in kind, where
    elif kind in PLAIN:
        assert isinstance(value, PLAIN[kind]), where
        assert not (kind == "int" and isinstance(value, bool)), where
    elif match := re.fullmatch(r"list\[(.+)\]", kind):
        assert isinstance(value, list), where
        for number, item in enumerate(value):
            check(item, match[1], f"{where}[{number}]")
    elif match := re.fullmatch(r"dict\(str, (.+)\)", kind):
        for key, item in value.items():
            assert isinstance(key, str)
            check(item, match[1] if match[1] in PLAIN else "str", f"{where}.{key}")
    else:
        fields = FIELDS["classes"][kind]
        assert set(value) <= set(fields), f"{where}: {set(value) - set(fields)}"
        assert set(FIELDS["required"].get(kind, ())) <= set(value), where
        for key, item in value.items():
            check(item, fields[key], f"{where}.{key}")


def job(engine="vllm", num_gpus=16, per_machine=8, model="deepseek-ai/DeepSeek-V3", **options):
    result = kvgauge.fit(model, gpu="H200", num_gpus=num_gpus, engine=engine, context="32k", **options)
    return job_of(result, gpus_per_machine=per_machine)


JOBS = {
    "one": lambda: job(num_gpus=8),
    "two": lambda: job(tp=8, pp=2),
    "three": lambda: job(num_gpus=12, per_machine=4, tp=4, pp=3, model="meta-llama/Llama-3.1-70B-Instruct"),
    "replicas": lambda: job(tp=8, dp=2),
    "sglang": lambda: job(engine="sglang", num_gpus=16, tp=16),
    "sglang one": lambda: job(engine="sglang", num_gpus=8),
    "llama.cpp": lambda: job(engine="llama.cpp", num_gpus=3, per_machine=1, model="Qwen/Qwen3-32B"),
}


@pytest.fixture(params=JOBS)
def made(request):
    return JOBS[request.param]()


def test_objects_have_published_fields(made):
    for name, text in files(made).items():
        if not name.endswith(".yaml"):
            continue
        objects = list(yaml.safe_load_all(text))
        assert objects
        for found in objects:
            check(found, ROOTS[found["apiVersion"], found["kind"]], found["kind"])


def files(made):
    """Return the files that the engine's systems can write of a job."""
    texts = {}
    for system in systems_of(made.engine):
        try:
            texts |= render_files(made, (system,))
        except FeatureUnsupportedError:
            assert system == "kserve"
            assert made.data > 1
    return texts


def test_the_check_sees_a_wrong_field():
    good = yaml.safe_load(render_files(JOBS["one"](), ("kserve",))["kserve.yaml"])
    for bad in (
        {**good, "spce": {}},
        {**good, "spec": {"predictor": {"model": {"modelFormat": {"nom": "x"}}}}},
        {**good, "spec": {"predictor": {"model": {"modelFormat": {"name": "x"}, "args": "--a"}}}},
        {**good, "spec": {}},
    ):
        with pytest.raises(AssertionError):
            check(bad, "V1beta1InferenceService", "bad")


def test_gpus_and_ranks_are_those_of_the_plan():
    made = JOBS["three"]()
    assert (made.num_machines, made.gpus_per_machine, made.num_gpus) == (3, 4, 12)
    group, service = yaml.safe_load_all(render_files(made, ("leaderworkerset",))["leaderworkerset.yaml"])
    template = group["spec"]["leaderWorkerTemplate"]
    assert template["size"] == 3
    for pod in ("leaderTemplate", "workerTemplate"):
        (container,) = template[pod]["spec"]["containers"]
        assert container["resources"]["limits"] == {"nvidia.com/gpu": "4"}
    leader = template["leaderTemplate"]["spec"]["containers"][0]["command"][2]
    assert "--tensor-parallel-size 4 --pipeline-parallel-size 3" in leader
    assert "-ge 12" in leader
    assert service["spec"]["selector"]["leaderworkerset.sigs.k8s.io/name"] == group["metadata"]["name"]
    (kserve,) = yaml.safe_load_all(render_files(made, ("kserve",))["kserve.yaml"])
    worker = kserve["spec"]["predictor"]["workerSpec"]
    assert (worker["tensorParallelSize"], worker["pipelineParallelSize"]) == (4, 3)
    args = kserve["spec"]["predictor"]["model"]["args"]
    assert not any("parallel" in word for word in args)
    assert args[args.index("--max-model-len") + 1] == "32768"


def test_what_no_hub_has_is_read_from_a_volume(tmp_path):
    """A folder's own config, and weights that one quantises, are on no hub under that name."""
    config = kvgauge.load("Qwen/Qwen3-8B", offline=True).raw.config
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(dict(config)), encoding="utf-8")
    words = {"engine": "vllm", "gpu": "H100:2", "context": 4096}
    for answer in (
        kvgauge.fit(str(folder), **words),
        kvgauge.fit("Qwen/Qwen3-8B", weights="fp8", **words),
    ):
        made = job_of(answer)
        text = render_files(made, ("kserve",))["kserve.yaml"]
        assert yaml.safe_load(text)["spec"]["predictor"]["model"]["storageUri"] == f"pvc://{made.name}/hf"
        assert "volume of this name" in text
    hub = render_files(job_of(kvgauge.fit("Qwen/Qwen3-8B", **words)), ("kserve",))["kserve.yaml"]
    assert "hf://Qwen/Qwen3-8B" in hub
    assert "volume" not in hub


STUB = """#!/usr/bin/env bash
printf '%s\\n' "$(basename "$0") $*" >> "$RECORD"
if [ "$(basename "$0")" = python3 ]; then echo "$GPUS"; fi
"""


def run(tmp_path, script, *words, gpus=64, **env):
    """Run a script with every command that it starts replaced by one that writes itself down."""
    stubs = tmp_path / "bin"
    stubs.mkdir(exist_ok=True)
    for name in ("ray", "vllm", "python", "python3", "llama-server", "ggml-rpc-server", "sleep"):
        stub = stubs / name
        stub.write_text(STUB, encoding="utf-8")
        stub.chmod(0o755)
    record = tmp_path / "record"
    record.write_text("", encoding="utf-8")
    path = f"{stubs}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", script, *words], capture_output=True, encoding="utf-8", timeout=20, check=False,
        env={"PATH": path, "RECORD": str(record), "GPUS": str(gpus), **env},
    )  # fmt: skip
    return done, record.read_text(encoding="utf-8").splitlines()


def written(tmp_path, made, system):
    (found,) = emit(made, f"{system}={tmp_path / 'out'}")
    return found.path


def test_ray_starts_a_head_then_the_engine(tmp_path):
    script = written(tmp_path, JOBS["two"](), "ray")
    done, calls = run(tmp_path, script, "head")
    assert done.returncode == 0, done.stderr
    assert calls[0] == "ray start --head --port=6379"
    assert calls[1].startswith("python3 -c import ray")
    assert calls[2].startswith("vllm serve deepseek-ai/DeepSeek-V3 ")
    assert "--tensor-parallel-size 8 --pipeline-parallel-size 2" in calls[2]
    assert calls[2].endswith("--distributed-executor-backend ray")


def test_ray_workers_join_the_head(tmp_path):
    script = written(tmp_path, JOBS["two"](), "ray")
    done, calls = run(tmp_path, script, "worker", "10.0.0.7")
    assert (done.returncode, calls) == (0, ["ray start --address=10.0.0.7:6379 --block"])
    done, calls = run(tmp_path, script, "worker")
    assert done.returncode != 0
    assert "HEAD_ADDRESS is missing" in done.stderr
    assert not calls
    assert run(tmp_path, script)[0].returncode == 2


def test_replicas_over_machines_go_through_ray(tmp_path):
    _, calls = run(tmp_path, written(tmp_path, JOBS["replicas"](), "ray"), "head")
    assert "--data-parallel-size 2" in calls[2]
    assert calls[2].endswith("--distributed-executor-backend ray --data-parallel-backend ray")


def test_one_machine_starts_the_engine_alone(tmp_path):
    made = JOBS["one"]()
    _, calls = run(tmp_path, written(tmp_path, made, "ray"))
    assert calls == [shlex.join(made.words)]


def test_sglang_is_told_its_number(tmp_path):
    script = written(tmp_path, JOBS["sglang"](), "sglang")
    _, (call,) = run(tmp_path, script, "1", "10.0.0.7")
    assert call.startswith("python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 ")
    assert call.endswith("--tp-size 16 --nnodes 2 --node-rank 1 --dist-init-addr 10.0.0.7:20000")


def test_llama_cpp_names_the_others(tmp_path):
    script = written(tmp_path, JOBS["llama.cpp"](), "llama-rpc")
    assert run(tmp_path, script, "worker")[1] == ["ggml-rpc-server --host 0.0.0.0 --port 50052"]
    _, (call,) = run(tmp_path, script, "main", "a", "b")
    assert call.startswith("llama-server ")
    assert call.endswith("--rpc a:50052,b:50052")
    done, calls = run(tmp_path, script, "main", "a")
    assert (done.returncode, calls) == (2, [])


def test_files_are_written_once(tmp_path):
    made = JOBS["two"]()
    found = emit(made, str(tmp_path / "plan"))
    assert {one.system for one in found} == set(systems_of("vllm"))
    before = {one.path: one.path.read_bytes() for one in found}
    assert (tmp_path / "plan/ray.sh").stat().st_mode & stat.S_IXUSR
    with pytest.raises(InvalidRequestError, match="is there already"):
        emit(made, str(tmp_path / "plan"))
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(path.name for path in (tmp_path / "plan").iterdir()) == sorted(p.name for p in before)


def test_nothing_is_left_of_a_failure(tmp_path, monkeypatch):
    made = JOBS["two"]()
    real = os.open

    def full(path, *rest):
        if str(path).endswith("kserve.yaml"):
            raise OSError(28, "No space left on device")
        return real(path, *rest)

    monkeypatch.setattr("kvgauge.emit.writing.os.open", full)
    with pytest.raises(InvalidRequestError, match="No space left"):
        emit(made, str(tmp_path / "plan"))
    assert not list((tmp_path / "plan").iterdir())


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("ray", "names no folder"),
        ("ray=", "names no folder"),
        ("sglang=out", "does not start vllm"),
        ("rya=out", "no system rya"),
        ("ray,kubernets=out", "no system kubernets"),
        ("/dev/null/out", "can't write"),
    ],
)
def test_wrong_targets_are_said(target, text):
    with pytest.raises(InvalidRequestError, match=text):
        emit(JOBS["one"](), target)


@given(st.text(max_size=30))
def test_any_target_is_read_or_refused(text):
    try:
        systems, _ = parse_target(text, systems_of("vllm"))
    except InvalidRequestError:
        return
    assert set(systems) <= set(systems_table()["systems"])


@given(st.text(max_size=80), st.lists(st.text(max_size=20), max_size=4))
def test_hostile_names_stay_data(model, words):
    made = Job(model, "vllm", "0.33.0", ("vllm", "serve", model, *words), 8, 2, 1, 8, 2, "nvidia.com/gpu")
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,50}", made.name)
    texts = render_files(made)
    for found in yaml.safe_load_all(texts["leaderworkerset.yaml"]):
        check(found, ROOTS[found["apiVersion"], found["kind"]], found["kind"])
    assert subprocess.run(["bash", "-n"], input=texts["ray.sh"].encode(), check=False).returncode == 0


def test_a_name_can_start_nothing(tmp_path):
    hostile = "a/b'; touch pwned #\n$(touch pwned)"
    made = Job(hostile, "vllm", "0.33.0", ("vllm", "serve", hostile), 8, 2, 1, 8, 2, "nvidia.com/gpu")
    script = written(tmp_path, made, "ray")
    _, calls = run(tmp_path, script, "worker", "h")
    assert calls == ["ray start --address=h:6379 --block"]
    assert not list(tmp_path.rglob("pwned"))


def test_a_count_that_leaves_a_machine_part_empty_is_refused():
    result = kvgauge.fit("meta-llama/Llama-3.1-70B-Instruct", gpu="H200:12", tp=4, pp=3)
    with pytest.raises(InvalidRequestError, match="do not fill machines of 8"):
        job_of(result)
    with pytest.raises(InvalidRequestError, match="no count of GPUs"):
        job_of(result, gpus_per_machine=0)


def test_engines_without_a_system_are_refused():
    result = kvgauge.fit("Qwen/Qwen3-8B", gpu="H200", engine="tensorrt-llm")
    with pytest.raises(FeatureUnsupportedError, match="no files can be written for tensorrt-llm"):
        job_of(result)
