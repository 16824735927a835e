"""Devices as the page tells of them: of a node, and of a pod's claims."""

from __future__ import annotations

from typing import Any

from kubesched.api.core import Pod
from kubesched.api.decoding import convert
from kubesched.api.resource import ResourceClaim, ResourceSlice
from kubesched.web.device_state import claims_of, devices_of
from kubesched.web.world_state import WorldState
from tests.support.objects import node
from tests.support.worlds import world_of


def a_slice(name: str, *devices: str, pool: str = "n1", generation: int = 1, **where: Any) -> Any:
    spec = {
        "driver": "gpu.example.com",
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
        "devices": [{"name": each} for each in devices],
        **(where or {"nodeName": "n1"}),
    }
    return convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def claim(name: str, *devices: str, users: tuple[str, ...] = ()) -> ResourceClaim:
    results = [
        {"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": each}
        for each in devices
    ]
    selector = {"cel": {"expression": "true"}}
    exactly = {"deviceClassName": "gpu", "count": 2, "selectors": [selector]}
    alternatives = [
        {"name": "x", "deviceClassName": "a", "allocationMode": "All"},
        {"name": "y", "deviceClassName": "b", "count": 1},
    ]
    requests = [{"name": "r", "exactly": exactly}, {"name": "s", "firstAvailable": alternatives}]
    reserved = [{"resource": "pods", "name": each, "uid": each} for each in users]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    return convert(
        {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"devices": {"requests": requests}},
            "status": status if devices else {},
        },
        ResourceClaim,
    )


def state_of(*objects: Any) -> WorldState:
    return WorldState(world_of(*objects))


def test_a_node_without_devices() -> None:
    n1 = node("n1")

    assert devices_of(state_of(n1, a_slice("s", "g0", nodeName="n2")), n1) == ()


def test_the_devices_of_a_node_and_who_has_them() -> None:
    n1 = node("n1")
    state = state_of(n1, a_slice("s", "g0", "g1"), claim("c", "g1", users=("p", "q")))

    (pool,) = devices_of(state, n1)

    assert (pool.driver, pool.pool, pool.shared) == ("gpu.example.com", "n1", False)
    assert (pool.total, pool.allocated) == (2, 1)
    free, taken = pool.devices
    assert (free.name, free.claims, free.pods) == ("g0", (), ())
    assert taken.claims == ("default/c",)
    assert taken.pods == ("default/p", "default/q")


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    n1 = node("n1")
    state = state_of(n1, a_slice("old", "g0", "g1"), a_slice("new", "g9", generation=2))

    (pool,) = devices_of(state, n1)

    assert [each.name for each in pool.devices] == ["g9"]


def test_devices_that_several_nodes_reach_are_said_to_be_shared() -> None:
    n1 = node("n1", labels={"rack": "a"})
    expression = {"key": "rack", "operator": "In", "values": ["a"]}
    here = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    there = {"nodeSelectorTerms": [{"matchExpressions": [{**expression, "values": ["b"]}]}]}
    state = state_of(
        n1,
        a_slice("own", "g0"),
        a_slice("all", "net", pool="fabric", allNodes=True),
        a_slice("near", "nic", pool="rack-a", nodeSelector=here),
        a_slice("far", "nic", pool="rack-b", nodeSelector=there),
    )

    pools = devices_of(state, n1)

    assert [(each.pool, each.shared) for each in pools] == [
        ("n1", False),
        ("fabric", True),
        ("rack-a", True),
    ]


def test_the_claims_of_a_pod() -> None:
    pod = convert(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "p"},
            "spec": {
                "schedulerName": "default-scheduler",
                "resourceClaims": [
                    {"name": "one", "resourceClaimName": "c"},
                    {"name": "two", "resourceClaimTemplateName": "t"},
                    {"name": "three", "resourceClaimTemplateName": "t"},
                ],
            },
            "status": {"resourceClaimStatuses": [{"name": "two", "resourceClaimName": "d"}]},
        },
        Pod,
    )
    state = state_of(pod, claim("c", "g0", users=("p",)), claim("d"))

    one, two, three = claims_of(state, pod)

    assert (one.claim, one.state) == ("c", "reserved")
    assert one.devices == ("gpu.example.com/n1/g0",)
    assert one.requests == ("r: 2 of gpu where true", "s: all of a", "s: or 1 of b")
    assert (two.claim, two.state, two.devices) == ("d", "pending", ())
    assert (three.claim, three.state) == ("", "missing")
