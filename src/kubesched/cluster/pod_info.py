"""Pods as the scheduler holds them: the object, and its compiled form."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api import requests as api_requests
from kubesched.api.core import NodeAllocatableResourceClaimStatus, Pod
from kubesched.cluster.affinity_terms import PodTerms
from kubesched.cluster.label_sets import LabelSet, LabelSets
from kubesched.cluster.pod_signature import PodSignature, signature_key, spec_for_rows
from kubesched.cluster.pod_volumes import NO_VOLUMES, PodVolumes, compile_volumes
from kubesched.cluster.resources import Requests
from kubesched.config.features import FeatureGates

#: What the claims of a pod take of a node's own resources.
Claimed = tuple[NodeAllocatableResourceClaimStatus, ...]


class RequestRules(Struct, frozen=True):
    """Feature gates that decide which requests count."""

    #: PodLevelResources
    pod_level: bool = True
    #: InPlacePodLevelResourcesVerticalScaling
    pod_level_status: bool = True
    #: DRANodeAllocatableResources: what claims take of the node's own resources
    claims: bool = False

    @classmethod
    def of(cls, gates: FeatureGates) -> RequestRules:
        """Read them off the gates."""
        return cls(
            pod_level=gates.enabled("PodLevelResources"),
            pod_level_status=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
            claims=gates.enabled("DRANodeAllocatableResources"),
        )


def is_preempted(pod: Pod) -> bool:
    """Return whether a scheduler has marked a pod as the victim of one of higher priority."""
    return any(
        condition.type == names.DISRUPTION_TARGET
        and condition.status == "True"
        and condition.reason == names.REASON_PREEMPTION_BY_SCHEDULER
        for condition in pod.status.conditions
    )


class PodInfo:
    """A pod with its signature and its requests."""

    __slots__ = ("labels", "pod", "requests", "signature", "terms", "uid", "volumes")

    def __init__(
        self,
        pod: Pod,
        signature: PodSignature,
        *,
        requests: Requests,
        labels: LabelSet,
        terms: PodTerms,
    ) -> None:
        self.pod = pod
        #: the identity of the pod: a name may be used again, a uid is not
        self.uid = pod.metadata.uid
        self.signature = signature
        #: namespace and labels, shared by pods with the same
        self.labels = labels
        #: inter-pod affinity, shared by pods of the signature in the namespace
        self.terms = terms
        #: what the pod uses while it runs; after an in-place resize, not that of its signature
        self.requests = requests
        #: claims and disks; not part of the signature, since they differ from pod to pod
        self.volumes: PodVolumes = compile_volumes(pod)

    def __repr__(self) -> str:
        return f"PodInfo({self.full_name})"

    @property
    def alike(self) -> Hashable:
        """What tells it from other pods, but for its name, nomination, volumes and claims."""
        spec = self.pod.spec
        return (
            self.signature,
            self.labels,
            self.terms,
            self.priority,
            spec.preemption_policy,
            spec.scheduling_group,
            bool(spec.resource_claims),
            self.volumes is NO_VOLUMES,
        )

    def counts_as(self, other: PodInfo) -> bool:
        """Return whether another version of the pod is equivalent for scheduling."""
        return self.labels is other.labels and self._takes_as(other)

    def counts_as_bound(self, other: PodInfo) -> bool:
        """Return whether another version differs only by labels that it got from its node.

        The API server adds them when it binds a pod.
        """
        before, after = self.labels, other.labels
        return (
            self._takes_as(other)
            and before.terminating == after.terminating
            and before.labels.items() <= after.labels.items()
            and all(
                key in before.labels or key.startswith(names.TOPOLOGY_PREFIX)
                for key in after.labels
            )
        )

    def _takes_as(self, other: PodInfo) -> bool:
        return (
            self.signature is other.signature
            and self.requests is other.requests
            and self.terms is other.terms
            and self.priority == other.priority
            and self.volumes == other.volumes
        )

    def object_on(self, node_name: str) -> Pod:
        """Return the pod object as it is once it is bound to a node."""
        return replace(self.pod, spec=replace(self.pod.spec, node_name=node_name))

    @property
    def is_being_preempted(self) -> bool:
        """Whether a scheduler deleted it for a pod of higher priority, and it still terminates."""
        return self.pod.metadata.deletion_timestamp is not None and is_preempted(self.pod)

    @property
    def full_name(self) -> str:
        """The pod's namespace and name, as messages show it."""
        return f"{self.pod.metadata.namespace}/{self.pod.metadata.name}"

    @property
    def priority(self) -> int:
        """The pod's priority; 0 if it has none."""
        return self.pod.spec.priority or 0


class PodCompiler:
    """Compiles pods to PodInfos; equal parts are shared."""

    def __init__(self, rules: RequestRules = RequestRules()) -> None:  # noqa: B008 (immutable)
        self._rules = rules
        self._gates = {
            "pod_level": rules.pod_level,
            "pod_level_status": rules.pod_level_status,
            "claims": rules.claims,
        }
        self._label_sets = LabelSets()
        self._signatures: WeakValueDictionary[bytes, PodSignature] = WeakValueDictionary()
        self._requests: WeakValueDictionary[object, Requests] = WeakValueDictionary()

    def pending(self, pod: Pod) -> PodInfo:
        """Compile a pending pod; raises ObjectError if it cannot be read."""
        signature = self._signature(pod, pod.spec.node_name)
        return self._info(pod, signature, signature.requests)

    def resizing(self, pod: Pod) -> PodInfo:
        """Compile a pod that is to be tried again on its node, for a resize; raises ObjectError."""
        signature = self._signature(pod, pod.spec.node_name, is_resize=True)
        return self._info(pod, signature, signature.requests)

    def placed(self, pod: Pod) -> PodInfo:
        """Compile a pod that is on a node; raises ObjectError if it cannot be read."""
        signature = self._signature(pod, "")
        if not api_requests.is_resized(pod):
            return self._info(pod, signature, signature.requests)
        return self._info(pod, signature, self._requests_on_node(pod))

    def claiming(self, pod: PodInfo, claims: Claimed) -> PodInfo:
        """Return a pending pod that takes more of a node, as its claims to devices do there."""
        status = replace(pod.pod.status, node_allocatable_resource_claim_statuses=claims)
        return self.pending(replace(pod.pod, status=status))

    def _info(self, pod: Pod, signature: PodSignature, requests: Requests) -> PodInfo:
        meta = pod.metadata
        labels, terms = self._label_sets.of(meta), signature.terms_in(meta.namespace)
        return PodInfo(pod, signature, requests=requests, labels=labels, terms=terms)

    def _signature(self, pod: Pod, node_name: str, *, is_resize: bool = False) -> PodSignature:
        claimed: tuple[tuple[str, int], ...] = ()
        if self._rules.claims and pod.status.node_allocatable_resource_claim_statuses:
            claimed = tuple(sorted(api_requests.claimed_amounts(pod).items()))
        key = signature_key(pod.spec, node_name, is_resize=is_resize, claimed=claimed)
        signature = self._signatures.get(key)
        if signature is None:
            requests, scoring_requests = self._requests_of(pod)
            signature = self._signatures[key] = PodSignature(
                pod.spec,
                node_name=node_name,
                requests=requests,
                scoring_requests=scoring_requests,
                row_signature=self._row_signature(pod, node_name, is_resize=is_resize),
                is_resize=is_resize,
            )
        return signature

    def _row_signature(self, pod: Pod, node_name: str, *, is_resize: bool) -> PodSignature | None:
        """Return the signature without inter-pod constraints; None if there are none."""
        spec = spec_for_rows(pod.spec)
        if spec is pod.spec:
            return None
        return self._signature(replace(pod, spec=spec), node_name, is_resize=is_resize)

    def _requests_of(self, pod: Pod) -> tuple[Requests, dict[str, int]]:
        """Return what a pending pod requests, and what it is scored with."""
        amounts = api_requests.pod_requests(pod, **self._gates)
        if api_requests.are_requests_complete(pod):
            non_zero = amounts.get(names.CPU, 0), amounts.get(names.MEMORY, 0)
            return self._interned(amounts, non_zero), amounts
        non_zero = api_requests.non_zero_requests(pod, **self._gates)
        return self._interned(amounts, non_zero), api_requests.scoring_requests(pod)

    def _requests_on_node(self, pod: Pod) -> Requests:
        """Return what a pod that was resized uses on its node."""
        return self._interned(
            api_requests.pod_requests(pod, use_status=True, **self._gates),
            api_requests.non_zero_requests(pod, use_status=True, **self._gates),
        )

    def _interned(self, amounts: dict[str, int], non_zero: tuple[int, int]) -> Requests:
        key = (tuple(sorted(amounts.items())), non_zero)
        requests = self._requests.get(key)
        if requests is None:
            requests = self._requests[key] = Requests(amounts, non_zero)
        return requests
