"""``/metrics/resources``: requests and limits, one series per pod and resource.

    pods ──▶ without terminated ones ──▶ exact amounts, without zeros ──▶ text

A large cluster has hundreds of thousands of these series, so the text is streamed in chunks: other
tasks run in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

from msgspec.structs import replace

from kubesched.api import names, quantity
from kubesched.api.core import Container, Pod, ResourceRequirements
from kubesched.api.requests import Nanos, exact_requests
from kubesched.errors import QuantityError
from kubesched.metrics.exposition import header, label_text
from kubesched.metrics.shared_table import POD_LIMIT, POD_REQUEST

#: A chunk of this size takes a few milliseconds.
_PODS_A_PIECE: Final = 100
_BILLION: Final = 10**9
_STORAGE: Final = "storage"
_ENDED: Final = frozenset({names.PHASE_SUCCEEDED, names.PHASE_FAILED})


def render_pod_resources(pods: Iterable[Pod]) -> Iterator[bytes]:
    """Format the amounts of these pods, chunk by chunk.

    The pods are read lazily: pass a list if they may change meanwhile. A chunk may be empty, so
    that each takes about the same time.
    """
    requests: list[bytes] = []
    rest = iter(pods)
    is_first = True
    while piece := list(islice(rest, _PODS_A_PIECE)):
        limit_lines: list[str] = []
        request_lines: list[str] = []
        for pod in piece:
            _write(pod, limit_lines, request_lines)
        if request_lines:
            requests.append("".join(request_lines).encode())
        first_line = header(POD_LIMIT) if is_first and limit_lines else ""
        is_first = is_first and not limit_lines
        yield (first_line + "".join(limit_lines)).encode()
    # The lines of a family must be contiguous, so these follow the last of the others.
    if requests:
        yield header(POD_REQUEST).encode()
        yield from requests


def _write(pod: Pod, limit_lines: list[str], request_lines: list[str]) -> None:
    if pod.spec.node_name and pod.status.phase in _ENDED:
        return
    try:
        requests, limits = exact_requests(pod), exact_limits(pod)
    except QuantityError:
        return  # it cannot be scheduled either, and its attempt reports why
    spec = pod.spec
    start = label_text(
        (
            ("namespace", pod.metadata.namespace),
            ("node", spec.node_name),
            ("pod", pod.metadata.name),
            ("priority", "" if spec.priority is None else str(spec.priority)),
        )
    )
    scheduler = label_text((("scheduler", spec.scheduler_name),))
    for name, amounts, lines in (
        (POD_LIMIT.name, limits, limit_lines),
        (POD_REQUEST.name, requests, request_lines),
    ):
        lines += [
            f'{name}{{{start},{_resource_text(resource)},{scheduler},unit="{unit_of(resource)}"}} '
            f"{_amount_text(amount)}\n"
            for resource, amount in amounts.items()
            if amount
        ]


def exact_limits(pod: Pod) -> Nanos:
    """Return the pod's limits in billionths, of all resources it limits.

    Limits add up as requests do, but overhead is added only to limited resources.
    """
    spec = pod.spec
    containers = (*spec.containers, *spec.init_containers)
    said = (spec.resources, *(container.resources for container in containers))
    if not any(resources and resources.limits for resources in said):
        return {}
    limited = replace(
        spec,
        containers=tuple(map(_limits_as_requests, spec.containers)),
        init_containers=tuple(map(_limits_as_requests, spec.init_containers)),
        resources=_limits_of(spec.resources),
        overhead=None,
    )
    limits = exact_requests(replace(pod, spec=limited))
    for name, text in (spec.overhead or {}).items():
        if limits.get(name):
            limits[name] += quantity.nano(text)
    return limits


def _limits_as_requests(container: Container) -> Container:
    return replace(container, resources=_limits_of(container.resources))


def _limits_of(resources: ResourceRequirements | None) -> ResourceRequirements | None:
    return resources and ResourceRequirements(requests=resources.limits)


@lru_cache(maxsize=4096)
def unit_of(resource: str) -> str:
    """Return the unit of a resource, "" for a plain number."""
    if resource == names.CPU:
        return "cores"
    if resource in (names.MEMORY, _STORAGE, names.EPHEMERAL_STORAGE):
        return "bytes"
    if resource.startswith(names.HUGEPAGES_PREFIX):
        return "bytes"
    return "integer" if resource.startswith(names.ATTACHABLE_VOLUMES_PREFIX) else ""


@lru_cache(maxsize=4096)
def _resource_text(resource: str) -> str:
    return label_text((("resource", resource),))


def _amount_text(amount_nano: int) -> str:
    whole, rest = divmod(amount_nano, _BILLION)
    return repr(amount_nano / _BILLION) if rest else str(whole)
