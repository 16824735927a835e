"""A watch on a namespace's pods that misses nothing: every node that a pod was ever on."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections import defaultdict
from typing import Self

import msgspec
from msgspec import Struct

from .control_plane import ControlPlane
from .scheduler_process import pods_path
from .serving_callers import LOOPBACK


class _Metadata(Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(Struct, rename="camel"):
    node_name: str = ""


class _Pod(Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(Struct):
    type: str
    object: _Pod


class PodWatch:
    """Notes nodes of pods in a thread of its own, from the beginning of the block to its end."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._path = pods_path(namespace)
        #: pod → the nodes that it was seen on, in their order
        self.nodes: defaultdict[str, list[str]] = defaultdict(list)
        #: what ended the watch too early
        self.failure: BaseException | None = None
        self._version = ""
        self._connection = http.client.HTTPSConnection(
            LOOPBACK, plane.port, context=plane.tls, timeout=60
        )
        self._thread = threading.Thread(target=self._follow, name="pod-watch")
        self._ending = False

    def __enter__(self) -> Self:
        """Begin."""
        listed = self._plane.request("GET", f"{self._path}?limit=1")
        self._version = listed["metadata"]["resourceVersion"]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._ending = True
        if self._connection.sock is not None:
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(20)
        self._connection.close()

    @property
    def bound_count(self) -> int:
        """How many pods have been seen on a node."""
        return len(self.nodes)

    def _follow(self) -> None:
        headers = {"Authorization": f"Bearer {self._plane.admin_token}"}
        decoder = msgspec.json.Decoder(_Event)
        try:
            # The server hangs up on those who do not keep up; nothing is lost by coming back.
            while not self._ending:
                query = f"watch=1&resourceVersion={self._version}&timeoutSeconds=300"
                self._connection.request("GET", f"{self._path}?{query}", headers=headers)
                with self._connection.getresponse() as answer:
                    for line in answer:
                        self._note(decoder.decode(line))
        except (OSError, ValueError, http.client.HTTPException) as failure:
            if not self._ending:
                self.failure = failure

    def _note(self, event: _Event) -> None:
        if event.type == "ERROR":
            raise ValueError("the watch cannot go on")
        meta, node = event.object.metadata, event.object.spec.node_name
        self._version = meta.resource_version
        seen = self.nodes[meta.name] if node else []
        if node and (not seen or seen[-1] != node):
            seen.append(node)
