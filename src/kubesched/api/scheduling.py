"""Priority classes: priorities by name."""

from __future__ import annotations

from kubesched.api.meta import ApiStruct, ObjectMeta


class PriorityClass(ApiStruct, frozen=True):
    """A named priority, which admission resolves when a pod is created."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""
