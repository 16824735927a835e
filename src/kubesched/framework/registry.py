"""The registry of plugins, and the context that a plugin is created with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from kubesched.api import labels
from kubesched.api.core import Pod, PodExtendedResourceClaimStatus
from kubesched.api.resource import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.clock import Clock, RealClock
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.object_store import HasMeta
from kubesched.cluster.plugin_objects import Lister
from kubesched.cluster.pod_info import Claimed, PodInfo
from kubesched.cluster.storage import ClaimKey
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import Profile
from kubesched.errors import ConfigError, PluginError
from kubesched.framework.group import GroupInfo
from kubesched.framework.null_writers import NullClaimWriter, NullVolumeWriter
from kubesched.framework.plugin import (
    Plugin,
    PreFilter,
    PreScore,
    RowFilter,
    RowScore,
    extension_points,
)
from kubesched.framework.pod_counts import PodCounts
from kubesched.framework.waiting import WaitingPods
from kubesched.kinds import KINDS
from kubesched.metrics.recorder import Metrics

if TYPE_CHECKING:
    from kubesched.framework.evaluation import Evaluator


T = TypeVar("T", bound=HasMeta)


class PodBinder(Protocol):
    """Binds pods through the API server."""

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Bind the pod; raises ClientError if that fails."""


class Evictor(Protocol):
    """Evicts the victims of preemption."""

    def evict(self, preemptor: PodInfo, node_name: str, victims: Sequence[PodInfo]) -> None:
        """Evict victims, in the background."""

    def evict_for_group(self, group: GroupInfo, victims: Sequence[PodInfo]) -> None:
        """Evict pods from any nodes on behalf of a group, in the background."""

    def preemptors(self) -> Container[str]:
        """Return the uids of preemptors whose victims are still being evicted."""

    def is_evicting_for(self, uid: str) -> bool:
        """Return whether pods are still being evicted on behalf of a pod or a group."""


class VolumeWriter(Protocol):
    """Writes volumes and claims to the API server, and waits for controllers."""

    async def write_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write the claim that a volume is bound to; return the updated volume.

        Raises ClientError if that fails, ConflictError if the volume has changed meanwhile.
        """

    async def write_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Write the node that was selected for a claim; raises as `write_volume` does."""

    async def poll(
        self, check: Callable[[], bool], *, claims: Collection[ClaimKey], timeout_s: float
    ) -> bool:
        """Call `check` until it returns True: periodically, and when one of the claims changes.

        Returns False on timeout. Exceptions of `check` are passed on.
        """


class ClaimWriter(Protocol):
    """Writes to the API server which devices claims get, and waits for drivers and controllers."""

    async def bind(
        self,
        claim: ResourceClaim,
        allocation: AllocationResult | None,
        user: ResourceClaimConsumerReference,
        *,
        has_timestamp: bool,
        is_shared: bool = False,
    ) -> ResourceClaim:
        """Write an allocation, if there is one, and that a pod may use it; return the claim then.

        With `is_shared`, other pods of the group may be about to write the same.

        Raises ObjectError or ClientError if that fails, or the claim is not as it was.
        """

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim; raises ClientError if that fails."""

    async def map_extended_resources(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Write to a pod's status which claim serves its extended resources."""

    async def claim_resources(self, pod: Pod, claimed: Claimed) -> None:
        """Write to a pod's status what its claims take of its node's own resources."""

    async def poll(
        self,
        check: Callable[[], bool],
        *,
        claims: Collection[ClaimKey],
        timeout_s: float,
        interval_s: float,
    ) -> bool:
        """Ask until the answer is yes: from time to time, and when one of the claims changes.

        Returns False if that does not happen in time. What `check` raises ends it as well.
        """

    def announce_waiting(self, pod: Pod, node_name: str) -> None:
        """Report in an event that a pod waits until drivers get its devices ready."""

    def deallocate(self, claim: ResourceClaim) -> None:
        """Give up the allocation of a claim, in the background."""

    def unreserve(self, claim: ResourceClaim, uid: str) -> None:
        """Revoke that a pod or a group may use a claim, in the background."""

    def unclaim_resources(self, pod: Pod) -> None:
        """Clear what a pod's status declares of its node's own resources, in the background."""

    def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim, in the background."""


class EvaluatorReference:
    """A reference to the framework's evaluator, which is built after its plugins."""

    def __init__(self) -> None:
        self._evaluator: Evaluator | None = None

    def set(self, evaluator: Evaluator) -> None:
        """Set the evaluator."""
        self._evaluator = evaluator

    def get(self) -> Evaluator:
        """Return the evaluator."""
        if self._evaluator is None:
            raise PluginError("a plugin asked for filters while it was being made")
        return self._evaluator


class PluginContext(Struct, frozen=True):
    """What a plugin may use; passed to `Plugin.create`."""

    profile: Profile
    gates: FeatureGates
    cluster: Cluster
    binder: PodBinder
    evictor: Evictor
    #: pods that Permit plugins delay
    waiting: WaitingPods
    #: the scheduler's metrics; plugins may register their own collectors
    metrics: Metrics
    #: runs the profile's filters, for plugins that evaluate hypothetical states
    evaluator: EvaluatorReference
    volume_writer: VolumeWriter = NullVolumeWriter()
    claim_writer: ClaimWriter = NullClaimWriter()
    clock: Clock = RealClock()
    #: called with "predicate", "assume" or "bind" whenever that stage of volume scheduling fails
    on_volume_stage_failure: Callable[[str], None] = lambda _stage: None

    def objects(self, kind: type[T]) -> Lister[T]:
        """Return the objects of a kind in the plugin's `watches`; raises ConfigError otherwise."""
        row = KINDS.get(kind.__name__)
        if row is None or not row.is_of_plugins:
            name = kind.__name__
            raise ConfigError(f"{name} objects are not watched: name them in the plugin's watches")
        return Lister(self.cluster.plugin_objects.store(row.name, namespaced=row.path.namespaced))

    def pod_counts(
        self, topology_key: str, selector: str, *, namespaces: Iterable[str] | None = None
    ) -> PodCounts:
        """Return the number of pods by domain; `selector` has kubectl's syntax.

        Raises SelectorError if the selector is malformed. Without `namespaces`, all pods count.
        """
        return PodCounts(
            self.cluster.table, topology_key, labels.parse(selector), namespaces=namespaces
        )


class Registry(Mapping[str, type[Plugin]]):
    """Plugin classes by name."""

    def __init__(self, plugins: Iterable[type[Plugin]]) -> None:
        self._classes: dict[str, type[Plugin]] = {}
        for plugin in plugins:
            if plugin.name in self._classes:
                raise PluginError(f"a plugin named {plugin.name} already exists")
            if issubclass(plugin, RowFilter) and issubclass(plugin, PreFilter):
                raise PluginError(
                    f"plugin {plugin.name}: answers of a RowFilter are cached by signature, so its "
                    "PreFilter must be a SignaturePreFilter"
                )
            if issubclass(plugin, RowScore) and issubclass(plugin, PreScore):
                raise PluginError(
                    f"plugin {plugin.name}: scores of a RowScore are cached by signature, so its "
                    "PreScore must be a SignaturePreScore"
                )
            self._classes[plugin.name] = plugin

    def __getitem__(self, name: str) -> type[Plugin]:
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def with_plugins(self, plugins: Iterable[type[Plugin]]) -> Registry:
        """Return a registry with additional plugins."""
        return Registry([*self._classes.values(), *plugins])

    def points_of(self, name: str) -> frozenset[str] | None:
        """Return the extension points that a plugin implements, None if it is not registered."""
        plugin = self._classes.get(name)
        return None if plugin is None else extension_points(plugin)
