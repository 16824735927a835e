"""The kubelet that only pretends, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubesched.clock import VirtualClock
from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.embedded.deletion import ObjectDeletion
from kubesched.embedded.kubelet import RUN_SECONDS, Kubelet, KubeletOptions
from kubesched.embedded.registry import Where
from kubesched.embedded.resources import JOBS, NODES, PODS
from kubesched.embedded.schemas import DeleteOptions
from kubesched.embedded.versions import Version
from tests.support.waiting import eventually

JsonObject = dict[str, Any]

START = 1_767_323_045.0


class World:
    """A cluster whose kubelet is told of everything, and whose time is moved by hand."""

    def __init__(self, **options: Any) -> None:
        self.clock = VirtualClock(START)
        self.cluster = EmbeddedCluster(clock=self.clock, run_kubelet=False)
        self.store = self.cluster.store
        self.deletion = ObjectDeletion(self.cluster.registry)
        settings = {"start_delay_s": 1, "job_run_s": 5, "grace_cap_s": 2, "heartbeat_s": None}
        self.kubelet = Kubelet(
            self.store,
            self.deletion,
            self.cluster.registry.times,
            KubeletOptions(**{**settings, **options}),
        )

    def node(self, name: str = "n1", **fields: Any) -> None:
        address = {"addresses": [{"type": "InternalIP", "address": "10.1.1.1"}]}
        obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": address}
        self.cluster.create({**obj, **fields})
        self.notice()

    def pod(self, name: str = "p", *, meta: JsonObject | None = None, **spec: Any) -> None:
        containers = [{"name": "c", "image": "registry.example/app:1"}]
        self.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, **(meta or {})},
                "spec": {"nodeName": "n1", "containers": containers, **spec},
            }
        )
        self.notice()

    def delete(self, name: str = "p") -> None:
        self.deletion.delete(Where(PODS, "default", name), DeleteOptions())
        self.notice()

    def notice(self) -> None:
        """Show the kubelet everything, as often as anything changed."""
        for node in list(self.store.collection(NODES).versions()):
            self.kubelet.observe_node(node)
        for pod in list(self.store.collection(PODS).versions()):
            self.kubelet.observe_pod(pod)

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.clock.advance(0.1)
            self.kubelet.tick()
            self.notice()

    def get(self, name: str = "p") -> Version | None:
        return self.store.get(PODS, f"default/{name}")

    def status(self, name: str = "p") -> JsonObject:
        version = self.get(name)
        assert version is not None
        status: JsonObject = version.obj["status"]
        return status


def test_a_bound_pod_runs_after_a_while() -> None:
    world = World()
    world.node()
    world.pod()

    world.wait(0.8)
    assert world.status()["phase"] == "Pending"
    world.wait(0.4)

    status = world.status()
    assert status["phase"] == "Running"
    assert status["startTime"] == "2026-01-02T03:04:06Z"
    assert status["hostIP"] == "10.1.1.1"
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert conditions == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }
    (container,) = status["containerStatuses"]
    assert container["ready"]
    assert container["state"] == {"running": {"startedAt": "2026-01-02T03:04:06Z"}}
    assert status["qosClass"] == "BestEffort"


def test_a_pod_without_a_node_waits() -> None:
    world = World()
    world.node()
    world.pod(nodeName="")

    world.wait(5)

    assert world.status()["phase"] == "Pending"


def test_a_pod_starts_when_its_node_appears() -> None:
    world = World()
    world.pod()
    world.wait(5)
    assert world.status()["phase"] == "Pending"

    world.node()
    world.wait(1.2)

    assert world.status()["phase"] == "Running"


def test_a_pod_reports_once() -> None:
    world = World()
    world.node()
    world.pod()
    world.wait(2)
    revision = world.store.revision

    world.wait(20)

    assert world.store.revision == revision


def test_addresses_are_not_shared() -> None:
    world = World()
    world.node()
    for number in range(300):
        world.pod(f"p{number}")

    world.wait(2)

    assert len({world.status(f"p{number}")["podIP"] for number in range(300)}) == 300


@pytest.mark.parametrize(
    ("policy", "annotations", "phase"),
    [
        ("Never", {RUN_SECONDS: "3"}, "Succeeded"),
        ("OnFailure", {RUN_SECONDS: "3"}, "Succeeded"),
        ("Always", {RUN_SECONDS: "3"}, "Running"),
        ("Never", {RUN_SECONDS: "long"}, "Running"),
        ("Never", {}, "Running"),
    ],
)
def test_which_pods_end(policy: str, annotations: dict[str, str], phase: str) -> None:
    world = World()
    world.node()
    world.pod(restartPolicy=policy, meta={"annotations": annotations})

    world.wait(3.5)
    assert world.status()["phase"] == "Running"
    world.wait(1)

    assert world.status()["phase"] == phase


def test_a_pod_that_is_done_says_so() -> None:
    world = World()
    world.node()
    world.pod(restartPolicy="Never", meta={"annotations": {RUN_SECONDS: "1"}})

    world.wait(3)

    status = world.status()
    (container,) = status["containerStatuses"]
    assert container["state"]["terminated"] == {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": "2026-01-02T03:04:06Z",
        "finishedAt": "2026-01-02T03:04:07Z",
    }
    ready = [c for c in status["conditions"] if c["type"] == "Ready"]
    assert (ready[0]["status"], ready[0]["reason"]) == ("False", "PodCompleted")


def test_a_job_counts_its_pods() -> None:
    world = World()
    world.node()
    job = world.cluster.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {"completions": 2, "template": {"spec": {"containers": []}}},
        }
    )
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "j",
        "uid": job["metadata"]["uid"],
    }

    def status() -> JsonObject:
        version = world.store.get(JOBS, "default/j")
        assert version is not None
        found: JsonObject = version.obj["status"]
        return found

    world.pod("p1", restartPolicy="Never", meta={"ownerReferences": [owner]})
    world.wait(2)
    assert (status()["active"], status().get("succeeded")) == (1, None)
    world.wait(5)
    assert (status()["active"], status()["succeeded"]) == (0, 1)
    assert "completionTime" not in status()

    world.pod("p2", restartPolicy="Never", meta={"ownerReferences": [owner]})
    world.wait(7)
    assert status()["succeeded"] == 2
    assert status()["completionTime"]
    assert [c["type"] for c in status()["conditions"]] == ["SuccessCriteriaMet", "Complete"]


def test_a_deleted_pod_goes_after_its_grace() -> None:
    world = World(grace_cap_s=100)
    world.node()
    world.pod(terminationGracePeriodSeconds=3)
    world.wait(2)

    world.delete()
    world.wait(2.5)
    assert world.get() is not None
    world.wait(1)

    assert world.get() is None


def test_a_long_grace_is_cut_short() -> None:
    world = World()
    world.node()
    world.pod(terminationGracePeriodSeconds=3600)
    world.wait(2)

    world.delete()
    world.wait(2.2)

    assert world.get() is None


def test_a_deleted_pod_does_not_start() -> None:
    world = World(grace_cap_s=100)
    world.node()
    world.pod()
    world.delete()

    world.wait(2)

    assert world.status()["phase"] == "Pending"


def test_a_pod_of_a_node_that_is_gone_is_removed_too() -> None:
    world = World()
    world.pod()
    world.delete()

    world.wait(3)

    assert world.get() is None


def test_finalizers_are_respected() -> None:
    world = World()
    world.node()
    world.pod(meta={"finalizers": ["example.com/hold"]})
    world.delete()

    world.wait(5)

    held = world.get()
    assert held is not None
    assert held.obj["metadata"]["deletionGracePeriodSeconds"] == 0


def heartbeat(world: World, name: str = "n1") -> JsonObject:
    version = world.store.get(NODES, name)
    assert version is not None
    (ready,) = [c for c in version.obj["status"]["conditions"] if c["type"] == "Ready"]
    return ready


def test_a_node_says_that_it_is_ready_again_and_again() -> None:
    world = World(heartbeat_s=10)
    world.node()

    world.wait(0.5)
    first = heartbeat(world)
    world.wait(25)
    last = heartbeat(world)

    assert first["status"] == "True"
    assert last["lastTransitionTime"] == first["lastTransitionTime"]
    assert last["lastHeartbeatTime"] > first["lastHeartbeatTime"]


def test_nodes_that_are_ready_report_later() -> None:
    world = World(heartbeat_s=10)
    world.cluster.add_nodes(10)
    revision = world.store.revision
    world.notice()

    world.wait(0.1)
    assert world.store.revision <= revision + 1
    world.wait(10.5)

    assert world.store.revision in range(revision + 10, revision + 13)


def test_heartbeats_are_spread_over_the_interval() -> None:
    world = World(heartbeat_s=10)
    for number in range(40):
        world.node(f"n{number}")
    world.wait(1)
    counts = []
    for _ in range(10):
        before = world.store.revision
        world.wait(1)
        counts.append(world.store.revision - before)

    assert sum(counts) in range(36, 45)
    assert max(counts) <= 8


def test_a_node_that_is_not_ready_is_left_alone() -> None:
    world = World(heartbeat_s=1)
    conditions = [{"type": "Ready", "status": "False", "lastHeartbeatTime": "then"}]
    world.node(status={"conditions": conditions})

    world.wait(5)

    assert heartbeat(world) == conditions[0]


def test_many_things_are_done_in_several_turns() -> None:
    world = World()
    world.node()
    for number in range(600):
        world.pod(f"p{number}")
    world.clock.advance(1.1)

    def running() -> int:
        pods = world.store.collection(PODS).versions()
        return sum(pod.obj["status"]["phase"] == "Running" for pod in pods)

    counts = []
    for _ in range(3):
        world.kubelet.tick()
        counts.append(running())

    assert counts == [256, 512, 600]


def test_it_runs_by_itself() -> None:
    async def scenario() -> None:
        options = KubeletOptions(start_delay_s=0.02, grace_cap_s=0.02, heartbeat_s=0.2)
        async with EmbeddedCluster(kubelet=options) as cluster:
            (name,) = cluster.add_nodes(1)
            cluster.create(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "p"},
                    "spec": {"nodeName": name, "containers": [{"name": "c", "image": "x"}]},
                }
            )

            def phase() -> str | None:
                version = cluster.store.get(PODS, "default/p")
                return version.obj["status"]["phase"] if version is not None else None

            await eventually(lambda: phase() == "Running")
            ObjectDeletion(cluster.registry).delete(Where(PODS, "default", "p"), DeleteOptions())
            await eventually(lambda: phase() is None)

    asyncio.run(scenario())
