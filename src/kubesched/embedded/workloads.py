"""Makes the pods of ReplicaSets, Jobs and DaemonSets, and deletes those that are too many.

    Deployment ──▶ ReplicaSet ──▶ as many pods as replicas
                   Job        ──▶ as many at a time as it may run, until enough have succeeded
                   DaemonSet  ──▶ one for each node that takes it
    controller gone ──▶ its pods go, too

The controllers of Kubernetes do this, with more care for the rare. Everything is looked at again
when it changes, and each look brings it one step closer to what is wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from kubesched.embedded import daemons
from kubesched.embedded.deletion import ObjectDeletion
from kubesched.embedded.dependents import Dependents, owned_by
from kubesched.embedded.deployments import DEPLOYMENTS, REPLICA_SETS, DeploymentController
from kubesched.embedded.following import follow
from kubesched.embedded.refusals import StatusError
from kubesched.embedded.registry import ObjectRegistry, Where
from kubesched.embedded.resources import BY_KIND, JOBS, NODES, PODS, ServedResource
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.versions import Version

JsonObject = dict[str, Any]

DAEMON_SETS: Final = BY_KIND["apps/v1", "DaemonSet"]
_DONE: Final = frozenset({"Succeeded", "Failed"})


class WorkloadControllers:
    """The controllers of all kinds that make pods."""

    def __init__(self, registry: ObjectRegistry, deletion: ObjectDeletion) -> None:
        self._registry = registry
        self._store: VersionedStore = registry.store
        self._pods = Dependents(PODS, self._store, deletion)
        self._sets = Dependents(REPLICA_SETS, self._store, deletion)
        self._deployments = DeploymentController(registry, self._sets)
        #: (resource, key) → uid of the controller
        self._uids: dict[tuple[ServedResource, str], str] = {}
        self._sync: dict[str, tuple[ServedResource, Callable[[Version], None]]] = {
            "ReplicaSet": (REPLICA_SETS, self._sync_replica_set),
            "Job": (JOBS, self._sync_job),
            "DaemonSet": (DAEMON_SETS, self._sync_daemon_set),
        }

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for resource, look_at in (
                (PODS, self.look_at_pod),
                (REPLICA_SETS, self.look_at_replica_set),
                (DEPLOYMENTS, self._deployments.look_at),
                (JOBS, lambda key: self._look_at("Job", key)),
                (DAEMON_SETS, lambda key: self._look_at("DaemonSet", key)),
                (NODES, self.look_at_node),
            ):
                group.create_task(follow(self._store, resource, look_at))

    # ------------------------------------------------------------ looking

    def look_at_pod(self, key: str) -> None:
        """Note a pod, and look at its controller."""
        owner = self._pods.look_at(key)
        if owner is not None and owner["kind"] in self._sync:
            self._look_at(owner["kind"], f"{key.partition('/')[0]}/{owner['name']}")

    def look_at_replica_set(self, key: str) -> None:
        """Note a ReplicaSet, see to its pods, and look at its Deployment."""
        owner = self._sets.look_at(key)
        self._look_at("ReplicaSet", key)
        if owner is not None and owner["kind"] == "Deployment":
            self._deployments.look_at(f"{key.partition('/')[0]}/{owner['name']}")

    def look_at_node(self, name: str) -> None:  # noqa: ARG002 (any of them may matter)
        """See to the pods of DaemonSets: a node came, changed or went."""
        for key in list(self._store.collection(DAEMON_SETS).keys()):
            self._look_at("DaemonSet", key)

    def _look_at(self, kind: str, key: str) -> None:
        resource, sync = self._sync[kind]
        found = self._store.get(resource, key)
        if found is None:
            self._pods.delete_all(self._uids.pop((resource, key), ""))
            return
        self._uids[resource, key] = found.obj["metadata"]["uid"]
        if not found.obj["metadata"].get("deletionTimestamp"):
            sync(found)

    # ------------------------------------------------------------ seeing to pods

    def _sync_replica_set(self, found: Version) -> None:
        pods = list(self._pods.of(found.obj["metadata"]["uid"]))
        active = [pod for pod in pods if _is_active(pod.obj)]
        wanted = found.obj["spec"]["replicas"]
        for _ in range(wanted - len(active)):
            if not self._make_pod(REPLICA_SETS, found.obj):
                break
        for pod in sorted(active, key=_dispensable)[: max(len(active) - wanted, 0)]:
            self._pods.delete(pod)
        ready = sum(1 for pod in active if _is_ready(pod.obj))
        counts = {"fullyLabeledReplicas": len(active), "readyReplicas": ready}
        status = {
            "replicas": len(active),
            **{name: count for name, count in counts.items() if count},
            **({"availableReplicas": ready} if ready else {}),
            "observedGeneration": found.obj["metadata"].get("generation", 1),
        }
        self._report(REPLICA_SETS, found.key, status)

    def _sync_job(self, found: Version) -> None:
        spec = found.obj["spec"]
        pods = [pod.obj for pod in self._pods.of(found.obj["metadata"]["uid"])]
        succeeded = sum(1 for pod in pods if pod["status"].get("phase") == "Succeeded")
        active = sum(1 for pod in pods if _is_active(pod))
        wanted = spec["parallelism"]
        if spec.get("completions") is not None:
            wanted = min(wanted, spec["completions"] - succeeded)
        elif succeeded:
            wanted = 0
        if spec.get("suspend"):
            return
        for _ in range(wanted - active):
            if not self._make_pod(JOBS, found.obj):
                break

    def _sync_daemon_set(self, found: Version) -> None:
        pods = list(self._pods.of(found.obj["metadata"]["uid"]))
        by_node = {daemons.node_of(pod.obj): pod for pod in pods if _is_active(pod.obj)}
        nodes = [version.obj for version in self._store.collection(NODES).versions()]
        template = found.obj["spec"]["template"]["spec"]
        wanted = [each["metadata"]["name"] for each in nodes if daemons.runs_on(template, each)]
        for name in wanted:
            if name not in by_node and not self._make_pod(DAEMON_SETS, found.obj, node=name):
                break
        for name, pod in by_node.items():
            if name not in wanted:
                self._pods.delete(pod)
        ready = sum(1 for pod in by_node.values() if _is_ready(pod.obj))
        status = {
            "currentNumberScheduled": len(by_node),
            "desiredNumberScheduled": len(wanted),
            "numberMisscheduled": 0,
            "numberReady": ready,
            "numberAvailable": ready,
            "updatedNumberScheduled": len(by_node),
            "observedGeneration": found.obj["metadata"].get("generation", 1),
        }
        self._report(DAEMON_SETS, found.key, status)

    def _make_pod(self, resource: ServedResource, owner: JsonObject, node: str = "") -> bool:
        """Create a pod of a template; return whether it was taken."""
        template, meta = owner["spec"]["template"], owner["metadata"]
        template_meta = template.get("metadata") or {}
        pod_meta: JsonObject = {
            "generateName": f"{meta['name']}-",
            "ownerReferences": [owned_by(resource, owner)],
        }
        for name in ("labels", "annotations"):
            if template_meta.get(name):
                pod_meta[name] = dict(template_meta[name])
        spec = daemons.bound_to(template["spec"], node) if node else template["spec"]
        try:
            created = self._registry.create(
                Where(PODS, meta["namespace"]), {"metadata": pod_meta, "spec": spec}
            )
        except StatusError:
            return False  # as long as the template is as it is
        self._pods.look_at(created.key)
        return True

    def _report(self, resource: ServedResource, key: str, status: JsonObject) -> None:
        newest = self._store.get(resource, key)
        if newest is not None and newest.obj["status"] != status:
            meta = dict(newest.obj["metadata"])
            self._store.replace(
                resource, newest, {**newest.obj, "metadata": meta, "status": status}
            )


def _is_active(pod: JsonObject) -> bool:
    gone = pod["metadata"].get("deletionTimestamp")
    return not gone and pod["status"].get("phase") not in _DONE


def _is_ready(pod: JsonObject) -> bool:
    conditions: Iterable[JsonObject] = pod["status"].get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _dispensable(pod: Version) -> tuple[bool, bool, int]:
    """Sort pods by how little their loss would matter: without a node, not ready, then newest."""
    has_node = bool(pod.obj["spec"].get("nodeName"))
    return has_node, _is_ready(pod.obj), -pod.revision
