"""A control plane that can run for days: what it stores does not grow."""

from __future__ import annotations

from kubesched.bench import assets
from kubesched.bench.control_plane import ControlPlane
from tests.integration.pod_groups import GATES, RUNTIME_CONFIG

__all__ = ["GATES", "SoakPlane"]

#: Events of pods that are gone; an hour by default, in which they would be most of what is stored.
EVENT_TTL = "5m"
#: How far back etcd keeps what objects were.
COMPACTION = "2m"


class SoakPlane(ControlPlane):
    """etcd is compacted every few minutes, and forgets events."""

    def __init__(self) -> None:
        super().__init__(assets.folder(), feature_gates=GATES, runtime_config=RUNTIME_CONFIG)

    def _apiserver_arguments(self) -> list[str]:
        more = [f"--event-ttl={EVENT_TTL}", f"--etcd-compaction-interval={COMPACTION}"]
        return [*super()._apiserver_arguments(), *more]

    def stored_mib(self) -> float:
        """The size of etcd's files."""
        files = (each for each in (self.folder / "etcd").rglob("*") if each.is_file())
        return sum(each.stat().st_size for each in files) / (1 << 20)
