"""What a rule looks at, and the words for its place."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Hop(StrEnum):
    """The seven hops that a request depends on, in order."""

    GPU = "gpu"
    DISCOVERY = "discovery"
    SCHEDULING = "scheduling"
    POD = "pod"
    MODEL = "model"
    SERVICE = "service"
    GATEWAY = "gateway"


HOPS: tuple[Hop, ...] = tuple(Hop)


class SubjectKind(StrEnum):
    POOL = "pool"
    NODE = "node"
    GPU = "gpu"
    POD = "pod"
    COMPONENT = "component"
    WORKLOAD = "workload"
    SERVICE = "service"
    ROUTE = "route"
    SOURCE = "source"


class Subject(msgspec.Struct, frozen=True, order=True, gc=False):
    """
    One thing that facts are about, within one cluster.

    `name` is the object's name; of a component ``workload/component``; of a pool the GPU product;
    of a source the kind's name.  `namespace` is empty for what has none.
    """

    kind: SubjectKind
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind}:{place}"

    @classmethod
    def parse(cls, text: str) -> Subject:
        """
        Read what `str` wrote.

        Raises:
            ValueError: Another form, or an unknown kind.

        >>> Subject.parse("component:prod/llama-70b/decode").name
        'llama-70b/decode'
        """
        kind, _, place = text.partition(":")
        if kind not in SubjectKind.__members__.values() or not place:
            kinds = ", ".join(SubjectKind)
            raise ValueError(f"expected KIND:[NAMESPACE/]NAME with KIND one of {kinds}, got {text!r}")
        if kind in (SubjectKind.POOL, SubjectKind.NODE, SubjectKind.GPU, SubjectKind.SOURCE):
            return cls(SubjectKind(kind), "", place)
        namespace, _, name = place.partition("/")
        return cls(SubjectKind(kind), namespace, name)
