"""Pretends to be the volume controller and a CSI provisioner, which do not run in these tests.

    claim with a selected node ── decide ──> MAKE: a volume in the node's zone, kept for the claim
                                    ├──────> REFUSE: the selected node is taken away again
                                    └──────> LEAVE: nothing happens
    volume kept for a claim ──> both are bound to each other, as the volume controller does it

Runs in a thread of its own, with an event loop of its own, until the test is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from kubesched.api import names
from kubesched.api.core import Node
from kubesched.api.meta import ObjectMeta
from kubesched.api.storage import (
    ANNOTATION_BIND_COMPLETED,
    ANNOTATION_BOUND_BY_CONTROLLER,
    ANNOTATION_SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from kubesched.client import ApiClient, Informer, kubeconfig, resources
from kubesched.errors import AlreadyExistsError, ConflictError, NotFoundError

from .control_plane import ControlPlane

JsonObject = dict[str, Any]


class Verdict(Enum):
    """What becomes of a claim."""

    MAKE = "make"
    REFUSE = "refuse"
    LEAVE = "leave"


#: Told a claim and the node selected for it.
Decide = Callable[[PersistentVolumeClaim, str], Verdict]


def make_always(_claim: PersistentVolumeClaim, _node_name: str) -> Verdict:
    """Make whatever is asked for."""
    return Verdict.MAKE


class PretendProvisioner:
    """Both controllers."""

    def __init__(self, plane: ControlPlane, decide: Decide = make_always) -> None:
        self._access = kubeconfig.load(plane.admin_kubeconfig)
        #: may be replaced while it runs; what was left alone before is decided again
        self.decide = decide
        #: whether volumes and claims are bound to each other
        self.binds = True
        #: claim → how often each verdict was given on it
        self.verdicts: Counter[tuple[str, Verdict]] = Counter()
        self._stop: Callable[[], object] = lambda: None
        self._ready = threading.Event()
        self._failure: BaseException | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[PretendProvisioner]:
        """Work in the background."""
        thread = threading.Thread(target=self._work, name="provisioner")
        thread.start()
        try:
            assert self._ready.wait(20), "the provisioner did not start"
            yield self
        finally:
            self._stop()
            thread.join(20)
            assert not thread.is_alive()
        assert self._failure is None, f"the provisioner failed: {self._failure!r}"

    # --- the thread -------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            asyncio.run(self._run())
        except asyncio.CancelledError:
            pass
        except BaseException as failure:  # noqa: BLE001 (told by the test's thread)
            self._failure = failure
        finally:
            self._ready.set()

    async def _run(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
        async with ApiClient(self._access) as client:
            claims = Informer(client, resources.PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim)
            volumes = Informer(client, resources.PERSISTENT_VOLUMES, PersistentVolume)
            nodes = Informer(client, resources.NODES, Node)
            async with asyncio.TaskGroup() as tasks:
                for informer in (claims, volumes, nodes):
                    tasks.create_task(informer.run())
                    await informer.synced.wait()
                self._ready.set()
                while True:
                    for volume in list(volumes.objects.values()):
                        await self._bind(client, volume, dict(claims.objects))
                    for claim in list(claims.objects.values()):
                        await self._provision(client, claim, dict(nodes.objects))
                    await asyncio.sleep(0.02)

    # --- the provisioner --------------------------------------------------------------------

    async def _provision(
        self, client: ApiClient, claim: PersistentVolumeClaim, nodes: dict[Any, Node]
    ) -> None:
        meta = claim.metadata
        node_name = (meta.annotations or {}).get(ANNOTATION_SELECTED_NODE)
        if node_name is None or claim.spec.volume_name or meta.deletion_timestamp:
            return
        verdict = self.decide(claim, node_name)
        if verdict is Verdict.LEAVE:
            return
        with contextlib.suppress(ConflictError, NotFoundError):
            if verdict is Verdict.REFUSE:
                await self._take_node_away(client, meta)
            else:
                await self._make(client, claim, nodes["", node_name])
            self.verdicts[meta.name, verdict] += 1

    async def _take_node_away(self, client: ApiClient, meta: ObjectMeta) -> None:
        patch = {
            "metadata": {
                "resourceVersion": meta.resource_version,
                "annotations": {ANNOTATION_SELECTED_NODE: None},
            }
        }
        path = resources.PERSISTENT_VOLUME_CLAIMS.item(meta.name, namespace=meta.namespace)
        await client.patch(path, patch)

    async def _make(self, client: ApiClient, claim: PersistentVolumeClaim, node: Node) -> None:
        meta = claim.metadata
        zone = (node.metadata.labels or {})[names.LABEL_ZONE]
        assert claim.spec.resources is not None
        size = (claim.spec.resources.requests or {})["storage"]
        expression = {"key": names.LABEL_ZONE, "operator": "In", "values": [zone]}
        volume: JsonObject = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pvc-{meta.uid}"},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": list(claim.spec.access_modes),
                "storageClassName": claim.storage_class,
                "csi": {"driver": "disk.example.com", "volumeHandle": meta.uid},
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": meta.namespace,
                    "name": meta.name,
                    "uid": meta.uid,
                },
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
                },
            },
        }
        with contextlib.suppress(AlreadyExistsError):
            await client.post(resources.PERSISTENT_VOLUMES.collection(), volume)

    # --- the volume controller --------------------------------------------------------------

    async def _bind(
        self,
        client: ApiClient,
        volume: PersistentVolume,
        claims: dict[Any, PersistentVolumeClaim],
    ) -> None:
        reference = volume.spec.claim_ref
        if not self.binds:
            return
        with contextlib.suppress(ConflictError, NotFoundError):
            if reference is None and volume.status.phase in ("", "Pending"):
                await self._set_phase(client, volume, "Available")
            if reference is None or not reference.uid:
                return
            claim = claims.get((reference.namespace, reference.name))
            if claim is None or claim.metadata.uid != reference.uid or claim.spec.volume_name:
                return
            await self._set_phase(client, volume, "Bound")
            await self._complete(client, claim, volume.metadata.name)

    async def _set_phase(self, client: ApiClient, volume: PersistentVolume, phase: str) -> None:
        if volume.status.phase != phase:
            path = resources.PERSISTENT_VOLUMES.item(volume.metadata.name, subresource="status")
            await client.patch(path, {"status": {"phase": phase}})

    async def _complete(
        self, client: ApiClient, claim: PersistentVolumeClaim, volume_name: str
    ) -> None:
        meta = claim.metadata
        path = resources.PERSISTENT_VOLUME_CLAIMS
        item = path.item(meta.name, namespace=meta.namespace)
        annotations = {ANNOTATION_BIND_COMPLETED: "yes", ANNOTATION_BOUND_BY_CONTROLLER: "yes"}
        patch = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume_name}}
        await client.patch(item, patch)
        status = path.item(meta.name, namespace=meta.namespace, subresource="status")
        await client.patch(status, {"status": {"phase": "Bound"}})
