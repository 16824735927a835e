"""Requests of a pod and allocatable of a node, in the scheduler's units.

    containers · init containers · sidecars · pod-level resources · overhead
        ── exact_requests ──▶ {resource: billionths} ── rounded up once ──▶ {resource: units}

CPU is counted in thousandths, everything else in whole units. A pod runs its containers and its
sidecars (init containers with ``restartPolicy: Always``) together, and before them its other init
containers one after the other, each beside the sidecars started so far; it needs the larger of the
two. Pod-level requests replace the sum for the resources they name; overhead comes on top.

While a pod on a node is resized, three sums count, and of each resource the largest: of what the
spec wants, of what the kubelet has allocated, and of what is in effect (actuated). A container of
which the kubelet reports neither counts with its spec. If the kubelet called the resize infeasible,
the spec does not count at all. Where the kubelet reports the pod as a whole, that stands for the
sums of what is allocated and actuated.

Which rules apply depends on who asks:

==================  ==========  ===============  =============  =================================
asked for           use_status  pod_level        missing        by
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
    pod: Pod, *, use_status: bool = False, pod_level: bool = True, pod_level_status: bool = True
) -> dict[str, int]:
    """Return the pod's requests by counted resource, CPU in thousandths.

    ``use_status`` is for pods on a node (gate InPlacePodVerticalScaling), ``pod_level`` the gate
    PodLevelResources, ``pod_level_status`` InPlacePodLevelResourcesVerticalScaling.
    """
    exact = exact_requests(
        pod, use_status=use_status, pod_level=pod_level, pod_level_status=pod_level_status
    )
    return _in_units(exact, pod)


def non_zero_requests(
    pod: Pod, *, use_status: bool = False, pod_level: bool = True, pod_level_status: bool = True
) -> tuple[int, int]:
    """Return (CPU in thousandths, memory in bytes) that a placed pod counts for in scores.

    With pod-level resources, the default applies only to a resource that neither the pod nor any of
    its containers requests.
    """
    missing = _DEFAULTS
    if pod_level and _requests_as_a_whole(pod):
        exact = exact_requests(
            pod, use_status=use_status, pod_level=True, pod_level_status=pod_level_status
        )
        missing = {name: amount for name, amount in _DEFAULTS.items() if name not in exact}
    counted = exact_requests(
        pod,
        use_status=use_status,
        pod_level=pod_level,
        pod_level_status=pod_level_status,
        missing=missing,
    )
    units = _in_units({name: counted.get(name, 0) for name in _DEFAULTS}, pod)
    return units[names.CPU], units[names.MEMORY]


def scoring_requests(pod: Pod) -> dict[str, int]:
    """Return the requests that NodeResourcesFit scores a pod with: no pod-level resources."""
    return _in_units(exact_requests(pod, pod_level=False, missing=_DEFAULTS), pod)


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
    """Tell whether a pod on a node may count for something else than its spec says.

    Kubelets report the resources of all containers, which are those of the spec but for a resize.
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
    missing: Mapping[str, int] = _NONE,
) -> Nanos:
    """Return the pod's requests in billionths, of all resources it names.

    ``missing`` is added for each container without a request; a request of zero is a request.
    Raises QuantityError, naming the pod, if a quantity cannot be used.
    """
    try:
        total = _container_requests(
            pod, use_status=use_status, pod_level_status=pod_level_status, missing=missing
        )
        if pod_level:
            total.update(_pod_level_requests(pod, use_status=use_status and pod_level_status))
        if pod.spec.overhead:
            _add(total, _nanos(pod.spec.overhead))
    except QuantityError as error:
        raise _of_pod(pod, error) from None
    return total


def _container_requests(
    pod: Pod, *, use_status: bool, pod_level_status: bool, missing: Mapping[str, int]
) -> Nanos:
    wanted = _sum(pod, _wanted, missing)
    if not use_status:
        return wanted
    infeasible = _resize_is_infeasible(pod)
    total = {} if infeasible else wanted
    whole = pod.status.resources
    allocated = pod.status.allocated_resources
    if pod_level_status and allocated is not None and whole and whole.requests is not None:
        # What the kubelet says of the pod as a whole is the sum already.
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

    _raise_to(total, _sum(pod, allocated_to, missing))
    _raise_to(total, _sum(pod, actuated_for, missing))
    return total


def _wanted(container: Container) -> ResourceList | None:
    return _requests_of(container.resources)


def _requests_of(resources: ResourceRequirements | None) -> ResourceList | None:
    return None if resources is None else resources.requests


def _sum(
    pod: Pod, said: Callable[[Container], ResourceList | None], missing: Mapping[str, int]
) -> Nanos:
    """Add up what is said of containers: they run together, after the init containers."""

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
    """Return what stands for the sum of the containers, of the resources that it names."""
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
    """Tell whether the kubelet would resize the pod if there were room."""
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
