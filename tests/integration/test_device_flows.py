"""Claims from their creation to their end on a real API server, with the rights of a scheduler.

The flows are those that kube-scheduler's own tests of devices go through: claims of templates, of
several pods, and of more pods than there are devices; devices and taints that come and go; pools
that contradict themselves; devices of no node, of several, and by the name of a resource.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.waiting import until

from .claim_controller import DEVICES, all_claims, make_claims, release_claims
from .control_plane import MERGE_PATCH, ControlPlane
from .device_cluster import DRIVER, DeviceCluster, request, selecting
from .scheduler_process import (
    all_pods,
    configuration,
    delete_pod,
    node_of,
    patch_node,
    pod,
    pods_path,
    profile,
    run_scheduler,
    wait_until_bound,
    wait_until_refused,
)

pytestmark = pytest.mark.usefixtures("clean_cluster")

NO_DEVICES = "cannot allocate all claims"


def named(*names: str) -> list[dict[str, object]]:
    return [{"name": each} for each in names]


def test_claims_of_templates_live_as_long_as_their_pods(
    control_plane: ControlPlane, namespace: str
) -> None:
    cluster = DeviceCluster(control_plane, namespace)
    cluster.publish("n0", named("a", "b"))
    cluster.template("one", request())
    own = [{"name": "own", "resourceClaimTemplateName": "one"}]
    with run_scheduler(control_plane) as scheduler:
        scheduler.wait_until_scheduling()
        for name in ("p", "q", "r"):
            body = pod(name, resourceClaims=own)
            make_claims(control_plane, control_plane.request("POST", pods_path(namespace), body))
        until(lambda: len(cluster.all_devices()) == 2)
        (waiting,) = until(
            lambda: [
                each["metadata"]["name"]
                for each in all_pods(control_plane, namespace)
                if each["status"].get("conditions", [{}])[0].get("reason") == "Unschedulable"
            ]
        )
        gone = next(
            each for each in all_pods(control_plane, namespace) if each["spec"].get("nodeName")
        )
        delete_pod(control_plane, namespace, gone["metadata"]["name"])
        release_claims(control_plane, namespace, {gone["metadata"]["uid"]})
        wait_until_bound(control_plane, namespace, waiting)
    assert sorted(device for _, device in cluster.all_devices()) == ["a", "b"]
    assert len(all_claims(control_plane, namespace)) == 2


def test_a_pod_waits_until_its_claim_is_made(control_plane: ControlPlane, namespace: str) -> None:
    cluster = DeviceCluster(control_plane, namespace)
    cluster.publish("n0", named("a"))
    with run_scheduler(control_plane) as scheduler:
        scheduler.wait_until_scheduling()
        cluster.pod("p")
        cluster.claim("other")
        cluster.pod("other")
        wait_until_bound(control_plane, namespace, "other")
        assert node_of(control_plane, namespace, "p") == ""
        delete_pod(control_plane, namespace, "other")
        cluster.claim("p")
        wait_until_refused(control_plane, namespace, "p")
        release_claims(control_plane, namespace, _users(cluster, "other"))
        wait_until_bound(control_plane, namespace, "p")


def test_all_devices_are_used_and_none_twice(control_plane: ControlPlane, namespace: str) -> None:
    cluster = DeviceCluster(control_plane, namespace, nodes=3)
    for name in cluster.nodes:
        cluster.publish(name, named(*(f"{name}-{number}" for number in range(20))))
    with run_scheduler(control_plane) as scheduler:
        scheduler.wait_until_scheduling()
        # More pods than devices, created while others are decided about and bound.
        claims = [
            {"metadata": {"name": f"c{number}"}, "spec": {"devices": {"requests": [request()]}}}
            for number in range(66)
        ]
        path = f"{DEVICES}/namespaces/{namespace}/resourceclaims"
        control_plane.create_many(path, claims)
        pods = [
            pod(f"p{number}", resourceClaims=[{"name": "c", "resourceClaimName": f"c{number}"}])
            for number in range(66)
        ]
        control_plane.create_many(pods_path(namespace), pods)
        until(lambda: len(_bound(control_plane, namespace)) == 60)
        first = _bound(control_plane, namespace)
        assert len(set(cluster.all_devices())) == len(cluster.all_devices()) == 60
        gone = [
            each for each in all_pods(control_plane, namespace) if each["spec"].get("nodeName")
        ][:6]
        for each in gone:
            delete_pod(control_plane, namespace, each["metadata"]["name"])
        release_claims(control_plane, namespace, {each["metadata"]["uid"] for each in gone})
        until(lambda: len(_bound(control_plane, namespace)) == 60)
    assert _bound(control_plane, namespace) != first
    assert len(set(cluster.all_devices())) == len(cluster.all_devices()) == 60


def test_one_claim_of_many_pods(control_plane: ControlPlane, namespace: str) -> None:
    cluster = DeviceCluster(control_plane, namespace, nodes=3)
    cluster.publish("net", named("a"), allNodes=True)
    cluster.claim("shared")
    with run_scheduler(control_plane):
        control_plane.create_many(pods_path(namespace), [_sharing(number) for number in range(60)])
        placed = wait_until_bound(control_plane, namespace, seconds=60)
    assert set(placed.values()) == {"n0", "n1", "n2"}
    users = cluster.status("shared")["reservedFor"]
    assert sorted(each["name"] for each in users) == sorted(placed)


@pytest.mark.slow
def test_a_claim_that_has_as_many_pods_as_it_may(
    control_plane: ControlPlane, namespace: str
) -> None:
    cluster = DeviceCluster(control_plane, namespace, nodes=3)
    cluster.publish("net", named("a"), allNodes=True)
    cluster.claim("shared")
    with run_scheduler(control_plane):
        control_plane.create_many(pods_path(namespace), [_sharing(number) for number in range(256)])
        wait_until_bound(control_plane, namespace, seconds=120)
        more = [_sharing(number) for number in range(256, 260)]
        control_plane.create_many(pods_path(namespace), more)
        cluster.wait_until_told("p256", "reservedFor")
        gone = _users(cluster, "shared")
        for number in range(256):
            delete_pod(control_plane, namespace, f"p{number}")
        release_claims(control_plane, namespace, gone)
        wait_until_bound(control_plane, namespace, seconds=60)


def test_slices_come_and_go(control_plane: ControlPlane, namespace: str) -> None:
    cluster = DeviceCluster(control_plane, namespace, nodes=2)
    with run_scheduler(control_plane):
        cluster.claiming_pod("first")
        assert f"2 {NO_DEVICES}" in wait_until_refused(control_plane, namespace, "first")
        cluster.publish("n1", named("a"))
        assert wait_until_bound(control_plane, namespace, "first") == {"first": "n1"}
        cluster.claiming_pod("second")
        wait_until_refused(control_plane, namespace, "second")
        cluster.publish("n1", named("a", "b"))  # another generation, one more device
        wait_until_bound(control_plane, namespace, "second")
        cluster.wait_for_devices("second", "b")
        cluster.publish("n0-1", named("c"), pool="n0", count=2, nodeName="n0")
        cluster.claiming_pod("third")
        wait_until_refused(control_plane, namespace, "third")  # half of a pool is none
        cluster.publish("n0-2", named("d"), pool="n0", count=2, nodeName="n0")
        assert wait_until_bound(control_plane, namespace, "third") == {"third": "n0"}
        cluster.withdraw("n0-1")
        cluster.withdraw("n0-2")
        cluster.claiming_pod("fourth")
        wait_until_refused(control_plane, namespace, "fourth")


def test_pools_that_contradict_themselves(control_plane: ControlPlane, namespace: str) -> None:
    cluster = DeviceCluster(control_plane, namespace, nodes=2)
    for name in ("n0-1", "n0-2"):
        cluster.publish(name, named("a"), pool="n0", count=2, nodeName="n0")
    with run_scheduler(control_plane):
        cluster.claiming_pod("p")
        assert wait_until_refused(control_plane, namespace, "p") == (
            "0/2 nodes are available: 1 cannot allocate all claims, 1 invalid resource pools were "
            "encountered. preemption: 0/2 nodes are available: 2 Preemption is not helpful for "
            "scheduling."
        )
        cluster.publish("n1", named("a"))
        assert wait_until_bound(control_plane, namespace, "p") == {"p": "n1"}


def test_taints_come_and_go(control_plane: ControlPlane, namespace: str) -> None:
    cluster = DeviceCluster(control_plane, namespace)
    rules = f"{DEVICES}/devicetaintrules"
    taint = {"key": "testing", "effect": "NoSchedule"}
    spec = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
    control_plane.request("POST", rules, {"metadata": {"name": "rule"}, "spec": spec})
    cluster.publish("n0", named("a", "b"))  # after the rule
    with run_scheduler(control_plane):
        cluster.claiming_pod("intolerant")
        assert NO_DEVICES in wait_until_refused(control_plane, namespace, "intolerant")
        cluster.claiming_pod("tolerant", request(tolerations=[{**taint, "operator": "Exists"}]))
        wait_until_bound(control_plane, namespace, "tolerant")
        control_plane.request("DELETE", f"{rules}/rule")
        wait_until_bound(control_plane, namespace, "intolerant")
        cluster.publish("n0", [*named("a", "b"), {"name": "c", "taints": [taint]}])
        cluster.claiming_pod("last")
        wait_until_refused(control_plane, namespace, "last")
        cluster.publish("n0", named("a", "b", "c"))
        wait_until_bound(control_plane, namespace, "last")
    assert cluster.devices_of("tolerant") + cluster.devices_of("intolerant") == ["a", "b"]


def test_a_filter_that_takes_too_long_is_an_error_and_tried_again(
    control_plane: ControlPlane, namespace: str
) -> None:
    cluster = DeviceCluster(control_plane, namespace)
    different = [
        {"name": f"d{number}", "attributes": {"id": {"int": number}}} for number in range(24)
    ]
    cluster.publish("n0", different)
    # Twelve of these and one of those that are not there: each choice of twelve is tried.
    is_one, is_other = f'has(device.attributes["{DRIVER}"].id)', "false"
    requests = (
        request("many", count=12, selectors=selecting(is_one)),
        request("other", selectors=selecting(f'device.driver == "other" || {is_other}')),
    )
    constraints = [{"distinctAttribute": f"{DRIVER}/id", "requests": ["many"]}]
    args = {"DynamicResources": {"filterTimeout": "100ms"}}
    settings = configuration(control_plane.scheduler_kubeconfig, profile(args=args))
    with run_scheduler(control_plane, settings):
        cluster.claiming_pod("p", *requests, constraints=constraints)
        said = cluster.wait_until_told("p", "timed out")
        where = 'running "DynamicResources" filter plugin: node n0'
        assert said == f"{where}: timed out trying to allocate devices"
        control_plane.request(
            "PATCH",
            f"{DEVICES}/deviceclasses/gpu",
            {"spec": {"selectors": selecting("true")}},
            content_type=MERGE_PATCH,
        )
        cluster.publish("n0-other", named("x"), driver="other", nodeName="n0")
        wait_until_bound(control_plane, namespace, "p")


@pytest.mark.parametrize("is_explicit", [True, False])
def test_extended_resources_are_devices(
    control_plane: ControlPlane, namespace: str, *, is_explicit: bool
) -> None:
    cluster = DeviceCluster(control_plane, namespace)
    name = "deviceclass.resource.kubernetes.io/gpu"
    if is_explicit:
        name = "example.com/gpu"
        patch = {"spec": {"extendedResourceName": name}}
        path = f"{DEVICES}/deviceclasses/gpu"
        control_plane.request("PATCH", path, patch, content_type=MERGE_PATCH)
    cluster.publish("n0", named("a", "b"))
    with run_scheduler(control_plane):
        for each in ("p", "q"):
            body = pod(each, requests={name: "2"})
            control_plane.request("POST", pods_path(namespace), body)
            until(lambda: all_pods(control_plane, namespace)[-1]["status"].get("conditions"))
        wait_until_bound(control_plane, namespace, "p")
        wait_until_refused(control_plane, namespace, "q")
        found = control_plane.request("GET", pods_path(namespace, "p"))
        mapped = found["status"]["extendedResourceClaimStatus"]
        assert cluster.devices_of(mapped["resourceClaimName"]) == ["a", "b"]
        assert mapped["requestMappings"] == [
            {"containerName": "c", "resourceName": name, "requestName": "container-0-request-0"}
        ]
        delete_pod(control_plane, namespace, "p")
        release_claims(control_plane, namespace, {found["metadata"]["uid"]})
        wait_until_bound(control_plane, namespace, "q")
    assert len(all_claims(control_plane, namespace)) == 1


def test_devices_that_name_their_nodes_one_by_one(
    control_plane: ControlPlane, namespace: str
) -> None:
    cluster = DeviceCluster(control_plane, namespace, nodes=4)
    terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1", "n2", "n3"]}]
    several = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    devices: list[dict[str, Any]] = [
        {"name": "for-n0", "nodeName": "n0"},
        {"name": "for-several", "nodeSelector": several},
    ]
    cluster.publish("each", devices, perDeviceNodeSelection=True)
    cluster.claim("shared")
    with run_scheduler(control_plane):
        cluster.claim("alone")
        cluster.pod("alone", nodeSelector={"kubernetes.io/hostname": "n0"})
        wait_until_bound(control_plane, namespace, "alone")
        apart = {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app": "apart"}},
                    }
                ]
            }
        }
        for number in range(3):
            cluster.pod(f"p{number}", "shared", labels={"app": "apart"}, affinity=apart)
        placed = wait_until_bound(control_plane, namespace, "p0", "p1", "p2")
    assert set(placed.values()) == {"n1", "n2", "n3"}
    assert cluster.devices_of("alone") == ["for-n0"]


def test_the_node_with_the_best_alternative_wins(
    control_plane: ControlPlane, namespace: str
) -> None:
    cluster = DeviceCluster(control_plane, namespace, nodes=4)
    for name in cluster.nodes:
        cluster.device_class(f"of-{name}", f"{name}.example.com")
        cluster.publish(name, named("a", "b"), driver=f"{name}.example.com")

    def first_of(*names: str) -> dict[str, object]:
        alternatives = [{"name": each, "deviceClassName": f"of-{each}"} for each in names]
        return {"name": "r", "firstAvailable": alternatives}

    with run_scheduler(control_plane):
        cluster.claiming_pod("single", first_of("n2", "n0", "n1", "n3"))
        cluster.claim("one", first_of("n1", "n3", "n0"))
        cluster.claim("two", first_of("n3", "n0", "n1"))
        cluster.pod("both", "one", "two")
        placed = wait_until_bound(control_plane, namespace, "single", "both")
    assert placed == {"single": "n2", "both": "n3"}
    results = cluster.status("one")["allocation"]["devices"]["results"]
    assert [each["request"] for each in results] == ["r/n3"]


def test_administrators_see_devices_in_use(control_plane: ControlPlane, namespace: str) -> None:
    cluster = DeviceCluster(control_plane, namespace)
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    path = f"/api/v1/namespaces/{namespace}"
    control_plane.request("PATCH", path, label, content_type=MERGE_PATCH)
    cluster.publish("n0", named("a", "b"))
    with run_scheduler(control_plane):
        cluster.claiming_pod("user", request(count=2))
        wait_until_bound(control_plane, namespace, "user")
        cluster.claiming_pod("admin", request(allocationMode="All", adminAccess=True))
        wait_until_bound(control_plane, namespace, "admin")
        cluster.claiming_pod("next")
        wait_until_refused(control_plane, namespace, "next")
    assert cluster.devices_of("admin") == cluster.devices_of("user") == ["a", "b"]


def test_an_allocation_that_is_of_no_use_is_given_up(
    control_plane: ControlPlane, namespace: str
) -> None:
    cluster = DeviceCluster(control_plane, namespace, nodes=2)
    cluster.publish("n0", named("a"))
    with run_scheduler(control_plane):
        cluster.claiming_pod("first")
        wait_until_bound(control_plane, namespace, "first")
        gone = _users(cluster, "first")
        delete_pod(control_plane, namespace, "first")
        release_claims(control_plane, namespace, gone, deallocate=False)
        assert cluster.devices_of("first") == ["a"]
        patch_node(control_plane, "n0", {"spec": {"unschedulable": True}})
        cluster.publish("n1", named("b"))
        cluster.pod("second", "first")
        assert wait_until_bound(control_plane, namespace, "second") == {"second": "n1"}
    assert cluster.devices_of("first") == ["b"]


def _sharing(number: int) -> dict[str, object]:
    return pod(f"p{number}", resourceClaims=[{"name": "c", "resourceClaimName": "shared"}])


def _users(cluster: DeviceCluster, claim: str) -> set[str]:
    return {each["uid"] for each in cluster.status(claim).get("reservedFor", ())}


def _bound(plane: ControlPlane, namespace: str) -> dict[str, str]:
    """The uids of the pods that have nodes, by their names."""
    return {
        each["metadata"]["name"]: each["metadata"]["uid"]
        for each in all_pods(plane, namespace)
        if each["spec"].get("nodeName")
    }
