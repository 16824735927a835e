"""Null binder, evictor and volume writer, for frameworks that only decide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence

from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.storage import ClaimKey
from kubesched.errors import PluginError


class NullBinder:
    """Refuses to bind."""

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Raise PluginError."""
        raise PluginError(
            f"{pod.full_name} cannot be bound to {node_name}: the framework was built without a "
            "binder; pass binder to build_framework"
        )


class NullEvictor:
    """Evicts no pod."""

    def evict(self, preemptor: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Do nothing."""

    def preemptors(self) -> Container[str]:
        """Return an empty set."""
        return ()

    def is_evicting_for(self, uid: str) -> bool:
        """Return False."""
        return uid in self.preemptors()


class NullVolumeWriter:
    """Refuses to write volumes and claims."""

    async def write_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Raise PluginError."""
        raise _no_writer(f"volume {volume.metadata.name}")

    async def write_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Raise PluginError."""
        raise _no_writer(f"claim {claim.metadata.namespace}/{claim.metadata.name}")

    async def poll(
        self,
        check: Callable[[], bool],  # noqa: ARG002 (the protocol's)
        *,
        claims: Collection[ClaimKey],
        timeout_s: float,  # noqa: ARG002
    ) -> bool:
        """Raise PluginError."""
        raise _no_writer(f"{len(claims)} claims")


def _no_writer(what: str) -> PluginError:
    return PluginError(
        f"{what} cannot be bound: the framework was built without a volume writer; "
        "pass volume_writer to build_framework"
    )
