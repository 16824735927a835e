"""A cluster on the real API server, kept in step with a copy on which ours is asked.

    create, delete ──> API server ──> kube-scheduler
         └──> CopiedCluster                │ binds, nominates, evicts
                   ^── taken over ── PodEvents

The copy changes only when it is told to: ours is asked in the state that kube-scheduler found.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from kubesched.client.resources import ResourcePath
from kubesched.kinds import KINDS
from tests.integration.control_plane import MERGE_PATCH, ControlPlane, PlaneApiError

from .copied_cluster import CopiedCluster

Json = dict[str, Any]

NAMESPACE: Final = "certify"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
#: Kinds whose objects the API server takes with their status; of others it is written after.
WITH_STATUS: Final = ("Node",)
#: What of the status of a pod makes a difference to a scheduler.
POD_STATUS: Final = (
    "startTime",
    "nominatedNodeName",
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
)
NODE_STATUS: Final = ("allocatable", "capacity", "images")
#: In this order objects are made again: claims carry the uids of pods, volumes those of claims.
LAST: Final = ("PersistentVolume", "Pod", "ResourceClaim")
ORDER: Final = (*(kind for kind in KINDS if kind not in LAST), *LAST)

SETTLE_SECONDS: Final = 30.0


class PodEvents:
    """The pods of the namespace, as a watch brings them."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        #: name → the newest version
        self.latest: dict[str, Json] = {}
        #: uids of pods that are gone, or are being deleted
        self.ended: dict[str, Json] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Read from now on."""
        version = self._plane.request("GET", f"{PODS}?limit=1")["metadata"]["resourceVersion"]
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._plane.port, context=self._plane.tls
        )
        query = f"watch=1&resourceVersion={version}&timeoutSeconds=7200"
        headers = {"Authorization": f"Bearer {self._plane.admin_token}"}
        connection.request("GET", f"{PODS}?{query}", headers=headers)
        stream = connection.getresponse()
        thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            if connection.sock is not None:
                with contextlib.suppress(OSError):
                    connection.sock.shutdown(2)
            thread.join(10)
            stream.close()
            connection.close()

    def _read(self, stream: http.client.HTTPResponse) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            for line in stream:
                self._lines.put(line)
        self._lines.put(None)

    def next(self, seconds: float) -> Json | None:
        """Return the pod of the next event; None if there is none in time."""
        try:
            line = self._lines.get(timeout=max(seconds, 0))
        except queue.Empty:
            return None
        assert line is not None, "the watch ended"
        event = msgspec.json.decode(line)
        pod: Json = event["object"]
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if event["type"] == "DELETED":
            self.latest.pop(name, None)
            self.ended[uid] = pod
        else:
            self.latest[name] = pod
            if "deletionTimestamp" in pod["metadata"]:
                self.ended[uid] = pod
        return pod

    def settled(self, uid: str) -> Json:
        """Return a pod once it has a node, or a reason for having none."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while (pod := self.next(deadline - time.monotonic())) is not None:
            if pod["metadata"]["uid"] == uid and is_settled(pod):
                return pod
        raise AssertionError(f"nothing happened to {uid}")


def is_settled(pod: Json) -> bool:
    """Tell whether a scheduler has said what becomes of a pod."""
    if pod["spec"].get("nodeName"):
        return True
    conditions = pod["status"].get("conditions", ())
    return any(each.get("reason") in ("Unschedulable", "SchedulerError") for each in conditions)


class Session:
    """One cluster."""

    def __init__(self, plane: ControlPlane, configuration: Json) -> None:
        self.plane = plane
        self.copy = CopiedCluster(configuration)
        self.events = PodEvents(plane)
        self.copy.put("Namespace", plane.request("GET", f"/api/v1/namespaces/{NAMESPACE}"))
        #: uids of pods that were deleted by the test
        self.taken_away: set[str] = set()
        self._kinds: set[str] = {"Pod", "Node"}

    # --- writes ---------------------------------------------------------------------------------

    def create(self, manifest: Json) -> Json:
        """Create an object with its status, in the cluster and in the copy."""
        kind = manifest["kind"]
        self._kinds.add(kind)
        body = {**manifest, "apiVersion": KINDS[kind].path.api_version}
        created = self.plane.request("POST", collection(kind), body)
        status = manifest.get("status")
        if status and kind not in WITH_STATUS:
            created = self.patch(kind, manifest["metadata"]["name"], {"status": status}, "status")
        if "deletionTimestamp" in manifest["metadata"]:
            created = self.plane.request("DELETE", path_of(kind, manifest["metadata"]["name"]))
        self.copy.put(kind, created)
        return {**created, "kind": kind}

    def patch(self, kind: str, name: str, patch: Json, subresource: str = "") -> Json:
        """Change an object of the cluster, not of the copy."""
        path = path_of(kind, name, subresource)
        return self.plane.request("PATCH", path, patch, content_type=MERGE_PATCH)

    def delete(self, kind: str, name: str) -> None:
        """Delete an object at once, in the cluster and in the copy."""
        if kind == "Pod":
            options = {"gracePeriodSeconds": 0}
            gone = self.plane.request("DELETE", path_of(kind, name), options)
            self.taken_away.add(gone["metadata"]["uid"])
        else:
            self.plane.purge_object(path_of(kind, name))
        self.copy.remove(kind, name)

    def read(self, kind: str, name: str) -> Json | None:
        """Return an object as it is now; None if it is gone.

        Lists wait until the API server's cache has caught up, which takes longer.
        """
        try:
            return self.plane.request("GET", path_of(kind, name))
        except PlaneApiError as error:
            if error.status != 404:
                raise
            return None

    def reread(self, kind: str, names: Iterable[str]) -> None:
        """Take over some objects."""
        for name in names:
            if found := self.read(kind, name):
                self.copy.put(kind, found)
            else:
                self.copy.remove(kind, name)

    def refresh(self, kind: str) -> list[Json]:
        """Take over all objects of a kind; return them."""
        items: list[Json] = self.plane.request("GET", collection(kind))["items"]
        self.copy.replace(kind, items)
        return items

    def evicted(self, node_name: str = "") -> dict[str, Json]:
        """Return, by name, the pods that kube-scheduler evicted from a node, or from all nodes.

        Only those are meant that the copy still has, and that do not terminate there.
        """
        return {
            pod["metadata"]["name"]: pod
            for uid, pod in self.events.ended.items()
            if uid not in self.taken_away
            and self.is_alive(pod["metadata"]["name"], uid)
            and node_name in ("", pod["spec"].get("nodeName"))
        }

    def is_alive(self, name: str, uid: str = "") -> bool:
        """Tell whether the copy has a pod that does not terminate."""
        known = self.copy.objects.get(("Pod", name))
        return (
            known is not None
            and uid in ("", known["metadata"]["uid"])
            and "deletionTimestamp" not in known["metadata"]
        )

    def are_gone(self, node_name: str) -> bool:
        """Tell whether no pod terminates on a node in the copy."""
        return not any(
            "deletionTimestamp" in pod["metadata"] and pod["spec"].get("nodeName") == node_name
            for pod in self.copy.all_of("Pod")
        )

    def take_over(self, names: Iterable[str]) -> None:
        """Take over the newest versions of pods."""
        for name in names:
            if pod := self.events.latest.get(name):
                self.copy.put("Pod", pod)
            else:
                self.copy.remove("Pod", name)

    def clear(self) -> None:
        """Delete everything."""
        kinds = self._kinds | {kind for kind, _ in self.copy.objects} - {"Namespace"}
        for kind in sorted(kinds, key=lambda each: each != "Pod"):
            self.plane.purge(collection(kind))

    # --- state ----------------------------------------------------------------------------------

    def state(self) -> list[Json]:
        """Return the manifests of what there is, in the order in which they can be made again."""
        known = [each for each in self.copy.objects.values() if each["kind"] != "Namespace"]
        return sorted(known, key=lambda each: ORDER.index(each["kind"]))

    def recreate(self, manifests: Iterable[Json]) -> None:
        """Make objects of another session again; references by uid are adjusted."""
        uids: dict[str, str] = {}
        nodes: set[str] = set()
        for each in manifests:
            old = each["metadata"].get("uid")
            if each["kind"] == "Node":
                nodes.add(each["metadata"]["name"])
            elif each.get("spec", {}).get("nodeName") not in (None, *nodes):
                continue
            text = json.dumps(bare(each))
            for before, after in uids.items():
                # As a whole: names that contain a uid stay.
                text = text.replace(json.dumps(before), json.dumps(after))
            with contextlib.suppress(PlaneApiError):  # what it refers to was left out
                made = self.create(json.loads(text))
                if old:
                    uids[old] = made["metadata"]["uid"]


def collection(kind: str) -> str:
    """Return the path of all objects of a kind in the namespace."""
    path = KINDS[kind].path
    return path.collection(NAMESPACE if path.namespaced else "")


def path_of(kind: str, name: str, subresource: str = "") -> str:
    """Return the path of an object."""
    path: ResourcePath = KINDS[kind].path
    namespace = NAMESPACE if path.namespaced else ""
    return path.item(name, namespace=namespace, subresource=subresource)


def bare(manifest: Json) -> Json:
    """Return a manifest as it was before an API server took it, with what is left of its status."""
    kept = ("name", "labels", "annotations", "ownerReferences", "finalizers", "deletionTimestamp")
    metadata = {key: manifest["metadata"][key] for key in kept if key in manifest["metadata"]}
    head = {"apiVersion": KINDS[manifest["kind"]].path.api_version, "kind": manifest["kind"]}
    rest = {key: value for key, value in manifest.items() if key not in ("metadata", "status")}
    made = {**rest, **head, "metadata": metadata}
    status = dict(manifest.get("status", {}))
    match manifest["kind"]:
        case "Pod":
            made["spec"] = without_defaulted_keys(manifest["spec"])
            conditions = [
                each for each in status.get("conditions", ()) if each["type"] == "DisruptionTarget"
            ]
            status = {key: status[key] for key in POD_STATUS if key in status}
            status |= {"conditions": conditions} if conditions else {}
        case "Node":
            status = {key: status[key] for key in NODE_STATUS if key in status}
    return {**made, "status": status} if status else made


def without_defaulted_keys(spec: Json) -> Json:
    """Return a pod's spec without `matchLabelKeys` that the API server has put into a selector."""
    spec = json.loads(json.dumps(spec))
    for each in _selecting(spec):
        keys = each.pop("matchLabelKeys", ())
        expressions = each.get("labelSelector", {}).get("matchExpressions", [])
        left = [one for one in expressions if one["key"] not in keys]
        if len(left) < len(expressions):
            each["labelSelector"]["matchExpressions"] = left
        if keys:
            each["matchLabelKeys"] = keys
    return spec


def _selecting(spec: Json) -> Iterator[Json]:
    """Yield the parts of a pod's spec that select pods."""
    yield from spec.get("topologySpreadConstraints", ())
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = spec.get("affinity", {}).get(kind, {})
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution", ())
        for each in terms.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            yield each["podAffinityTerm"]
