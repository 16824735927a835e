"""VolumeBinding: filters nodes by the pod's volumes, and binds the volumes before the pod.

PreFilter   the claims: usable? bound? ──> PodClaims
Filter      all nodes: reachable, matched, or provisionable? ──> VolumePlacement
Reserve     the chosen node's volumes are assumed ──> Reservation
PreBind     they are written, and waited for
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from kubesched.cluster.arrays import Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_volumes import NO_VOLUMES
from kubesched.config.args import VolumeBindingArgs
from kubesched.errors import ClientError, ObjectError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.plugin import (
    NOTHING_AGAINST,
    NOTHING_TO_FILTER,
    Filter,
    PreBind,
    PreFilter,
    PreFilterResult,
    PreScore,
    Reserve,
    Score,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from kubesched.framework.verdict import Verdict
from kubesched.plugins.volume_binder import PREDICATE, Reservation, VolumeBinder
from kubesched.plugins.volume_claims import PodClaims, is_fully_bound, sort_claims, usable_claims
from kubesched.plugins.volume_details import VolumeDetails, unusable_claims
from kubesched.plugins.volume_hints import registrations
from kubesched.plugins.volume_placement import Placer, VolumePlacement
from kubesched.plugins.volume_scoring import ClassScorer, class_scorer, node_score
from kubesched.queue.hints import Registrations

UNBOUND_IMMEDIATE: Final = unresolvable("pod has unbound immediate PersistentVolumeClaims")
#: The status of a plugin whose PreFilter did not run.
NO_STATE: Final = error("not found")


class _Attempt:
    """The data of one attempt, from one extension point to the next."""

    __slots__ = ("claims", "placement", "reservation")

    def __init__(self, claims: PodClaims) -> None:
        self.claims = claims
        #: None until Filter runs
        self.placement: VolumePlacement | None = None
        #: None if there is nothing to bind
        self.reservation: Reservation | None = None


#: The attempt of pods without claims: without placement and reservation.
_NO_CLAIMS: Final = _Attempt(PodClaims())


class VolumeBinding(PreFilter, Filter, PreScore, Score, Reserve, PreBind):
    """Binds the claims of pods to volumes that their nodes can reach."""

    name = "VolumeBinding"
    repeats_skip = True
    only_with_volumes = True
    parallel = True
    proven_range = True
    skips_resizes = True

    def __init__(
        self,
        cluster: Cluster,
        *,
        placer: Placer,
        binder: VolumeBinder,
        scorer: ClassScorer | None,
        on_failure: Callable[[str], None],
    ) -> None:
        self._table = cluster.table
        self._storage = cluster.storage
        self._placer = placer
        self._binder = binder
        #: None unless storage capacity is scored
        self._scorer = scorer
        #: called with the stage that failed
        self._on_failure = on_failure

    @classmethod
    def create(cls, context: PluginContext) -> VolumeBinding:
        """Create the plugin."""
        args = context.profile.args(cls.name, VolumeBindingArgs)
        scores = context.gates.enabled("StorageCapacityScoring")
        return cls(
            context.cluster,
            placer=Placer(
                context.cluster,
                attributes_classes=context.gates.enabled("VolumeAttributesClass"),
            ),
            binder=VolumeBinder(
                context.cluster,
                context.volume_writer,
                timeout_s=args.bind_timeout_seconds,
                on_failure=context.on_volume_stage_failure,
            ),
            scorer=class_scorer(args.shape or ()) if scores else None,
            on_failure=context.on_volume_stage_failure,
        )

    def events_to_register(self) -> Registrations:
        """Changes of volumes, claims, classes, CSI objects and nodes."""
        return registrations(self._storage)

    # --- finding nodes --------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> PreFilterResult:  # noqa: ARG002
        """Skip pods without claims; reject pods whose claims are not ready."""
        if pod.volumes is NO_VOLUMES:
            state.write(self.name, _NO_CLAIMS)
            return NOTHING_TO_FILTER
        try:
            claims = usable_claims(pod, self._storage)
        except ObjectError as unusable:
            return PreFilterResult(unresolvable(str(unusable)))
        if not claims:
            state.write(self.name, _NO_CLAIMS)
            return NOTHING_TO_FILTER
        try:
            sorted_claims = sort_claims(claims, self._storage)
        except ObjectError as undecided:
            return PreFilterResult(error(str(undecided)))
        if sorted_claims.immediate:
            return PreFilterResult(UNBOUND_IMMEDIATE)
        state.write(self.name, _Attempt(sorted_claims))
        return NOTHING_AGAINST

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Verdict:  # noqa: ARG002
        """Reject nodes on which the pod cannot have its volumes."""
        attempt = _attempt(state)
        if attempt is None:
            return Verdict(np.ones(len(nodes), dtype=np.uint8), (NO_STATE,))
        return self._placement(attempt).verdict(nodes)

    def _placement(self, attempt: _Attempt) -> VolumePlacement:
        """Evaluate all rows once, and again only if rows were reused since."""
        placement = attempt.placement
        if placement is None or placement.position != self._table.node_changes.position:
            placement = attempt.placement = self._placer.place(attempt.claims)
            for _ in placement.errors:
                self._on_failure(PREDICATE)
        return placement

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterable[Detail]:
        """Name the claims, volumes and classes that nodes are rejected for."""
        attempt = _attempt(state)
        if attempt is None:
            return unusable_claims(pod, self._storage)
        return VolumeDetails(attempt.claims, self._placement(attempt), self._storage, nodes)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Status:  # noqa: ARG002
        """Skip, unless storage capacity is scored: then every pod is, even without volumes."""
        if self._scorer is None:
            return SKIP
        return SUCCESS if pod.volumes is NO_VOLUMES or _attempt(state) is not None else NO_STATE

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Int64Array | None:
        """Score each node by the utilization of its storage with the volumes to bind."""
        if self._scorer is None or pod.volumes is NO_VOLUMES:
            return None
        attempt = _attempt(state)
        if attempt is None or attempt.placement is None or not attempt.claims.delayed:
            return None
        placement = attempt.placement
        representatives, which = placement.patterns(nodes.row_numbers())
        scores = []
        for row in representatives.tolist():
            volumes = placement.at(row)
            scores.append(node_score(self._scorer, volumes.bindings, volumes.provisions))
        return np.array(scores, dtype=np.int64)[which]

    # --- one node -------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Assume the bindings of the pod's claims on its node."""
        attempt = _attempt(state)
        if attempt is None:
            return NO_STATE
        if attempt.placement is None or not attempt.claims.delayed or self._all_bound(pod):
            return SUCCESS
        placement, row = self._placement(attempt), self._table.row_of(node_name)
        if row is None or not placement.fits(row):
            # Neither is the case unless the cluster changed after the decision.
            return error(f'no pod volume found for node "{node_name}"')
        try:
            attempt.reservation = self._binder.assume(placement.at(row), node_name)
        except ObjectError as outdated:
            return error(str(outdated))
        return SUCCESS

    def _all_bound(self, pod: PodInfo) -> bool:
        found = (self._storage.claims.get(*mount.key) for mount in pod.volumes.mounts)
        return all(claim is not None and is_fully_bound(claim) for claim in found)

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:  # noqa: ARG002
        """Discard assumed changes that were not written."""
        attempt = _attempt(state)
        if attempt is not None and attempt.reservation is not None:
            self._binder.revert(attempt.reservation)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:  # noqa: ARG002
        """Skip if all claims are bound."""
        attempt = _attempt(state)
        if attempt is None:
            return NO_STATE
        return SKIP if attempt.reservation is None else SUCCESS

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Write the assumed changes, and wait for the volume controller and provisioners."""
        attempt = _attempt(state)
        if attempt is None:
            return NO_STATE
        if attempt.reservation is None:
            return SUCCESS
        try:
            await self._binder.bind(pod, node_name, attempt.reservation)
        except (ObjectError, ClientError) as failed:
            return error(str(failed))
        return SUCCESS


def _attempt(state: CycleState) -> _Attempt | None:
    found = state.get(VolumeBinding.name)
    return found if isinstance(found, _Attempt) else None
