"""Write tests/golden/kubernetes_fields.json: fields and types of the objects that ``plan --emit`` writes.

    python tools/kubernetes_fields.py kserve-0.21.0-py3-none-any.whl kubernetes-33.1.0-py2.py3-none-any.whl

The clients' wheels state each class's fields (``openapi_types``) under their names in the API
(``attribute_map``). LeaderWorkerSet has no such client: its few fields are written out below.
"""

from __future__ import annotations

import ast
import json
import sys
import zipfile
from pathlib import Path

TARGET = Path(__file__).parents[1] / "tests/golden/kubernetes_fields.json"

#: Classes that our objects are made of; fields of other classes are not allowed in them.
CLASSES = (
    "V1Service", "V1ServiceSpec", "V1ServicePort", "V1ObjectMeta", "V1PodTemplateSpec", "V1PodSpec",
    "V1Container", "V1ContainerPort", "V1EnvVar", "V1EnvVarSource", "V1SecretKeySelector",
    "V1ResourceRequirements", "V1Probe", "V1TCPSocketAction", "V1Volume", "V1EmptyDirVolumeSource",
    "V1VolumeMount", "V1beta1InferenceService", "V1beta1InferenceServiceSpec", "V1beta1PredictorSpec",
    "V1beta1ModelSpec", "V1beta1ModelFormat", "V1beta1WorkerSpec",
)  # fmt: skip

LEADER_WORKER_SET = {
    "source": "kubernetes-sigs/lws, api/leaderworkerset/v1, 0.7",
    "classes": {
        "LeaderWorkerSet": {
            "apiVersion": "str", "kind": "str", "metadata": "V1ObjectMeta", "spec": "LeaderWorkerSetSpec",
        },
        "LeaderWorkerSetSpec": {
            "replicas": "int", "leaderWorkerTemplate": "LeaderWorkerTemplate",
            "startupPolicy": ["LeaderCreated", "LeaderReady"],
        },
        "LeaderWorkerTemplate": {
            "leaderTemplate": "V1PodTemplateSpec", "workerTemplate": "V1PodTemplateSpec", "size": "int",
            "restartPolicy": ["Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"],
        },
    },
    "required": {"LeaderWorkerSetSpec": ["leaderWorkerTemplate"], "LeaderWorkerTemplate": ["workerTemplate"]},
}  # fmt: skip


def classes_of(wheel: Path) -> dict[str, dict[str, object]]:
    """Return class -> field in the API -> type, of the classes above."""
    found: dict[str, dict[str, object]] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if "/models/" not in name or not name.endswith(".py"):
                continue
            for node in ast.parse(archive.read(name)).body:
                if isinstance(node, ast.ClassDef) and node.name in CLASSES:
                    found[node.name] = _fields(node)
    return found


def _fields(node: ast.ClassDef) -> dict[str, object]:
    tables = {
        target.id: ast.literal_eval(statement.value)
        for statement in node.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name) and target.id in ("openapi_types", "attribute_map")
    }
    return {tables["attribute_map"][own]: kind for own, kind in sorted(tables["openapi_types"].items())}


def main() -> None:
    """Write the table from the wheels that are named."""
    wheels = [Path(word) for word in sys.argv[1:]]
    classes: dict[str, object] = {}
    for wheel in wheels:
        classes |= classes_of(wheel)
    missing = sorted(set(CLASSES) - set(classes))
    if missing:
        sys.exit(f"not in these wheels: {', '.join(missing)}")
    table = {
        "sources": [*("-".join(wheel.name.split("-")[:2]) for wheel in wheels), LEADER_WORKER_SET["source"]],
        "classes": {**dict(sorted(classes.items())), **LEADER_WORKER_SET["classes"]},
        "required": {
            **LEADER_WORKER_SET["required"],
            "V1PodSpec": ["containers"], "V1Container": ["name"],
            "V1beta1InferenceServiceSpec": ["predictor"],
            "V1beta1ModelSpec": ["modelFormat"], "V1beta1ModelFormat": ["name"], "V1ServicePort": ["port"],
            "V1ContainerPort": ["containerPort"], "V1EnvVar": ["name"], "V1Volume": ["name"],
            "V1VolumeMount": ["name", "mountPath"], "V1SecretKeySelector": ["key"],
        },
    }  # fmt: skip
    TARGET.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(classes)} classes -> {TARGET}")


if __name__ == "__main__":
    main()
