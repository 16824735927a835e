"""A control plane whose parts can be killed, and whose history can be read."""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from kubesched.bench.processes import LOOPBACK
from tests.integration.control_plane import ControlPlane, JsonObject
from tests.integration.pod_groups import GATES, RUNTIME_CONFIG

__all__ = ["GATES", "RUNTIME_CONFIG", "Change", "ChaosPlane"]

_PREFIX = "/registry/"


class Change(NamedTuple):
    """One object as etcd had it from a revision on."""

    revision: int
    #: as etcd names it: pods, minions, resourceclaims, …
    kind: str
    #: namespace and name
    key: str
    #: None if it was deleted
    object: JsonObject | None


class ChaosPlane(ControlPlane):
    """etcd keeps everything it ever held, and objects are stored as JSON."""

    def kill_etcd(self) -> None:
        """Kill etcd as a crash would; the API server keeps running without it."""
        self._processes.pop("etcd").end()

    def start_etcd(self) -> None:
        """Start etcd again on its data."""
        self._spawn("etcd", *self._etcd_arguments())

    def _apiserver_arguments(self) -> list[str]:
        more = ["--storage-media-type=application/json", "--etcd-compaction-interval=0"]
        return [*super()._apiserver_arguments(), *more]

    def revision(self) -> int:
        """Return the newest revision of etcd."""
        answer = self._ask_etcd("/v3/kv/range", {"key": _encoded("/"), "limit": 1})
        return int(answer["header"]["revision"])

    def history(self) -> Iterator[Change]:
        """Read every change from the beginning until now."""
        last = self.revision()
        wanted = {
            "key": _encoded(_PREFIX),
            "range_end": _encoded(_PREFIX[:-1] + chr(ord(_PREFIX[-1]) + 1)),
            "start_revision": 1,
            "fragment": True,
            "progress_notify": True,
        }
        with closing(http.client.HTTPConnection(LOOPBACK, self.etcd_port, timeout=60)) as etcd:
            etcd.request("POST", "/v3/watch", json.dumps({"create_request": wanted}))
            with etcd.getresponse() as answer:
                seen = 0
                while seen < last and (line := answer.readline()):
                    result = json.loads(line)["result"]
                    for event in result.get("events", ()):
                        seen = int(event["kv"]["mod_revision"])
                        if seen <= last:
                            yield _change(event)

    def _ask_etcd(self, path: str, body: JsonObject) -> JsonObject:
        with closing(http.client.HTTPConnection(LOOPBACK, self.etcd_port, timeout=10)) as etcd:
            etcd.request("POST", path, json.dumps(body))
            with etcd.getresponse() as answer:
                found: JsonObject = json.loads(answer.read())
        return found


class Clock:
    """When etcd had reached which revision, as far as it was noted."""

    def __init__(self) -> None:
        self._notes: list[tuple[int, float]] = [(0, time.monotonic())]

    def note(self, revision: int) -> None:
        """Note that a revision has been reached."""
        self._notes.append((revision, time.monotonic()))

    def notes(self) -> list[tuple[int, float]]:
        """Return revisions, each with the time at which it had been reached, ascending."""
        return list(self._notes)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _change(event: JsonObject) -> Change:
    stored = event["kv"]
    path = base64.b64decode(stored["key"]).decode().removeprefix(_PREFIX)
    kind, _, key = path.partition("/")
    if event.get("type") == "DELETE":
        return Change(int(stored["mod_revision"]), kind, key, None)
    raw = base64.b64decode(stored["value"])
    found = json.loads(raw) if raw[:1] == b"{" else {}
    return Change(int(stored["mod_revision"]), kind, key, found)
