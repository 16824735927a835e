"""Smaller requests: how much the pod could request where nothing else rejects it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.amounts import quantity, readable, rounded_down
from kubesched.api.core import Container, Pod, PodSpec, ResourceRequirements
from kubesched.api.requests import pod_requests
from kubesched.cluster.arrays import IndexArray, Int64Array
from kubesched.cluster.pod_signature import is_sidecar
from kubesched.errors import QuantityError
from kubesched.explain.case import Case, Proposal
from kubesched.framework.status import Status
from kubesched.plugins.node_resources_fit import NodeResourcesFit

FloatArray = npt.NDArray[np.float64]

_INSUFFICIENT = "Insufficient "


def lacking(status: Status) -> tuple[str, ...]:
    """Return the resources that a node lacks; none if it is out of pods."""
    found = tuple(each.removeprefix(_INSUFFICIENT) for each in status.reasons)
    return found if all(each.startswith(_INSUFFICIENT) for each in status.reasons) else ()


def proposals(case: Case) -> Iterator[Proposal]:
    """Propose, for each set of resources that some nodes lack, the smallest reduction."""
    answer = case.reasons.answer_of(NodeResourcesFit.name)
    if answer is None or answer.verdict.answers is None:
        return
    rows = case.reasons.rows_only_by(NodeResourcesFit.name)
    numbers = answer.verdict.answers[rows]
    seen: dict[tuple[str, ...], list[int]] = {}
    for number in np.unique(numbers).tolist():
        wanted = lacking(answer.verdict.statuses[number - 1])
        seen.setdefault(wanted, []).append(number)
    for resources, of_status in seen.items():
        here = rows[np.isin(numbers, of_status)]
        if resources:
            yield from _least(case, here, resources)


def _least(case: Case, rows: IndexArray, resources: tuple[str, ...]) -> Iterator[Proposal]:
    given_up = shortfall(case, rows, resources)
    order = np.argsort(given_up, kind="stable")
    tried: set[tuple[int, ...]] = set()
    for element in order.tolist():
        targets = targets_on(case, int(rows[element]), resources)
        key = tuple(targets.values())
        if key in tried:
            continue
        if len(tried) == _TRIES:
            return
        tried.add(key)
        changed = with_requests(case.pod, targets)
        # Requests of nominated pods may be in the way; then a smaller request may fit.
        if changed is not None and len(case.feasible(changed)):
            yield Proposal(
                kind="request",
                title=title(case, targets),
                cost=float(given_up[element]),
                pod=changed,
            )
            return


_TRIES = 16
_TIE = 1e-4


def shortfall(case: Case, rows: IndexArray, resources: tuple[str, ...]) -> FloatArray:
    """Return for each row the largest share of a request that it cannot meet.

    Ties are broken by the sum of all shares.
    """
    worst, total = np.zeros(len(rows)), np.zeros(len(rows))
    for resource in resources:
        wanted = case.info.requests.amounts[resource]
        share = (wanted - np.maximum(free_on(case, rows, resource), 0)) / wanted
        worst, total = np.maximum(worst, share), total + share
    return worst + _TIE * total


def free_on(case: Case, rows: IndexArray, resource: str) -> Int64Array:
    """Return the free amount of a resource on some rows."""
    table = case.table
    number = table.resources.find(resource)
    if number is None:
        return np.zeros(len(rows), dtype=np.int64)
    free: Int64Array = table.allocatable[number, rows] - table.requested[number, rows]
    return free


def targets_on(case: Case, row: int, resources: tuple[str, ...]) -> dict[str, int]:
    """Return the requests with which the pod fits on a row."""
    rows = np.array([row], dtype=np.intp)
    return {
        resource: rounded_down(resource, int(free_on(case, rows, resource)[0]))
        for resource in resources
    }


def title(case: Case, targets: Mapping[str, int]) -> str:
    """Describe the changed requests."""
    asked = case.info.requests.amounts
    parts = (
        f"{readable(name, amount)} {name} instead of {readable(name, asked[name])}"
        for name, amount in targets.items()
    )
    return f"request {' and '.join(parts)}"


# --- the changed pod --------------------------------------------------------------------------


def with_requests(pod: Pod, targets: Mapping[str, int]) -> Pod | None:
    """Return a pod that requests at most `targets` in total; None if there is no such pod."""
    for resource, total in targets.items():
        overhead = _amount(pod.spec.overhead or {}, resource)
        if total - overhead <= 0:
            return None
        pod = replace(pod, spec=_limited(pod.spec, resource, total - overhead))
    try:
        requested = pod_requests(pod)
    except QuantityError:
        return None
    fits = all(requested.get(resource, 0) <= total for resource, total in targets.items())
    return pod if fits else None


def _limited(spec: PodSpec, resource: str, total: int) -> PodSpec:
    whole = spec.resources
    if whole is not None and resource in (whole.requests or {}):
        return replace(spec, resources=_with_amount(whole, resource, total))
    sidecars = [each for each in spec.init_containers if is_sidecar(each)]
    running = [*spec.containers, *sidecars]
    asked = sum(_requested(each, resource) for each in running)
    share = (total, asked) if asked > total else (1, 1)
    beside = sum(_requested(each, resource) * share[0] // share[1] for each in sidecars)
    return replace(
        spec,
        containers=tuple(_scaled(each, resource, share) for each in spec.containers),
        init_containers=tuple(
            _scaled(each, resource, share)
            if is_sidecar(each)
            else _capped(each, resource, max(total - beside, 0))
            for each in spec.init_containers
        ),
    )


def _scaled(container: Container, resource: str, share: tuple[int, int]) -> Container:
    asked = _requested(container, resource)
    return _capped(container, resource, asked * share[0] // share[1])


def _capped(container: Container, resource: str, most: int) -> Container:
    if container.resources is None or _requested(container, resource) <= most:
        return container
    return replace(container, resources=_with_amount(container.resources, resource, most))


def _with_amount(
    resources: ResourceRequirements, resource: str, amount: int
) -> ResourceRequirements:
    text = quantity(resource, amount)
    requests = {**(resources.requests or {}), resource: text}
    limits = resources.limits
    if limits and resource in limits and resource not in (names.CPU, names.MEMORY):
        # Requests and limits of devices and huge pages must be equal.
        limits = {**limits, resource: text}
    return replace(resources, requests=requests, limits=limits)


def _requested(container: Container, resource: str) -> int:
    return _amount((container.resources and container.resources.requests) or {}, resource)


def _amount(requests: Mapping[str, str | int | float], resource: str) -> int:
    text = requests.get(resource)
    if text is None:
        return 0
    only = ResourceRequirements(requests={resource: text})
    pod = Pod(spec=PodSpec(containers=(Container(resources=only),)))
    return pod_requests(pod).get(resource, 0)
