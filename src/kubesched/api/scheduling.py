"""Priority classes: priorities by name."""

from __future__ import annotations

from kubesched.api.meta import ApiStruct, ObjectMeta


class PriorityClass(ApiStruct, frozen=True):
    """A priority by name: what admission writes into pods that are not created yet."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""
