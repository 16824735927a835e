"""Pods as the scheduler holds them: the object, and its compiled form."""

from __future__ import annotations

from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api import requests as api_requests
from kubesched.api.core import Pod
from kubesched.cluster.affinity_terms import PodTerms
from kubesched.cluster.label_sets import LabelSet, LabelSets
from kubesched.cluster.pod_signature import PodSignature, signature_key, spec_for_rows
from kubesched.cluster.pod_volumes import PodVolumes, compile_volumes
from kubesched.cluster.resources import Requests
from kubesched.config.features import FeatureGates


class RequestRules(Struct, frozen=True):
    """Feature gates that decide which requests count."""

    #: PodLevelResources
    pod_level: bool = True
    #: InPlacePodLevelResourcesVerticalScaling
    pod_level_status: bool = True

    @classmethod
    def of(cls, gates: FeatureGates) -> RequestRules:
        """Read them off the gates."""
        return cls(
            pod_level=gates.enabled("PodLevelResources"),
            pod_level_status=gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
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
        #: what the pod uses while it runs; after an in-place resize not what its signature says
        self.requests = requests
        #: claims and disks; not part of the signature, since they differ from pod to pod
        self.volumes: PodVolumes = compile_volumes(pod)

    def __repr__(self) -> str:
        return f"PodInfo({self.full_name})"

    def counts_as(self, other: PodInfo) -> bool:
        """Tell whether another version of the pod is equivalent for scheduling."""
        return self.labels is other.labels and self._takes_as(other)

    def counts_as_bound(self, other: PodInfo) -> bool:
        """Tell whether another version differs only by labels that it got from its node.

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
        return self.pod.metadata.deletion_timestamp is not None and any(
            condition.type == names.DISRUPTION_TARGET
            and condition.status == "True"
            and condition.reason == names.REASON_PREEMPTION_BY_SCHEDULER
            for condition in self.pod.status.conditions
        )

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
        return self._info(pod, signature, self._interned(pod, use_status=True))

    def _info(self, pod: Pod, signature: PodSignature, requests: Requests) -> PodInfo:
        meta = pod.metadata
        labels, terms = self._label_sets.of(meta), signature.terms_in(meta.namespace)
        return PodInfo(pod, signature, requests=requests, labels=labels, terms=terms)

    def _signature(self, pod: Pod, node_name: str, *, is_resize: bool = False) -> PodSignature:
        key = signature_key(pod.spec, node_name, is_resize=is_resize)
        signature = self._signatures.get(key)
        if signature is None:
            signature = self._signatures[key] = PodSignature(
                pod.spec,
                node_name=node_name,
                requests=self._interned(pod, use_status=False),
                scoring_requests=api_requests.scoring_requests(pod),
                row_signature=self._row_signature(pod, node_name, is_resize=is_resize),
                is_resize=is_resize,
            )
        return signature

    def _row_signature(self, pod: Pod, node_name: str, *, is_resize: bool) -> PodSignature | None:
        """Return the signature without wishes about other pods; None if there are none."""
        spec = spec_for_rows(pod.spec)
        if spec is pod.spec:
            return None
        return self._signature(replace(pod, spec=spec), node_name, is_resize=is_resize)

    def _interned(self, pod: Pod, *, use_status: bool) -> Requests:
        gates = {
            "pod_level": self._rules.pod_level,
            "pod_level_status": self._rules.pod_level_status,
        }
        amounts = api_requests.pod_requests(pod, use_status=use_status, **gates)
        non_zero = api_requests.non_zero_requests(pod, use_status=use_status, **gates)
        key = (tuple(sorted(amounts.items())), non_zero)
        requests = self._requests.get(key)
        if requests is None:
            requests = self._requests[key] = Requests(amounts, non_zero)
        return requests
