"""Keeps a deleted pod group until none of its pods is left, as the protection controller does."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kubesched.embedded.following import follow
from kubesched.embedded.kinds import GROUP_FINALIZER
from kubesched.embedded.resources import BY_KIND, PODS
from kubesched.embedded.store import VersionedStore

JsonObject = dict[str, Any]

POD_GROUPS: Final = BY_KIND["scheduling.k8s.io/v1beta1", "PodGroup"]
_DONE: Final = frozenset({"Succeeded", "Failed"})


class GroupProtection:
    """Lets groups go that are deleted and have no pods."""

    def __init__(self, store: VersionedStore) -> None:
        self._store = store
        #: pod → its group, and the inverse; pods that are over are not counted
        self._group_of: dict[str, str] = {}
        self._members: dict[str, set[str]] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follow(self._store, PODS, self.look_at_pod))
            tasks.create_task(follow(self._store, POD_GROUPS, self.look_at_group))

    def look_at_pod(self, key: str) -> None:
        """Count a pod as a member of its group, or not any more."""
        pod = self._store.get(PODS, key)
        group = "" if pod is None or pod.obj["status"].get("phase") in _DONE else _group(pod.obj)
        before = self._group_of.get(key, "")
        if group == before:
            return
        if before:
            del self._group_of[key]
            self._members[before].discard(key)
            self.look_at_group(before)
        if group:
            self._group_of[key] = group
            self._members.setdefault(group, set()).add(key)

    def look_at_group(self, key: str) -> None:
        """Remove the finalizer of a deleted group without pods."""
        group = self._store.get(POD_GROUPS, key)
        if self._members.get(key) or group is None:
            return
        self._members.pop(key, None)
        meta = dict(group.obj["metadata"])
        finalizers = meta.get("finalizers") or ()
        if not meta.get("deletionTimestamp") or GROUP_FINALIZER not in finalizers:
            return
        meta["finalizers"] = [each for each in finalizers if each != GROUP_FINALIZER]
        if meta["finalizers"]:
            self._store.replace(POD_GROUPS, group, {**group.obj, "metadata": meta})
        else:
            self._store.remove(POD_GROUPS, group)


def _group(pod: JsonObject) -> str:
    """Return the key of a pod's group, "" if it has none."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return f"{pod['metadata']['namespace']}/{name}" if name else ""
