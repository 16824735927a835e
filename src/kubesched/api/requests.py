"""Requests of a pod and allocatable of a node, in the scheduler's units.

    containers · init containers · sidecars · pod-level resources · overhead
        ── exact_requests ──▶ {resource: billionths} ── rounded up once ──▶ {resource: units}

CPU is counted in thousandths, everything else in whole units. A pod runs its containers and its
sidecars (init containers with ``restartPolicy: Always``) together, and before them its other init
containers one after the other, each beside the sidecars started so far; it needs the larger of the
two. Pod-level requests replace the sum for the resources they name; overhead comes on top.

While a pod on a node is resized, the largest of three sums counts for each resource: the desired
requests of the spec, the requests that the kubelet has allocated, and those in effect (actuated). A
container of which the kubelet reports neither counts with its spec. If the kubelet reported the
resize as infeasible, the spec does not count. If the kubelet reports pod-level resources, these
replace the sums of allocated and actuated requests.

Which rules apply depends on the use:

==================  ==========  ===============  =============  =================================
used for            use_status  pod_level        missing        by
==================  ==========  ===============  =============  =================================
fitting             no          its gate         nothing        ``pod_requests``
balancing           its gate    its gate         nothing        ``pod_requests``
a bound pod's use   its gate    its gate         nothing        ``pod_requests``
… for scores        its gate    its gate         100m, 200Mi    ``non_zero_requests``
a pod's own score   no          never            100m, 200Mi    ``scoring_requests``
==================  ==========  ===============  =============  =================================

``missing`` is the default for a container without a request. The last row is a quirk of
kube-scheduler: its scorer does not know the pod-level gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from kubesched.api import names, quantity
from kubesched.api.core import Container, Node, Pod, ResourceList, ResourceRequirements
from kubesched.api.labels import label_key_errors
from kubesched.errors import QuantityError

#: Default of a container that requests no CPU or no memory, in scoring.
DEFAULT_CPU_MILLI: Final = 100
DEFAULT_MEMORY_BYTES: Final = 200 * 1024 * 1024

_NATIVE: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."
_SIDECAR: Final = "Always"
RESIZE_PENDING: Final = "PodResizePending"
_INFEASIBLE: Final = "Infeasible"
_DEFERRED: Final = "Deferred"

#: Amounts of resources in billionths, exact.
Nanos = dict[str, int]

_NONE: Final[Mapping[str, int]] = MappingProxyType({})
_DEFAULTS: Final[Mapping[str, int]] = MappingProxyType(
    {names.CPU: DEFAULT_CPU_MILLI * 10**6, names.MEMORY: DEFAULT_MEMORY_BYTES * 10**9}
)


# --- resource names ---------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def is_extended_resource(name: str) -> bool:
    """Tell whether the resource is an extended one, i.e. outside of Kubernetes' own names."""
    if "/" not in name or _NATIVE in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not label_key_errors(_QUOTA_PREFIX + name)


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Tell whether the scheduler counts the resource besides cpu, memory and ephemeral storage."""
    return (
        _NATIVE in name
        or name.startswith((names.HUGEPAGES_PREFIX, names.ATTACHABLE_VOLUMES_PREFIX))
        or is_extended_resource(name)
    )


def is_pod_level_resource(name: str) -> bool:
    """Tell whether pod-level resources may contain the resource."""
    return name in (names.CPU, names.MEMORY) or name.startswith(names.HUGEPAGES_PREFIX)


def is_counted_resource(name: str) -> bool:
    """Tell whether the scheduler counts the resource per node."""
    return name in (names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE) or is_scalar_resource(name)


# --- requests and allocatable -----------------------------------------------------------------


def pod_requests(
    pod: Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    pod_level_status: bool = True,
    claims: bool = False,
) -> dict[str, int]:
    """Return the pod's requests by counted resource, CPU in thousandths.

    ``use_status`` is for pods on a node (gate InPlacePodVerticalScaling), ``pod_level`` the gate
    PodLevelResources, ``pod_level_status`` InPlacePodLevelResourcesVerticalScaling, ``claims``
    DRANodeAllocatableResources.
    """
    exact = exact_requests(
        pod,
        use_status=use_status,
        pod_level=pod_level,
        pod_level_status=pod_level_status,
        claims=claims,
    )
    return _in_units(exact, pod)


def non_zero_requests(
    pod: Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    pod_level_status: bool = True,
    claims: bool = False,
) -> tuple[int, int]:
    """Return (CPU in thousandths, memory in bytes) that a placed pod counts for in scores.

    With pod-level resources, the default applies only to a resource that neither the pod nor any of
    its containers requests.
    """
    missing = _DEFAULTS
    if pod_level and _requests_as_a_whole(pod):
        exact = exact_requests(
            pod,
            use_status=use_status,
            pod_level=True,
            pod_level_status=pod_level_status,
            claims=claims,
        )
        missing = {name: amount for name, amount in _DEFAULTS.items() if name not in exact}
    counted = exact_requests(
        pod,
        use_status=use_status,
        pod_level=pod_level,
        pod_level_status=pod_level_status,
        claims=claims,
        missing=missing,
    )
    units = _in_units({name: counted.get(name, 0) for name in _DEFAULTS}, pod)
    return units[names.CPU], units[names.MEMORY]


def scoring_requests(pod: Pod) -> dict[str, int]:
    """Return the requests that NodeResourcesFit scores a pod with: no pod-level resources."""
    return _in_units(exact_requests(pod, pod_level=False, missing=_DEFAULTS), pod)


def are_requests_complete(pod: Pod) -> bool:
    """Tell whether each container requests cpu and memory, and nothing else adds to these.

    Then no default applies, so that scores count what the pod requests. Most pods are like this.
    """
    spec = pod.spec
    if spec.resources is not None or pod.status.node_allocatable_resource_claim_statuses:
        return False
    return all(
        (wanted := _wanted(each)) and names.CPU in wanted and names.MEMORY in wanted
        for each in (*spec.containers, *spec.init_containers)
    )


def node_allocatable(node: Node) -> dict[str, int]:
    """Return a node's allocatable by counted resource, CPU in thousandths, and of pods.

    Overflows are 0, as in kube-scheduler; raises QuantityError if a text is malformed.
    """
    offered = {}
    for name, text in (node.status.allocatable or {}).items():
        if name == names.PODS or is_counted_resource(name):
            try:
                offered[name] = quantity.capacity(text, milli=name == names.CPU)
            except QuantityError as error:
                at = f"node {node.metadata.name}: allocatable: {name}"
                raise QuantityError(f"{at}: {error}") from None
    return offered


def is_resized(pod: Pod) -> bool:
    """Tell whether the requests of a pod on a node may differ from its spec.

    Kubelets report the resources of all containers; they differ from the spec only during a resize.
    """
    status = pod.status
    if status.resources is not None or _resize_is_infeasible(pod):
        return True
    statuses = status.container_statuses + status.init_container_statuses
    if not statuses:
        return False
    wanted = {each.name: _wanted(each) for each in pod.spec.containers + pod.spec.init_containers}
    return any(
        said is not None and said != (wanted.get(each.name) or {})
        for each in statuses
        for said in (each.allocated_resources, _requests_of(each.resources))
    )


# --- the computation --------------------------------------------------------------------------


def exact_requests(
    pod: Pod,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    pod_level_status: bool = True,
    claims: bool = False,
    missing: Mapping[str, int] = _NONE,
) -> Nanos:
    """Return the pod's requests in billionths, of all resources it names.

    ``missing`` is added for each container without a request; a request of zero is a request.
    Raises QuantityError, naming the pod, if a quantity cannot be used.
    """
    try:
        total = _container_requests(
            pod,
            use_status=use_status,
            pod_level_status=pod_level_status,
            missing=missing,
            claimed=claimed_amounts(pod) if claims else {},
        )
        if pod_level:
            total.update(_pod_level_requests(pod, use_status=use_status and pod_level_status))
        if pod.spec.overhead:
            _add(total, _nanos(pod.spec.overhead))
    except QuantityError as error:
        raise _of_pod(pod, error) from None
    return total


def container_requests(pod: Pod) -> Nanos:
    """Return what containers request and claims take, without pod-level requests and overhead."""
    total = _sum(pod, _wanted, _NONE)
    _add(total, claimed_amounts(pod))
    return total


def container_limits(pod: Pod) -> Nanos:
    """Return the same of limits; what claims take of a resource counts where there is a limit.

    Of huge pages it counts always.
    """
    total = _sum(pod, _limits, _NONE)
    for name, amount in claimed_amounts(pod).items():
        if name in total or name.startswith(names.HUGEPAGES_PREFIX):
            total[name] = total.get(name, 0) + amount
    return total


def claimed_amounts(pod: Pod, container: str | None = None) -> Nanos:
    """Return what claims take of the node's own resources, all of them or those of a container."""
    total: Nanos = {}
    for claim in pod.status.node_allocatable_resource_claim_statuses:
        if container is not None and container not in claim.containers:
            continue
        for mapped in claim.mapping:
            if mapped.quantity is not None:
                _add(total, _nanos({mapped.name: mapped.quantity}))
        users = len(claim.containers) if container is None else 1
        for overhead in claim.overhead:
            amount = 0 if overhead.per_pod is None else quantity.nano(overhead.per_pod)
            if overhead.per_container is not None:
                amount += users * quantity.nano(overhead.per_container)
            _add(total, {overhead.name: amount})
    return total


def _container_requests(
    pod: Pod,
    *,
    use_status: bool,
    pod_level_status: bool,
    missing: Mapping[str, int],
    claimed: Nanos,
) -> Nanos:
    wanted = _sum(pod, _wanted, missing)
    _add(wanted, claimed)
    if not use_status:
        return wanted
    infeasible = _resize_is_infeasible(pod)
    total = {} if infeasible else wanted
    whole = pod.status.resources
    allocated = pod.status.allocated_resources
    if pod_level_status and allocated is not None and whole and whole.requests is not None:
        # Pod-level resources that the kubelet reports are the sum already.
        _raise_to(total, _nanos(allocated))
        _raise_to(total, _nanos(whole.requests))
        return total
    statuses = {
        each.name: each
        for each in reversed((*pod.status.container_statuses, *pod.status.init_container_statuses))
    }

    def unreported(container: Container) -> ResourceList | None:
        return None if infeasible else _wanted(container)

    def allocated_to(container: Container) -> ResourceList | None:
        status = statuses.get(container.name)
        found = None if status is None else status.allocated_resources
        return unreported(container) if found is None else found

    def actuated_for(container: Container) -> ResourceList | None:
        status = statuses.get(container.name)
        found = None if status is None else _requests_of(status.resources)
        return allocated_to(container) if found is None else found

    # Kubelets do not count it as allocated to containers, and count it as in effect.
    reported = _sum(pod, allocated_to, missing)
    _add(reported, claimed)
    _raise_to(total, reported)
    _raise_to(total, _sum(pod, actuated_for, missing))
    return total


def _wanted(container: Container) -> ResourceList | None:
    return _requests_of(container.resources)


def _limits(container: Container) -> ResourceList | None:
    return None if container.resources is None else container.resources.limits


def _requests_of(resources: ResourceRequirements | None) -> ResourceList | None:
    return None if resources is None else resources.requests


def _sum(
    pod: Pod, said: Callable[[Container], ResourceList | None], missing: Mapping[str, int]
) -> Nanos:
    """Return the sum of containers, which run together, or the maximum of init containers."""

    def amounts(container: Container) -> Nanos:
        return {**missing, **_nanos(said(container))}

    total: Nanos = {}
    for container in pod.spec.containers:
        _add(total, amounts(container))
    sidecars: Nanos = {}
    largest_start: Nanos = {}
    for container in pod.spec.init_containers:
        own = amounts(container)
        if container.restart_policy == _SIDECAR:
            _add(total, own)
            _add(sidecars, own)
            _raise_to(largest_start, sidecars)
        else:
            _add(own, sidecars)
            _raise_to(largest_start, own)
    _raise_to(total, largest_start)
    return total


def _requests_as_a_whole(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(map(is_pod_level_resource, resources.requests or ()))


def _pod_level_requests(pod: Pod, *, use_status: bool) -> Nanos:
    """Return the pod-level requests, which replace the sums of the resources that they name."""
    if pod.spec.resources is None or not _requests_as_a_whole(pod):
        return {}
    wanted = _nanos(pod.spec.resources.requests)
    actual = pod.status.resources if use_status else None
    if actual is not None:
        wanted = {} if _resize_is_infeasible(pod) else wanted
        _raise_to(wanted, _nanos(actual.requests))
        _raise_to(wanted, _nanos(pod.status.allocated_resources))
    return {name: amount for name, amount in wanted.items() if is_pod_level_resource(name)}


def is_resize_deferred(pod: Pod) -> bool:
    """Tell whether a resize is deferred until the node has enough free resources."""
    return _pending_resize(pod) == _DEFERRED


def _resize_is_infeasible(pod: Pod) -> bool:
    return _pending_resize(pod) == _INFEASIBLE


def _pending_resize(pod: Pod) -> str | None:
    """Return why a resize is pending, None if there is none."""
    for condition in pod.status.conditions:
        if condition.type == RESIZE_PENDING:
            return condition.reason
    return None


def _nanos(resources: ResourceList | None) -> Nanos:
    if not resources:
        return {}
    parsed = {}
    for name, text in resources.items():
        try:
            parsed[name] = quantity.nano(text)
        except QuantityError as error:
            raise QuantityError(f"{name}: {error}") from None
    return parsed


def _add(total: Nanos, more: Nanos) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Nanos, least: Nanos) -> None:
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _in_units(exact: Nanos, pod: Pod) -> dict[str, int]:
    units = {}
    for name, amount in exact.items():
        if is_counted_resource(name):
            try:
                to_units = quantity.milli_of_nano if name == names.CPU else quantity.value_of_nano
                units[name] = to_units(amount)
            except QuantityError as error:
                raise _of_pod(pod, QuantityError(f"{name}: {error}")) from None
    return units


def _of_pod(pod: Pod, error: QuantityError) -> QuantityError:
    return QuantityError(f"pod {pod.metadata.namespace}/{pod.metadata.name}: requests: {error}")
