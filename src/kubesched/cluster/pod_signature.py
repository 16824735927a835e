"""Pod signature: what a pod requires of a node, compiled once per equivalence class of pods.

The pods of one workload differ in name and identity, not in what they require. The signature holds
all that a row-local plugin may read, and nothing else of the pod, so a result for one pod holds for
all pods of its signature.

Inter-pod constraints do not depend on a single row. So row-local plugins get the signature without
them, which many more pods share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

import msgspec
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Affinity, Container, PodSpec, Taint, Toleration
from kubesched.api.labels import parse_int64
from kubesched.api.resource import DeviceTaint, DeviceToleration
from kubesched.cluster.affinity_terms import PodTerms, compile_terms
from kubesched.cluster.node_selector import SelectorMatch
from kubesched.cluster.ports import ANY_ADDRESS, HostPort
from kubesched.cluster.resources import Requests

#: The only integer format that the taint operators Lt and Gt accept.
_DECIMAL_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_encode_key = msgspec.json.Encoder().encode


class PodSignature:
    """The scheduling-relevant part of a pod's spec."""

    def __init__(
        self,
        spec: PodSpec,
        *,
        node_name: str,
        requests: Requests,
        scoring_requests: dict[str, int],
        row_signature: PodSignature | None = None,
        is_resize: bool = False,
    ) -> None:
        #: of the first pod that had this signature; its ``nodeName`` is not part of it
        self.spec = spec
        #: the only node the pod may go to, "" if it has no ``nodeName``
        self.node_name = node_name
        #: whether the pod is on that node and has a deferred resize
        self.is_resize = is_resize
        #: what the pod takes from a node
        self.requests = requests
        #: what scoring counts as requested, with a default for containers that request nothing
        self.scoring_requests = scoring_requests
        self.host_ports = host_ports(spec)
        # Not self where there is none: a signature that refers to itself is a cycle, and would
        # outlive its last pod until the garbage collector runs.
        self._row_signature = row_signature
        #: namespace → terms, which by default select pods of their own namespace
        self._terms: dict[str, PodTerms] = {}

    @property
    def row_signature(self) -> PodSignature:
        """The signature without inter-pod constraints: all that matters to a single row."""
        return self._row_signature or self

    @cached_property
    def node_selector(self) -> SelectorMatch:
        """The pod's ``nodeSelector`` and required node affinity."""
        affinity = self.spec.affinity and self.spec.affinity.node_affinity
        required = affinity and affinity.required_during_scheduling_ignored_during_execution
        return SelectorMatch(self.spec.node_selector, required or None)

    @cached_property
    def images(self) -> tuple[str, ...]:
        """Every image that a node would have to pull, normalized as nodes report them."""
        containers = (*self.spec.init_containers, *self.spec.containers)
        wanted = [container.image for container in containers]
        wanted += [volume.image.reference for volume in self.spec.volumes if volume.image]
        return tuple(normalized_image_name(image) for image in wanted)

    def copy(self) -> PodSignature:
        """Return an independent copy, for a cache that must not keep this one alive."""
        twin = object.__new__(PodSignature)
        twin.__dict__.update(self.__dict__)
        return twin

    def take_over(self, other: PodSignature) -> None:
        """Become a copy of another signature."""
        self.__dict__.clear()
        self.__dict__.update(other.__dict__)

    def terms_in(self, namespace: str) -> PodTerms:
        """Return the affinity terms of a pod of this signature in a namespace."""
        terms = self._terms.get(namespace)
        if terms is None:
            terms = self._terms[namespace] = compile_terms(self.spec.affinity, namespace)
        return terms

    def tolerates(self, taint: Taint, *, comparisons: bool = False) -> bool:
        """Return whether the pod tolerates a taint."""
        return any_tolerates(self.spec.tolerations, taint, comparisons=comparisons)


def signature_key(
    spec: PodSpec,
    node_name: str,
    *,
    is_resize: bool = False,
    claimed: tuple[tuple[str, int], ...] = (),
) -> bytes:
    """Return what two pods must have in common to be of one signature.

    `claimed` is what claims to devices take of the node's own resources.
    """
    return _encode_key(
        (
            node_name,
            is_resize,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.overhead,
            spec.resources,
            spec.containers,
            spec.init_containers,
            spec.ephemeral_containers
            and [each.volume_mounts for each in spec.ephemeral_containers if each.volume_mounts],
            spec.volumes and [volume.image for volume in spec.volumes if volume.image],
            spec.host_network,
            spec.host_users,
            claimed,
        )
    )


def spec_for_rows(spec: PodSpec) -> PodSpec:
    """Return a pod's spec without inter-pod constraints; the same object if it has none."""
    affinity = spec.affinity
    has_pod_terms = affinity and (affinity.pod_affinity or affinity.pod_anti_affinity)
    if not has_pod_terms and not spec.topology_spread_constraints:
        return spec
    to_nodes = affinity and affinity.node_affinity
    return replace(
        spec,
        affinity=Affinity(node_affinity=to_nodes) if to_nodes else None,
        topology_spread_constraints=(),
    )


def spec_for_nodes(spec: PodSpec) -> PodSpec:
    """Return a pod's spec without its requests."""
    return replace(
        spec,
        overhead=None,
        resources=None,
        containers=tuple(map(_without_resources, spec.containers)),
        init_containers=tuple(map(_without_resources, spec.init_containers)),
    )


def _without_resources(container: Container) -> Container:
    return replace(container, resources=None)


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the host ports of all long-running containers."""
    sidecars = (each for each in spec.init_containers if is_sidecar(each))
    return tuple(
        HostPort(port.protocol or "TCP", port.host_port, port.host_ip or ANY_ADDRESS)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )


def is_sidecar(init_container: Container) -> bool:
    """Return whether an init container is a sidecar (``restartPolicy: Always``)."""
    return init_container.restart_policy == "Always"


def normalized_image_name(image: str) -> str:
    """Add the default tag if there is none."""
    if image.rfind(":") <= image.rfind("/"):
        return image + ":latest"
    return image


def any_tolerates(
    tolerations: Iterable[Toleration], taint: Taint, *, comparisons: bool = False
) -> bool:
    """Return whether any of the tolerations covers a taint."""
    return any(tolerates(each, taint, comparisons=comparisons) for each in tolerations)


def tolerates(
    toleration: Toleration | DeviceToleration,
    taint: Taint | DeviceTaint,
    *,
    comparisons: bool = False,
) -> bool:
    """Return whether a toleration covers a taint; `comparisons` allows the operators Lt and Gt."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparisons:
            return _compares(toleration, taint)
        case _:
            return False


def _compares(toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint) -> bool:
    wanted, actual = _canonical_int64(toleration.value), _canonical_int64(taint.value)
    if wanted is None or actual is None:
        return False
    return actual < wanted if toleration.operator == "Lt" else actual > wanted


def _canonical_int64(text: str) -> int | None:
    return parse_int64(text) if _DECIMAL_INTEGER.fullmatch(text) else None


UNSCHEDULABLE_TAINT = Taint(key=names.TAINT_UNSCHEDULABLE, effect=names.NO_SCHEDULE)
