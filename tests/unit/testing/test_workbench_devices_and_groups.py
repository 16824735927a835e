"""The fixture with devices and groups."""

from __future__ import annotations

import pytest

from kubesched.errors import UsageError
from kubesched.testing import Workbench, make_device_claim

MEMORY = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'


@pytest.fixture
def cluster() -> Workbench:
    return Workbench()


# --- devices --------------------------------------------------------------------------------------


def test_pods_go_where_their_devices_are_and_take_them(cluster: Workbench) -> None:
    cluster.nodes(2, cpu=4)
    assert cluster.devices("n2", count=2) == ["gpu-0", "gpu-1"]

    assert cluster.pod(devices=1).lands_on("n2").devices == ("n2-gpu/gpu-0",)
    assert cluster.pod(devices=1).lands_on("n2").devices == ("n2-gpu/gpu-1",)
    cluster.pod(devices=1).stays_pending_because("cannot allocate all claims")
    cluster.cluster.validate()


def test_selectors_taints_and_classes(cluster: Workbench) -> None:
    cluster.nodes(3, cpu=4)
    cluster.devices("n1", capacity={"memory": "24Gi"}, attributes={"model": "a", "index": 1})
    cluster.devices("n2", capacity={"memory": "80Gi"})
    cluster.devices("n3", device_class="nic", taints=["broken:NoSchedule"])

    cluster.pod(devices=1, device_selector=MEMORY).lands_on("n2")
    cluster.pod(devices={"nic": 1}).stays_pending_because("cannot allocate all claims")
    cluster.put(make_device_claim("net", {"nic": 1}, tolerations=["broken"]))
    cluster.pod(device_claims=["net"]).lands_on("n3")


def test_a_claim_can_be_shared(cluster: Workbench) -> None:
    cluster.nodes(2, cpu=4)
    cluster.devices("n1", count=1)
    cluster.put(make_device_claim("shared"))

    for pod in cluster.pods(2, device_claims=["shared"]):
        assert pod.lands_on("n1").devices == ("n1-gpu/gpu-0",)


def test_devices_with_the_same_attribute(cluster: Workbench) -> None:
    cluster.node("n1")
    cluster.devices("n1", count=2, attributes={"numa": 0})
    cluster.put(make_device_claim("near", 2, same="gpu.example.com/numa"))
    cluster.pod(device_claims=["near"]).lands_on("n1")
    with pytest.raises(UsageError, match="has devices of class gpu already"):
        cluster.devices("n1")
    with pytest.raises(UsageError, match="expected key=value:Effect"):
        cluster.devices("n1", device_class="x", taints=["broken"])


# --- groups ---------------------------------------------------------------------------------------


def test_a_gang_lands_as_a_whole_or_not_at_all(cluster: Workbench) -> None:
    cluster.nodes(2, cpu=2)

    outcome = cluster.group("train", min_count=4).pods(4, cpu=1).lands_on("n1", "n2")
    assert outcome.per_node == {"n1": 2, "n2": 2}
    assert str(outcome) == "group default/train: 4 of 4 pods land: " + ", ".join(
        f"{name} 2" for name in outcome.per_node
    )

    late = cluster.group("late", min_count=1).pods(1, cpu=1)
    late.stays_pending_because("Insufficient cpu")
    with pytest.raises(AssertionError, match="expected that all 1 pods land\ngroup default/late"):
        late.lands()
    cluster.cluster.validate()


def test_a_gang_waits_for_its_members(cluster: Workbench) -> None:
    cluster.node("n1")

    outcome = cluster.group("g", min_count=2).pods(1).stays_pending_because("to appear")

    assert outcome.message == ""
    assert outcome.gate.startswith("waiting for minCount pods")


def test_a_gang_lands_in_one_domain(cluster: Workbench) -> None:
    for rack in ("a", "b"):
        for number in (1, 2):
            cluster.node(f"{rack}{number}", cpu=2, labels={"rack": rack})
    cluster.pod(cpu=1, node="a1")

    gang = cluster.group("train", min_count=4, topology="rack").pods(4, cpu=1)
    gang.lands_in("b")
    with pytest.raises(AssertionError, match="expected a, got b"):
        gang.lands_in("a")


def test_members_there_already_count_and_victims_are_named(cluster: Workbench) -> None:
    cluster.node("n1", cpu=3)
    cluster.pod("low", cpu=1, node="n1")
    gang = cluster.group("g", min_count=3, priority=10)
    gang.pod("there", cpu=1, node="n1")
    gang.pods(2, cpu=1)

    assert gang.outcome.victims == ("default/low",)
    with pytest.raises(AssertionError, match="stays pending because 'another reason'"):
        gang.stays_pending_because("another reason")


def test_gangs_claim_devices(cluster: Workbench) -> None:
    cluster.nodes(2, cpu=4)
    cluster.devices("n1", count=2)
    cluster.devices("n2", count=1)

    cluster.group("g", min_count=3).pods(3, devices=1).lands_on("n1", "n2")
    cluster.pod(devices=1).stays_pending_because("cannot allocate all claims")


def test_a_group_without_pods_cannot_be_scheduled(cluster: Workbench) -> None:
    with pytest.raises(UsageError, match="group default/g has no pods to schedule"):
        cluster.group("g").lands()
