"""Cases with a list of pods, placed one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis
from tests.support.evaluating import feasible_rows, total_scores

from .answers import CaseCluster, as_status, post_filter
from .comparison import Difference

Json = Any


def answer_sequence(case: dict[str, Json]) -> dict[str, Json]:
    """Place the pods of a case in order; among equally good nodes the lowest name counts."""
    here = CaseCluster(case)
    return {
        "id": case["id"],
        "nodeOrder": here.names(here.cluster.table.order.rows()),
        "results": [
            _place(here, here.pending(manifest), index, preempts=bool(case.get("preemption")))
            for index, manifest in enumerate(case["pending"])
        ],
    }


def _place(here: CaseCluster, pod: PodInfo, index: int, *, preempts: bool) -> dict[str, Json]:
    result: dict[str, Json] = {"pod": pod.full_name, "node": None}
    gated = here.framework.gate(pod)
    if not gated.ok:
        result["preenqueue"] = {gated.plugin: as_status(gated)}
        return result
    result["feasible"] = 0
    if len(here.cluster.table) == 0:
        result["message"] = NO_NODES_AVAILABLE
        return result
    state = CycleState()
    try:
        found = feasible_rows(here.framework.evaluator, state, pod)
        if isinstance(found, Diagnosis):
            post = post_filter(here, state, pod, found)
            found.post_filter_message = post["message"]
            result["message"] = found.message()
            if not preempts or not post.get("victims"):
                return result
            result["nominatedNode"], result["victims"] = post["nominatedNode"], post["victims"]
            pod = _make_room(here, pod, post)
            state = CycleState()
            found = feasible_rows(here.framework.evaluator, state, pod)
            assert not isinstance(found, Diagnosis), found.message()
        total = total_scores(here.framework.evaluator, state, pod, found)
    except AttemptError as failed:
        result["scheduleError"] = failed.status.message
        return result
    names = here.names(found)
    result["feasible"] = _count_feasible(here, pod, len(names))
    best = sorted(name for name, score in zip(names, total, strict=True) if score == total.max())
    result["node"] = best[0]
    if len(names) > 1:
        result["score"] = int(total.max())
    if len(best) > 1:
        result["ties"] = len(best)
    reserved = here.framework.reserve(state, pod, best[0])
    assert reserved.ok, reserved.message
    _settle(here, pod, best[0], index)
    return result


def _count_feasible(here: CaseCluster, pod: PodInfo, found: int) -> int:
    """Count the nodes that a pod fits on, even if it goes to the one it is nominated to."""
    if not pod.pod.status.nominated_node_name:
        return found
    status = replace(pod.pod.status, nominated_node_name="")
    anywhere = here.cluster.compiler.pending(replace(pod.pod, status=status))
    rows = feasible_rows(here.framework.evaluator, CycleState(), anywhere)
    return 0 if isinstance(rows, Diagnosis) else len(rows)


def _make_room(here: CaseCluster, pod: PodInfo, post: dict[str, Json]) -> PodInfo:
    """Remove the victims; return the pod with its nomination."""
    table = here.cluster.table
    row = table.row_of(post["nominatedNode"])
    assert row is not None
    for victim in list(table.pods[row].values()):
        if victim.full_name in post["victims"]:
            here.cluster.remove_pod(victim.uid)
    status = replace(pod.pod.status, nominated_node_name=post["nominatedNode"])
    return here.cluster.compiler.pending(replace(pod.pod, status=status))


def _settle(here: CaseCluster, pod: PodInfo, node_name: str, index: int) -> None:
    """Count the pod as placed, as its binding will."""
    bound = replace(
        pod.pod,
        spec=replace(pod.pod.spec, node_name=node_name),
        status=replace(
            pod.pod.status, start_time=f"2025-06-01T00:{index // 60:02}:{index % 60:02}Z"
        ),
    )
    here.cluster.nominator.clear(pod.uid)
    here.cluster.put_pod(bound)


def sequence_differences(expect: dict[str, Json], actual: dict[str, Json]) -> list[Difference]:
    """Compare pod by pod, up to the first one that was placed differently."""
    if expect["nodeOrder"] != actual["nodeOrder"]:
        return [Difference("nodeOrder", "", expect["nodeOrder"], actual["nodeOrder"])]
    return list(_first_difference(expect["results"], actual["results"]))


def _first_difference(expected: list[Json], actual: list[Json]) -> Iterator[Difference]:
    for want, have in zip(expected, actual, strict=True):
        if _comparable(want) != _comparable(have):
            yield Difference("results", want["pod"], want, have)
            return


def _comparable(result: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in result.items() if value is not None}
