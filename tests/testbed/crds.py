"""Custom resource definitions: the frameworks' own, from a folder that is not part of the repository."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.testbed.client import ApiError, Client
from tests.testbed.waiting import eventually

_REPOSITORY = Path(__file__).parents[2]
_OWN = Path(__file__).parent / "crds"
_NAME = re.compile(r"^  name: (\S+)$", re.MULTILINE)
_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def shared_folder() -> Path | None:
    """The folder with the frameworks' CRDs (SEVENHOP_SHARED, else beside the repository), if any."""
    shared = Path(os.environ.get("SEVENHOP_SHARED") or _REPOSITORY.parent / "shared")
    folder = shared / "data" / "crds"
    return folder if folder.is_dir() else None


def install(
    client: Client, *, without_ray: bool = False, say: Callable[[str], None] = lambda _: None
) -> set[str]:
    """
    Install the CRDs of all frameworks, or our minimal ones where the real ones are not there.

    Where a CRD comes in several spellings the full one is taken.

    Args:
        without_ray: Leave out those that the KubeRay operator brings itself.

    Returns:
        Their names, `<plural>.<group>`.
    """
    folder = shared_folder()
    if folder is None:
        say("no shared folder with the frameworks' CRDs (SEVENHOP_SHARED): minimal ones of our own")
        return install_folder(client, _OWN)
    # A prefix before the group's name (minimal-, v1.5.0-) marks a second spelling.
    files = sorted(folder.rglob("*.yaml"), key=lambda path: (bool(_prefixed(path)), str(path)))
    if without_ray:
        theirs = ("ray.io_rayclusters", "ray.io_rayjobs", "ray.io_rayservices")
        files = [path for path in files if path.stem not in theirs]
    return _install(client, files)


def install_folder(client: Client, folder: Path) -> set[str]:
    """Install every CRD of a folder and wait until they are served."""
    return _install(client, sorted(folder.rglob("*.yaml")))


def _prefixed(path: Path) -> bool:
    return re.match(r"minimal-|v\d", path.name) is not None


def _install(client: Client, files: Iterable[Path]) -> set[str]:
    installed: set[str] = set()
    for path in files:
        text = path.read_text()
        found = _NAME.search(text)
        if found is None:
            raise ValueError(f"{path.name} has no name")
        name = found[1]
        if name in installed:
            continue
        # As it is, in YAML: parsing 25 MB of it here would take longer than installing it. By
        # server-side apply, since the largest do not fit into the annotation of the older way.
        status, answer = client.request(
            "PATCH",
            f"{_PATH}/{name}?fieldManager=testbed&force=true",
            text.encode(),
            "application/apply-patch+yaml",
        )
        if status >= 400:
            raise ApiError(status, answer)
        installed.add(name)
    eventually(lambda: installed <= _established(client), what="establishing the CRDs", timeout=60)
    return installed


def _established(client: Client) -> set[str]:
    return {
        crd["metadata"]["name"]
        for crd in client.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        if any(
            condition["type"] == "Established" and condition["status"] == "True"
            for condition in crd.get("status", {}).get("conditions", [])
        )
    }
