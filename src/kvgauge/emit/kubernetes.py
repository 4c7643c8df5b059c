"""Kubernetes objects of a job: a LeaderWorkerSet with its Service, or an InferenceService of KServe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvgauge.emit.shell import wait_for_gpus, with_ray
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.launching import DIST_PORT, RAY_PORT

if TYPE_CHECKING:
    from kvgauge.emit.jobs import Job

Object = dict[str, Any]

#: Flags of the launch line that KServe sets itself.
KSERVE_OWN = frozenset({"--tensor-parallel-size", "--pipeline-parallel-size"})


def leader_worker_set(job: Job) -> list[Object]:
    """Return a LeaderWorkerSet (``leaderworkerset.x-k8s.io/v1``) of one group, and the Service of its leader.

    The group's pods have ``LWS_LEADER_ADDRESS``, ``LWS_GROUP_SIZE`` and ``LWS_WORKER_INDEX`` set.
    """
    leader, worker = _COMMANDS[job.engine](job)
    template: Object = {
        "size": job.num_machines,
        "restartPolicy": "RecreateGroupOnPodRestart",
        "leaderTemplate": {
            "metadata": {"labels": {"role": "leader"}},
            "spec": _pod(job, leader, serves=True),
        },
        "workerTemplate": {"spec": _pod(job, worker, serves=False)},
    }
    group: Object = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": job.name},
        "spec": {"replicas": 1, "leaderWorkerTemplate": template},
    }
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"{job.name}-leader"},
        "spec": {
            "type": "ClusterIP",
            "selector": {"leaderworkerset.sigs.k8s.io/name": job.name, "role": "leader"},
            "ports": [{"name": "http", "port": job.port, "targetPort": job.port, "protocol": "TCP"}],
        },
    }
    return [group, service]


def _pod(job: Job, command: str, *, serves: bool) -> Object:
    container: Object = {
        "name": job.engine,
        "image": job.image,
        "command": ["bash", "-c", command],
        "env": [
            {
                "name": "HF_TOKEN",
                "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}},
            }
        ],
        "resources": {"limits": {job.resource: str(job.gpus_per_machine)}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - a mount, not a file
    }
    if serves:
        container["ports"] = [{"containerPort": job.port}]
        container["readinessProbe"] = {"tcpSocket": {"port": job.port}, "periodSeconds": 10}
    return {"containers": [container], "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}


def _vllm(job: Job) -> tuple[str, str]:
    bound = f"{with_ray(job)} --host 0.0.0.0 --port {job.port}"
    if job.num_machines == 1:
        return f"exec {bound}", "exit 1"
    leader = f"ray start --head --port={RAY_PORT}\n{wait_for_gpus(job.num_gpus)}\nexec {bound}"
    return leader, f'exec ray start --address="$LWS_LEADER_ADDRESS:{RAY_PORT}" --block'


def _sglang(job: Job) -> tuple[str, str]:
    bound = f"exec {job.launch} --host 0.0.0.0 --port {job.port}"
    joined = (
        f'{bound} --nnodes "$LWS_GROUP_SIZE" --node-rank "$LWS_WORKER_INDEX" '
        f'--dist-init-addr "$LWS_LEADER_ADDRESS:{DIST_PORT}"'
    )
    return (bound, "exit 1") if job.num_machines == 1 else (joined, joined)


_COMMANDS = {"vllm": _vllm, "sglang": _sglang}


def inference_service(job: Job) -> list[Object]:
    """Return an InferenceService (``serving.kserve.io/v1beta1``) on KServe's own vLLM runtime.

    Several machines are its ``workerSpec``, which wants the model on a volume that all of them read.

    Raises:
        FeatureUnsupportedError: data-parallel ranks, which its runtime does not spread over machines.
    """
    if job.num_machines > 1 and job.data > 1:
        raise FeatureUnsupportedError(
            "KServe's runtime spreads tensor and pipeline ranks over machines, no data-parallel ones",
            hint="--emit leaderworkerset=FOLDER",
            field="emit",
        )
    limits = {job.resource: str(job.gpus_per_machine)}
    several = job.num_machines > 1
    model: Object = {
        "modelFormat": {"name": "huggingface"},
        "args": [f"--model_name={job.name}", *_own_flags(job.words, several=several)],
        "storageUri": f"hf://{job.model}" if job.on_hub and not several else f"pvc://{job.name}/hf",
        "resources": {"limits": limits, "requests": limits},
    }
    predictor: Object = {"model": model}
    annotations = {"serving.kserve.io/deploymentMode": "Standard"}
    if several:
        model["runtime"] = "kserve-huggingfaceserver-multinode"
        annotations["serving.kserve.io/autoscalerClass"] = "external"
        predictor["workerSpec"] = {
            "tensorParallelSize": job.tensor,
            "pipelineParallelSize": job.pipeline,
            "containers": [{"name": "worker-container", "resources": {"limits": limits, "requests": limits}}],
        }
    return [
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": job.name, "annotations": annotations},
            "spec": {"predictor": predictor},
        }
    ]


def _own_flags(words: tuple[str, ...], *, several: bool) -> list[str]:
    """Return the flags of ``vllm serve MODEL ...``, less those that KServe states itself."""
    left: list[str] = []
    skips = False
    for word in words[3:]:
        if skips and not word.startswith("--"):
            continue
        skips = several and word in KSERVE_OWN
        if not skips:
            left.append(word)
    return left


def to_yaml(objects: list[Object], comment: str) -> str:
    """Return objects as one YAML stream below a comment."""
    import yaml  # noqa: PLC0415 - only files are written with it

    class Dumper(yaml.SafeDumper):
        """Writes texts of several lines as blocks."""

    Dumper.add_representer(str, _text)
    lines = "".join(f"# {line}\n" for line in comment.splitlines())
    return lines + yaml.dump_all(objects, Dumper=Dumper, sort_keys=False, width=110, allow_unicode=True)


def _text(dumper: Any, text: str) -> Any:  # noqa: ANN401 - PyYAML's own types
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
