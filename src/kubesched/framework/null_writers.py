"""Null binder, evictor and volume writer, for frameworks that only decide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence

from kubesched.api.core import Pod, PodExtendedResourceClaimStatus
from kubesched.api.resource import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.cluster.pod_info import Claimed, PodInfo
from kubesched.cluster.storage import ClaimKey
from kubesched.errors import PluginError
from kubesched.framework.group import GroupInfo


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

    def evict_for_group(self, group: GroupInfo, victims: Sequence[PodInfo]) -> None:
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


class NullClaimWriter:
    """Writes no claim to devices: raises for a caller that waits for it."""

    async def bind(
        self,
        claim: ResourceClaim,
        allocation: AllocationResult | None,  # noqa: ARG002 (the protocol's)
        user: ResourceClaimConsumerReference,  # noqa: ARG002
        *,
        has_timestamp: bool,  # noqa: ARG002
        is_shared: bool = False,  # noqa: ARG002
    ) -> ResourceClaim:
        """Refuse."""
        raise _no_writer(f"claim {claim.metadata.namespace}/{claim.metadata.name}", "claim")

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Refuse."""
        raise _no_writer(f"a claim in {claim.metadata.namespace}", "claim")

    async def map_extended_resources(
        self,
        pod: Pod,
        status: PodExtendedResourceClaimStatus,  # noqa: ARG002
    ) -> None:
        """Refuse."""
        raise _no_writer(f"pod {pod.metadata.namespace}/{pod.metadata.name}", "claim")

    async def claim_resources(self, pod: Pod, claimed: Claimed) -> None:  # noqa: ARG002
        """Refuse."""
        raise _no_writer(f"pod {pod.metadata.namespace}/{pod.metadata.name}", "claim")

    async def poll(
        self,
        check: Callable[[], bool],  # noqa: ARG002
        *,
        claims: Collection[ClaimKey],
        timeout_s: float,  # noqa: ARG002
        interval_s: float,  # noqa: ARG002
    ) -> bool:
        """Refuse."""
        raise _no_writer(f"{len(claims)} claims", "claim")

    def announce_waiting(self, pod: Pod, node_name: str) -> None:
        """Do nothing."""

    def deallocate(self, claim: ResourceClaim) -> None:
        """Do nothing."""

    def unreserve(self, claim: ResourceClaim, uid: str) -> None:
        """Do nothing."""

    def unclaim_resources(self, pod: Pod) -> None:
        """Do nothing."""

    def delete(self, claim: ResourceClaim) -> None:
        """Do nothing."""


def _no_writer(what: str, kind: str = "volume") -> PluginError:
    return PluginError(
        f"{what} cannot be bound: the framework was built without a {kind} writer; "
        f"pass {kind}_writer to build_framework"
    )
