"""PodGroups on an API server: how to create them and their members, and what became of them."""

from __future__ import annotations

from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject
from .scheduler_process import all_pods, pod, pods_path

GATES = "GenericWorkload=true"
RUNTIME_CONFIG = "scheduling.k8s.io/v1beta1=true"
CONDITION = "PodGroupInitiallyScheduled"


def gang(min_count: int) -> JsonObject:
    """A policy: so many members or none."""
    return {"gang": {"minCount": min_count}}


def groups_path(namespace: str, name: str = "") -> str:
    """The API path of a namespace's PodGroups, or of one of them."""
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{namespace}/podgroups"
    return f"{path}/{name}" if name else path


def create_group(
    plane: ControlPlane, namespace: str, policy: JsonObject, *, name: str = "g", **spec: object
) -> None:
    """Create a PodGroup."""
    body = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy, **spec},
    }
    plane.request("POST", groups_path(namespace), body)


def create_gang(
    plane: ControlPlane, namespace: str, name: str, min_count: int, **spec: object
) -> None:
    """Create a PodGroup that needs so many pods."""
    create_group(plane, namespace, gang(min_count), name=name, **spec)


def gang_member(
    name: str,
    group: str = "g",
    *,
    cpu: str = "100m",
    labels: dict[str, str] | None = None,
    **spec: object,
) -> JsonObject:
    """A pod of a group."""
    made = pod(name, requests={"cpu": cpu}, labels=labels)
    of_group = {"podGroupName": group}
    made["spec"].update(schedulingGroup=of_group, terminationGracePeriodSeconds=0, **spec)
    return made


def create_members(
    plane: ControlPlane,
    namespace: str,
    *names: str,
    group: str = "g",
    cpu: str = "100m",
    labels: dict[str, str] | None = None,
    priority_class: str | None = None,
    **spec: object,
) -> None:
    """Create pods of a group, one after the other."""
    if priority_class is not None:
        spec["priorityClassName"] = priority_class
    for name in names:
        made = gang_member(name, group, cpu=cpu, labels=labels, **spec)
        plane.request("POST", pods_path(namespace), made)


def create_single(
    plane: ControlPlane, namespace: str, name: str, *, cpu: str = "100m", **spec: object
) -> None:
    """Create a pod of no group."""
    made = pod(name, requests={"cpu": cpu})
    made["spec"].update(terminationGracePeriodSeconds=0, **spec)
    plane.request("POST", pods_path(namespace), made)


def create_priority_class(plane: ControlPlane, name: str, value: int) -> None:
    """Create a priority class."""
    body = {"metadata": {"name": name}, "value": value}
    plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)


def nodes_of(plane: ControlPlane, namespace: str) -> dict[str, str]:
    """The node of each pod, "" for none."""
    return {
        each["metadata"]["name"]: str(each["spec"].get("nodeName", ""))
        for each in all_pods(plane, namespace)
    }


def group_condition(plane: ControlPlane, namespace: str, name: str = "g") -> JsonObject | None:
    """The condition that the scheduler wrote about a group, if any."""
    status = plane.request("GET", groups_path(namespace, name)).get("status") or {}
    conditions: list[JsonObject] = status.get("conditions", [])
    return next((each for each in conditions if each["type"] == CONDITION), None)


def wait_for_group(
    plane: ControlPlane, namespace: str, status: str, *, name: str = "g"
) -> JsonObject:
    """Wait until a group's condition is True, or False; return it."""

    def written() -> JsonObject | None:
        found = group_condition(plane, namespace, name)
        return found if found is not None and found["status"] == status else None

    return until(written)
