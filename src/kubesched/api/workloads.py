"""Objects that select pods: services and pod owners."""

from __future__ import annotations

from kubesched.api.meta import ApiStruct, LabelSelector, ObjectMeta


class PlainSelectorSpec(ApiStruct, frozen=True):
    """A spec that selects by equality, as services and replication controllers do."""

    selector: dict[str, str] | None = None


class Service(ApiStruct, frozen=True):
    """A service."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PlainSelectorSpec = PlainSelectorSpec()


class ReplicationController(ApiStruct, frozen=True):
    """A replication controller."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PlainSelectorSpec = PlainSelectorSpec()


class SelectorSpec(ApiStruct, frozen=True):
    """A spec with a label selector."""

    selector: LabelSelector | None = None


class ReplicaSet(ApiStruct, frozen=True):
    """A replica set."""

    metadata: ObjectMeta = ObjectMeta()
    spec: SelectorSpec = SelectorSpec()


class StatefulSet(ApiStruct, frozen=True):
    """A stateful set."""

    metadata: ObjectMeta = ObjectMeta()
    spec: SelectorSpec = SelectorSpec()
