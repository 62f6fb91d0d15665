"""Custom resource definitions: the frameworks' own, from a folder that is not part of the repository.

They are put into etcd before kube-apiserver starts, in the form it would have stored them in. Asking it
to install sixty of them costs 16 s and a gigabyte, since it renders its whole OpenAPI anew after each.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import time
import urllib.request
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.testbed.binaries import cache_folder
from tests.testbed.client import ApiError, Client, Object
from tests.testbed.waiting import eventually

_REPOSITORY = Path(__file__).parents[2]
_OWN = Path(__file__).parent / "crds"
_API = "apiextensions.k8s.io/customresourcedefinitions"
NOT_SHARED = "the frameworks' own CRDs are not here (SEVENHOP_SHARED): a minimal DynamoGraphDeployment of ours"
_ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
_UNCHECKED = {
    "affinity",
    "ephemeralContainers",
    "initContainers",
    "lifecycle",
    "livenessProbe",
    "readinessProbe",
    "securityContext",
    "startupProbe",
    "topologySpreadConstraints",
    "volumeClaimTemplates",
    "volumes",
}
_RAY_OPERATOR = ("rayclusters.ray.io", "rayjobs.ray.io", "rayservices.ray.io")


def shared_folder() -> Path | None:
    """The folder with the frameworks' CRDs (SEVENHOP_SHARED, else beside the repository), if any."""
    shared = Path(os.environ.get("SEVENHOP_SHARED") or _REPOSITORY.parent / "shared")
    folder = shared / "data" / "crds"
    return folder if folder.is_dir() else None


def frameworks_crds(
    frameworks: Collection[str] | None = None,
    *,
    serve_only: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Object]:
    """
    Return the CRDs of frameworks, slimmed (`_slim`).

    Without the shared folder these are minimal ones of our own, which accept anything.

    Args:
        frameworks: Folder names below `data/crds` (``dynamo``, ``kserve``); None for all.
        serve_only: Group to the one version to keep, as older operators have it
            (``{"nvidia.com": "v1alpha1"}``).
    """
    folder = shared_folder()
    if folder is None:
        say(NOT_SHARED)
        found = _load(_OWN.glob("*.yaml"))
    else:
        names = frameworks if frameworks is not None else [path.name for path in folder.iterdir()]
        found = _load(path for name in names for path in (folder / name).glob("*.yaml"))
    for crd in found:
        version = (serve_only or {}).get(crd["spec"]["group"])
        if version is not None:
            _keep_version(crd["spec"], version)
    return found


def operator_crds(folder: Path, others: Iterable[Object]) -> list[Object]:
    """Return `others` with the KubeRay CRDs replaced by those that came with the operator."""
    kept = [crd for crd in others if crd["metadata"]["name"] not in _RAY_OPERATOR]
    return kept + _load(folder.glob("*.yaml"))


def preload(etcd: str, crds: Iterable[Object]) -> None:
    """Write CRDs into a fresh etcd at this URL, as established; kube-apiserver must not run yet."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for crd in crds:
        names = crd["spec"]["names"]
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
        metadata = {
            "uid": str(uuid.uuid4()),
            "generation": 1,
            "creationTimestamp": now,
        }
        status = {
            "acceptedNames": names,
            "storedVersions": [v["name"] for v in crd["spec"]["versions"] if v["storage"]],
            "conditions": [
                _true("NamesAccepted", "NoConflicts", now),
                _true("Established", "InitialNamesAccepted", now),
            ],
        }
        stored = crd | {"metadata": crd["metadata"] | metadata, "status": status}
        _put(etcd, f"/registry/{_API}/{crd['metadata']['name']}", stored)


def install_folder(client: Client, folder: Path) -> set[str]:
    """Install every CRD of a folder into a running cluster and wait until they are served."""
    installed = set()
    for crd in _load(folder.rglob("*.yaml")):
        name = crd["metadata"]["name"]
        # By server-side apply: the largest do not fit into the annotation of the older way.
        path = f"/apis/{_API.replace('/', '/v1/')}/{name}?fieldManager=testbed&force=true"
        status, answer = client.request("PATCH", path, json.dumps(crd).encode(), "application/apply-patch+yaml")
        if status >= 400:
            raise ApiError(status, answer)
        installed.add(name)
    eventually(lambda: installed <= _served(client), what="serving the CRDs", timeout=60)
    return installed


def _load(paths: Iterable[Path]) -> list[Object]:
    """Parse CRDs, taking the full one where there are several spellings; kept, as that takes 6 s."""
    # A prefix before the group's name (minimal-, v1.5.0-) marks a second spelling.
    files = sorted(paths, key=lambda path: (bool(re.match(r"minimal-|v\d", path.name)), str(path)))
    digest = hashlib.sha256(b"2")  # raise when what is kept of a CRD changes
    for path in files:
        digest.update(path.read_bytes())
    kept = cache_folder() / f"crds-{digest.hexdigest()[:12]}.json"
    if not kept.exists():
        found: dict[str, Object] = {}
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for path in files:
            crd = _slim(yaml.load(path.read_text(), Loader=loader))  # a safe loader
            found.setdefault(crd["metadata"]["name"], crd)
        kept.parent.mkdir(parents=True, exist_ok=True)
        scratch = kept.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(list(found.values())))
        scratch.rename(kept)
    loaded: list[Object] = json.loads(kept.read_text())
    return loaded


def _slim(node: Any) -> Any:
    """
    Return a schema without descriptions and without the depths of pod templates.

    Of 29 MB 2 are left, and kube-apiserver takes 0.7 GB instead of 1.5 and does not keep the first
    custom resource waiting for 8 s. What it no longer checks is `_UNCHECKED`, in custom resources only.
    """
    if isinstance(node, list):
        return [_slim(item) for item in node]
    if not isinstance(node, dict):
        return node
    slim = {}
    for key, value in node.items():
        if key == "description" and isinstance(value, str):
            continue  # a property that is itself called description is a dict
        if key == "properties" and isinstance(value, dict):
            slim[key] = {k: _ANYTHING if k in _UNCHECKED else _slim(v) for k, v in value.items()}
        else:
            slim[key] = _slim(value)
    return slim


def _keep_version(spec: Object, version: str) -> None:
    kept = [v for v in spec["versions"] if v["name"] == version]
    if kept:  # a kind that never had this version stays as it is
        spec["versions"] = [kept[0] | {"served": True, "storage": True}]
        spec.pop("conversion", None)


def _put(etcd: str, key: str, value: Object) -> None:
    encoded = [base64.b64encode(raw).decode() for raw in (key.encode(), json.dumps(value).encode())]
    body = json.dumps(dict(zip(("key", "value"), encoded, strict=True))).encode()
    with urllib.request.urlopen(f"{etcd}/v3/kv/put", body, timeout=30) as answer:
        answer.read()


def _true(kind: str, reason: str, now: str) -> Object:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": "put in place by the test bed",
        "lastTransitionTime": now,
    }


def _served(client: Client) -> set[str]:
    # Aggregated discovery: a list of the CRDs themselves would be megabytes a look.
    wanted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    _, text = client.request("GET", "/apis", accept=wanted)
    return {
        f"{resource['resource']}.{group['metadata']['name']}"
        for group in json.loads(text)["items"]
        for version in group["versions"]
        for resource in version.get("resources", [])
    }
