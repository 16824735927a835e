"""A cache of whole pods and nodes for extenders, as the API server serves them.

    pod    ──> GET, cached for later attempts ──> JSON
    names  ──> cached in the scheduler's version? ──> JSON
                  └── few are not: GET each · many: LIST in pages

The scheduler's own structs have only the fields that it reads; an extender may read any. The cache
holds the API server's JSON, so objects are not decoded and encoded again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from kubesched.api.core import Pod
from kubesched.client.resources import NODES, PODS
from kubesched.client.rest import ApiClient
from kubesched.errors import ClientError, NotFoundError

_log = logging.getLogger(__name__)

T = TypeVar("T")

#: Up to so many nodes are read one by one; for more, a list is cheaper for the API server, too.
_FEW_NODES: Final = 20
#: Concurrent requests for single objects.
_AT_ONCE: Final = 16
#: Size of the cache of pods: those that are retried, and those of one preemption.
_KEPT_PODS: Final = 256
#: Nodes per page of a list.
_PAGE: Final = 500


class ObjectSource(Protocol):
    """Provides whole objects for requests to extenders."""

    async def pod_json(self, pod: Pod) -> bytes:
        """Return the whole pod."""

    async def nodes_json(self, names: Sequence[str]) -> list[bytes]:
        """Return whole nodes in the given order, without those that were deleted."""


class _Kept(Struct, frozen=True, gc=False):
    """An object's JSON, and the versions that it is valid for."""

    json: bytes
    #: the scheduler's version when it was read, and the version that was read
    versions: tuple[str, str]


class _SentIdentity(Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(Struct, frozen=True, gc=False):
    metadata: _SentIdentity = _SentIdentity()


_identify = msgspec.json.Decoder(_Identified).decode
_split = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


class ApiObjects:
    """Reads whole objects from the API server, and caches them until they change."""

    def __init__(self, client: ApiClient, node_versions: Callable[[str], str | None]) -> None:
        self._client = client
        #: returns the scheduler's resource version of a node, None if there is no such node
        self._node_versions = node_versions
        self._nodes: dict[str, _Kept] = {}
        #: number of cached nodes at which deleted ones are evicted from the cache
        self._look_for_gone_at = 2 * _PAGE
        #: by uid, least recently used first
        self._pods: OrderedDict[str, _Kept] = OrderedDict()

    # --- pods -------------------------------------------------------------------------------

    async def pod_json(self, pod: Pod) -> bytes:
        """Return the whole pod; NotFoundError if it was deleted.

        If the API server cannot be reached, return the fields that the scheduler has.
        """
        meta = pod.metadata
        kept = self._pods.get(meta.uid)
        if kept is not None and meta.resource_version in kept.versions:
            self._pods.move_to_end(meta.uid)
            return kept.json
        try:
            response = await self._client.request(
                "GET", PODS.item(meta.name, namespace=meta.namespace)
            )
            found = _identity(response.body, what=f"pod {meta.namespace}/{meta.name}")
        except NotFoundError:
            raise
        except ClientError as error:
            return _what_is_known(pod, error)
        if meta.uid and found.uid != meta.uid:
            raise NotFoundError(
                f'pods "{meta.name}" not found: another pod has its name now',
                code=404,
                reason="NotFound",
            )
        json = _as_in_go(response.body, managed_fields=False)
        self._keep_pod(pod, _Kept(json, (meta.resource_version, found.resource_version)))
        return json

    def _keep_pod(self, pod: Pod, kept: _Kept) -> None:
        if not (pod.metadata.uid and pod.metadata.resource_version):
            return
        self._pods[pod.metadata.uid] = kept
        self._pods.move_to_end(pod.metadata.uid)
        if len(self._pods) > _KEPT_PODS:
            self._pods.popitem(last=False)

    # --- nodes ------------------------------------------------------------------------------

    async def nodes_json(self, names: Sequence[str]) -> list[bytes]:
        """Return whole nodes in the given order, without those that were deleted."""
        stale = [name for name in names if not self._is_fresh(name)]
        if len(stale) > _FEW_NODES:
            await self._list_nodes(names)
        elif stale:
            await self._get_nodes(stale)
        found = [self._nodes[name].json for name in names if name in self._nodes]
        if len(self._nodes) > self._look_for_gone_at:
            self._forget_gone()
        return found

    def _is_fresh(self, name: str) -> bool:
        kept = self._nodes.get(name)
        if kept is None:
            return False
        known = self._node_versions(name)
        return known is None or known in kept.versions

    async def _get_nodes(self, names: Iterable[str]) -> None:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def get(name: str) -> None:
            async with gate:
                await self._get_node(name)

        await finish_all(get(name) for name in names)

    async def _get_node(self, name: str) -> None:
        known = self._node_versions(name) or ""  # before the request: it may change meanwhile
        try:
            response = await self._client.request("GET", NODES.item(name))
        except NotFoundError:
            self._nodes.pop(name, None)
            return
        found = _identity(response.body, what=f"node {name}")
        self._nodes[name] = _Kept(
            _as_in_go(response.body, managed_fields=True), (known, found.resource_version)
        )

    async def _list_nodes(self, names: Iterable[str]) -> None:
        known = {name: self._node_versions(name) or "" for name in names}
        listed: dict[str, _Kept] = {}
        async for page in self._client.list_pages(NODES.collection(), Raw, limit=_PAGE):
            if page.first:
                listed = {}
            for raw in page.items:
                found = _identity(raw, what="list of nodes")
                version = found.resource_version
                # The raw text is a view of the whole page: copy it, or one node retains the page.
                listed[found.name] = _Kept(bytes(raw), (known.get(found.name, version), version))
        self._nodes = listed

    def _forget_gone(self) -> None:
        for name in [name for name in self._nodes if self._node_versions(name) is None]:
            del self._nodes[name]
        self._look_for_gone_at = 2 * max(len(self._nodes), _PAGE)


async def finish_all(tasks: Iterable[Awaitable[T]]) -> list[T]:
    """Run all concurrently; cancel the others when one fails."""
    results = await asyncio.gather(*tasks, return_exceptions=True)
    done: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done


def _what_is_known(pod: Pod, error: ClientError) -> bytes:
    _log.warning(
        "Extenders get only the fields of the pod that the scheduler knows: pod=%s/%s err=%s",
        pod.metadata.namespace,
        pod.metadata.name,
        error,
    )
    return _encode(pod)


def _identity(text: bytes | Raw, *, what: str) -> _SentIdentity:
    try:
        return _identify(text).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ClientError(f"{what}: the answer cannot be read: {error}") from error


def _as_in_go(text: bytes, *, managed_fields: bool) -> bytes:
    """Drop fields that kube-scheduler's objects do not have: kind, apiVersion, managedFields."""
    fields = _split(text)
    fields.pop("kind", None)
    fields.pop("apiVersion", None)
    if not managed_fields and "metadata" in fields:
        metadata = _split(fields["metadata"])
        if metadata.pop("managedFields", None) is not None:
            fields["metadata"] = Raw(_encode(metadata))
    return _encode(fields)
