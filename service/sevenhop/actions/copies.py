"""
Copies of our mark that a Deployment's controller makes.

It copies the Deployment's annotations to the ReplicaSet and never takes one away there
(pkg/controller/deployment/util/deployment_util.go, `copyDeploymentAnnotationsToReplicaSet`), and `kubectl rollout undo`
copies them back: a mark from an old loan would come to life again.
"""

from __future__ import annotations

from sevenhop.actions._writer import Writer
from sevenhop.actions.errors import GoneError, RefusedError
from sevenhop.actions.marks import annotations_of, borrow_of, pointer
from sevenhop.actions.pointers import Data, Operation, operations
from sevenhop.core.effects import Borrow
from sevenhop.core.remediation.action import Edit, ObjectRef
from sevenhop.core.remediation.borrowed import BORROWED

DEPLOYMENT, REPLICA_SET = "Deployment.apps", "ReplicaSet.apps"


async def sweep(writer: Writer, marked: ObjectRef, plan: str) -> None:
    """
    Take a plan's mark off the ReplicaSets of a Deployment that carries it no longer; nothing to do for other kinds.

    That it is refused is no harm now, so it does not make the step fail.
    """
    if marked.kind != DEPLOYMENT:
        return
    try:
        owned = [data for data in await writer.read_all(REPLICA_SET, marked.namespace) if _is_owned(data, marked)]
        for data in owned:
            if _says(data, plan):
                meta = data["metadata"]
                ref = ObjectRef(REPLICA_SET, marked.namespace, meta["name"], meta["uid"])
                await writer.patch_as_it_is(ref, lambda live: _without(live, plan))
    except (GoneError, RefusedError):
        return


def _is_owned(data: Data, owner: ObjectRef) -> bool:
    references = data["metadata"].get("ownerReferences") or ()
    return any(
        r.get("controller") and owner.uid in ("", r.get("uid")) and r.get("name") == owner.name for r in references
    )


def _says(data: Data, plan: str) -> bool:
    borrow = borrow_of(data)
    return isinstance(borrow, Borrow) and borrow.plan == plan


def _without(live: Data, plan: str) -> list[Operation]:
    if not _says(live, plan):
        return []
    return operations(live, [Edit(pointer(BORROWED), annotations_of(live)[BORROWED], None)])
