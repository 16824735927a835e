"""The fixture that tests of plugins use: what it builds, and what its expectations say."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.errors import ConfigError, UsageError
from kubesched.framework.node_by_node import CachedNodeScore, NodeView, SignatureView
from kubesched.framework.plugin import NODE, REQUESTS
from kubesched.testing import (
    Workbench,
    make_claim,
    make_node,
    make_storage_class,
    make_volume,
)

MANIFESTS = """
apiVersion: v1
kind: List
items:
- kind: Node
  metadata: {name: a, labels: {topology.kubernetes.io/zone: z1}}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
- kind: Node
  metadata: {name: b, labels: {topology.kubernetes.io/zone: z2}}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
kind: Pod
metadata: {name: there}
spec:
  nodeName: a
  containers: [{name: c, resources: {requests: {cpu: 3}}}]
---
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, resources: {limits: {cpu: 1}}}]
"""


class Favourite(CachedNodeScore):
    name = "Favourite"
    reads = NODE | REQUESTS

    def score_node(self, pod: SignatureView, node: NodeView) -> int:
        return 100 if node.name == "n2" else 0


@pytest.fixture
def cluster() -> Workbench:
    return Workbench()


def failure(expectation: object, *arguments: str) -> list[str]:
    with pytest.raises(AssertionError) as failed:
        expectation(*arguments)  # type: ignore[operator]
    return str(failed.value).splitlines()


# --- what it builds ---------------------------------------------------------------------------


def test_nodes_are_numbered_and_take_turns_in_zones(cluster: Workbench) -> None:
    assert cluster.nodes(4, cpu=2, zones=3) == ["n1", "n2", "n3", "n4"]

    zones = [
        (n.metadata.labels or {})["topology.kubernetes.io/zone"]
        for n in cluster.cluster.table.nodes
        if n
    ]
    assert zones == ["zone-1", "zone-2", "zone-3", "zone-1"]


def test_a_placed_pod_is_there_for_the_next(cluster: Workbench) -> None:
    cluster.nodes(1, cpu=2)

    cluster.pod(cpu=2).lands_on("n1")
    cluster.pod(cpu=1).stays_pending_because("1 Insufficient cpu")


def test_a_decision_is_made_once(cluster: Workbench) -> None:
    cluster.nodes(1, cpu=2)
    pod = cluster.pod(cpu=2)

    assert cluster.schedule(pod) is cluster.schedule(pod)
    pod.lands_on("n1")


def test_manifests_are_read_with_workloads_and_defaults(cluster: Workbench) -> None:
    pods = cluster.from_manifests(MANIFESTS)

    assert [each.object.metadata.name for each in pods] == ["web-0", "web-1", "web-2"]
    placements = cluster.schedule(pods)
    assert placements.per_node == {"b": 3}
    assert placements[0].pod == "shop/web-0"


def test_manifests_are_read_from_files_and_folders(cluster: Workbench, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(MANIFESTS)

    assert len(cluster.from_manifests(tmp_path / "all.yaml")) == 3
    assert len(Workbench().from_manifests(tmp_path)) == 3


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (
            "kind: Service\nmetadata: {}",
            "manifest: cannot schedule a Service: known are List, Node",
        ),
        ("- 1\n- 2", r"manifest: expected an object with a kind, got \[1, 2\]"),
        ("kind: Node\nmetadata: {name: 3}", "manifest: Node 3: Expected `str`"),
        ("a: [\nb", "manifest: while parsing"),
    ],
)
def test_manifests_that_make_no_sense_are_refused(
    cluster: Workbench, manifest: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        cluster.from_manifests(manifest)


def test_mistakes_of_a_test_are_told(cluster: Workbench, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pod p is on nowhere, which does not exist"):
        cluster.pod("p", node="nowhere")
    with pytest.raises(UsageError, match="expected key=value:Effect"):
        cluster.node("n", taints=["wrong"])
    with pytest.raises(UsageError, match="no such file or directory"):
        cluster.from_manifests(tmp_path / "none.yaml")


def test_taints_priorities_and_whatever_a_spec_may_say(cluster: Workbench) -> None:
    cluster.node("tainted", cpu=64, taints=["team=red:NoSchedule"])
    cluster.node("plain", cpu=1)
    toleration = {"key": "team", "operator": "Exists"}

    cluster.pod(cpu=1, spec={"tolerations": [toleration]}).lands_on("tainted")
    cluster.pod(cpu=2).stays_pending_because("1 node(s) had untolerated taint(s)")


def test_who_would_have_to_go_is_told(cluster: Workbench) -> None:
    cluster.nodes(1, cpu=2)
    cluster.pod("lowly", cpu=2, node="n1")

    placement = cluster.pod(cpu=2, priority=10).stays_pending_because("Insufficient cpu")

    assert placement.nominated_node == "n1"
    assert placement.victims == ("default/lowly",)


# --- plugins and configuration ----------------------------------------------------------------


def test_plugins_can_be_added_and_taken_away(cluster: Workbench) -> None:
    cluster.nodes(2)
    cluster.pod(cpu=2, node="n2")
    cluster.use(Favourite, weight=100)
    cluster.pod(cpu=1).lands_on("n2")

    alone = Workbench().use(Favourite).without("*")
    alone.nodes(2)
    assert [each.plugin for each in alone.schedule(alone.pod()).scores] == ["Favourite"]


def test_a_configuration_file_is_used_with_the_plugins_it_names(
    cluster: Workbench, tmp_path: Path
) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from kubesched.framework.node_by_node import NodeFilter\n"
        "class Nowhere(NodeFilter):\n"
        "    def filter_node(self, pod, node):\n"
        "        return 'never'\n"
    )
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {enabled: [{name: Nowhere}]}}}]\n"
    )
    cluster.nodes(2)

    cluster.use_config(config, plugin_files=[plugin])
    cluster.pod().stays_pending_because("0/2 nodes are available: 2 never.")

    with pytest.raises(ConfigError, match='FilterPlugin "Nowhere" does not exist'):
        cluster.use_config(config).schedule(cluster.pod())


# --- what is expected, and what is said if it is not so ---------------------------------------


def test_a_pod_that_lands_elsewhere_shows_the_scores(cluster: Workbench) -> None:
    cluster.use(Favourite, weight=3).without("*")
    cluster.nodes(3)

    assert failure(cluster.pod().lands_on, "n1") == [
        "default/pod-1 lands on n2, expected n1",
        "  node  Favourite x3  total",
        "  n2             100    300",
        "  n1               0      0",
        "  n3               0      0",
    ]


def test_a_pod_that_lands_only_by_chance_is_no_success(cluster: Workbench) -> None:
    cluster.nodes(2)
    placement = cluster.schedule(cluster.pod())
    other = {"n1": "n2", "n2": "n1"}[placement.node]

    said = failure(placement.lands_on, placement.node)
    assert said[0] == f"default/pod-1 lands on {placement.node} only by chance: as good are {other}"
    placement.lands_on("n1", "n2")


def test_a_pod_that_stays_pending_shows_the_reasons(cluster: Workbench) -> None:
    cluster.nodes(2, cpu=1)
    cluster.node("off", unschedulable=True)

    headline, message, *reasons = failure(cluster.pod(cpu=2).lands_on, "n1")

    assert headline == "default/pod-1 stays pending, expected n1"
    assert message.startswith(
        "  0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. "
    )
    assert reasons == ["  not n1, n2: Insufficient cpu", "  not off: node(s) were unschedulable"]


def test_pending_for_another_reason_or_not_at_all(cluster: Workbench) -> None:
    cluster.nodes(1, cpu=1)

    said = failure(cluster.pod(cpu=2).stays_pending_because, "Insufficient memory")
    assert said[0] == "default/pod-1 stays pending, but not for 'Insufficient memory'"
    said = failure(cluster.pod(cpu=1).stays_pending_because, "Insufficient cpu")
    assert said[0] == "default/pod-2 lands on n1, expected none"


def test_avoiding_nodes(cluster: Workbench) -> None:
    cluster.use(Favourite, weight=100)
    cluster.nodes(3)

    cluster.pod().avoids("n1", "n3")
    assert failure(cluster.pod().avoids, "n2")[0] == "default/pod-2 may land on n2"


def test_spreading_over_zones(cluster: Workbench) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    cluster.nodes(3, cpu=64, zones=3)
    spread = cluster.pods(
        7, cpu=1, labels={"app": "web"}, spec={"topologySpreadConstraints": [constraint]}
    )
    cluster.schedule(spread).spreads_over_zones()

    packed = cluster.pods(4, cpu=1, spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}})
    assert failure(cluster.schedule(packed).spreads_over_zones) == [
        "4 pods over zones differ by 4, expected 1 at most",
        "  zone-1: 4, zone-2: 0, zone-3: 0",
    ]


def test_pods_that_do_not_land_do_not_spread(cluster: Workbench) -> None:
    cluster.nodes(2, cpu=1, zones=2)

    said = failure(cluster.schedule(cluster.pods(3, cpu=1)).spreads_over_zones)

    assert said[:2] == ["1 of 3 pods stay pending, the first is:", "default/pod-3 is pending"]


# --- what nodes and pods may have -----------------------------------------------------------------


def test_a_node_that_has_the_image_wins(cluster: Workbench) -> None:
    cluster.node("without")
    cluster.node("with", images={"web:1": 900 << 20})

    cluster.pod(image="web:1").lands_on("with")


def test_a_toleration_is_written_as_the_taint_is(cluster: Workbench) -> None:
    cluster.node("tainted", taints=["team=red:NoSchedule"])

    cluster.pod(tolerations=["team=red:NoSchedule"]).lands_on("tainted")
    cluster.pod(tolerations=["team"]).lands_on("tainted")
    cluster.pod(tolerations=["team=blue"]).stays_pending_because("untolerated taint")
    cluster.pod(tolerations=["team:NoExecute"]).stays_pending_because("untolerated taint")


def test_host_ports_are_taken_once_a_node(cluster: Workbench) -> None:
    cluster.nodes(2)
    cluster.pod(host_ports=[80], node="n1")

    cluster.pod(host_ports=[80]).lands_on("n2")
    cluster.pod(host_ports=[80]).stays_pending_because("free ports")


def test_a_pod_goes_where_its_volume_is(cluster: Workbench) -> None:
    cluster.nodes(4, zones=2)
    cluster.put(
        make_storage_class("local"),
        make_volume("disk", storage_class="local", zone="zone-2"),
        make_claim("data", storage_class="local"),
    )

    cluster.pod(claims=["data"]).lands_on("n2", "n4")


def test_a_bound_claim_is_taken_as_bound(cluster: Workbench) -> None:
    cluster.nodes(3)
    cluster.put(make_volume("disk", nodes=["n3"]), make_claim("data", volume="disk"))

    cluster.pod(claims=["data"]).lands_on("n3")


def test_nodes_and_pods_are_not_put_as_other_objects(cluster: Workbench) -> None:
    with pytest.raises(UsageError, match="a Node cannot be put into the cluster"):
        cluster.put(make_node("n1"))
