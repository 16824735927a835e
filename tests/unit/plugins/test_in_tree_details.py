"""Every filter in the tree says which numbers and names are behind its rejections."""

from __future__ import annotations

import json

import pytest

from kubesched.api.core import Pod
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.object_store import HasMeta
from kubesched.config import loading
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.explain.explaining import ExplainOptions, explain
from kubesched.explain.report import Reason, ReasonCount
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.plugin import Filter, Plugin, RowFilter
from kubesched.plugins.in_tree import IN_TREE
from tests.support.device_objects import claim as device_claim
from tests.support.device_objects import claiming, device, device_class, request, slice_of
from tests.support.objects import host_port, must, node, pod, pod_term, spread_over, taint
from tests.support.storage_objects import (
    DRIVER,
    claim,
    csi_node,
    gce_disk,
    persistent_volume,
    storage_class,
    using,
    with_volumes,
)
from tests.support.worlds import world_of

ZONE = "topology.kubernetes.io/zone"
OPTIONS = ExplainOptions(changes=False)

#: Plugin, the pod that it rejects, all else, and what it says.
CASES: list[tuple[str, Pod, list[HasMeta], list[str]]] = [
    (
        "NodeResourcesFit",
        pod("p", cpu="3", memory="6Gi", requests={"nvidia.com/gpu": "1"}),
        [
            node("n1", cpu="4", memory="8Gi"),
            node("n2", cpu="2", memory="4Gi", pods=1),
            pod("a", node="n1", cpu="2500m", memory="2304Mi"),
            pod("b", node="n2", memory="5Gi"),
        ],
        [
            "3 requested, 2 of 2 free",
            "3 requested, 1500m of 4 free",
            "6Gi requested, 5.8Gi of 8Gi free",
            "6Gi requested, 0 of 4Gi free, 1Gi overcommitted",
            "1 requested, the node has none",
            "1 pods is the node's limit",
        ],
    ),
    (
        "TaintToleration",
        pod("p"),
        [
            node("n1", taints=[taint("spot:NoSchedule"), taint("gpu=yes:NoExecute")]),
            node("n2", taints=[taint("gpu=yes:NoExecute"), taint("old:PreferNoSchedule")]),
        ],
        ["taint gpu=yes:NoExecute", "taint spot:NoSchedule"],
    ),
    (
        "NodeUnschedulable",
        pod("p"),
        [node("n1", unschedulable=True)],
        ["cordoned, until kubectl uncordon"],
    ),
    (
        "NodeAffinity",
        pod("p", node_selector={"disk": "ssd"}),
        [node("n1")],
        ["node selector disk=ssd: the node has no such label"],
    ),
    (
        "NodePorts",
        pod("p", ports=[host_port(8080)]),
        [
            node("n1"),
            pod("a", node="n1"),
            pod("b", node="n1", ports=[host_port(8080, address="10.0.0.1")]),
        ],
        ["host port 8080/TCP is used by default/b"],
    ),
    (
        "NodeDeclaredFeatures",
        pod("p", host_network=True, host_users=False),
        [node("n1")],
        ["the node does not declare UserNamespacesHostNetworkSupport"],
    ),
    (
        "PodTopologySpread",
        pod("p", labels={"app": "web"}, spread=[spread_over(ZONE, app="web")], cpu="2"),
        [
            node("n1", zone="a"),
            node("n2", zone="b", cpu="1"),
            pod("a", node="n1", labels={"app": "web"}),
        ],
        [
            (
                f"{ZONE}=a has 1 matching app=web, the smallest count is 0 (in b): "
                "skew 2 with this pod, maxSkew 1"
            )
        ],
    ),
    (
        "InterPodAffinity",
        pod("p", near=must(pod_term(ZONE, app="web"))),
        [node("n1", zone="a")],
        ["no pod anywhere matches app=web"],
    ),
    (
        "VolumeRestrictions",
        using(with_volumes(pod("p"), gce_disk("d")), "data"),
        [
            node("n1"),
            node("n2"),
            with_volumes(pod("a", node="n1"), gce_disk("d")),
            using(pod("b", node="n1"), "data"),
            claim("data", modes=["ReadWriteOncePod"]),
        ],
        [
            "gce d is used by default/a",
            "claim default/data (ReadWriteOncePod) is used by default/b on n1",
        ],
    ),
    (
        "NodeVolumeLimits",
        using(pod("p"), "new"),
        [
            node("n1"),
            csi_node("n1", {DRIVER: 1}),
            storage_class("fast"),
            using(pod("a", node="n1"), "old"),
            claim("old", storage_class="fast"),
            claim("new", storage_class="fast"),
        ],
        [f"{DRIVER}: 1 of at most 1 volumes in use, 1 more needed"],
    ),
    (
        "VolumeBinding",
        using(pod("p"), "data"),
        [node("n1")],
        ["PersistentVolumeClaim default/data does not exist"],
    ),
    (
        "VolumeZone",
        using(pod("p"), "data"),
        [
            node("n1", zone="a"),
            persistent_volume("pv", labels={ZONE: "b"}),
            claim("data", volume="pv"),
        ],
        [f"PersistentVolume pv of claim default/data is in {ZONE} b"],
    ),
    (
        "DynamicResources",
        claiming(pod("p"), "gpus"),
        [
            node("n1"),
            node("n2"),
            device_class(),
            slice_of("s1", device("d1"), node="n1"),
            device_claim("gpus", request("gpu", count=2)),
        ],
        [
            "request gpu of claim default/gpus: 2 wanted, 1 of 1 usable",
            "the node has no devices",
        ],
    ),
]


def enabling(plugin: str, gates: FeatureGates) -> SchedulerConfiguration:
    """The default configuration with a plugin that it does not enable."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": plugin}]}}}],
    }
    return loading.decode(json.dumps(document), "test", gates=gates)


@pytest.mark.parametrize(
    ("plugin", "asked", "objects", "texts"), [pytest.param(*each, id=each[0]) for each in CASES]
)
def test_a_rejection_comes_with_numbers_and_names(
    plugin: str, asked: Pod, objects: list[HasMeta], texts: list[str]
) -> None:
    gates = FeatureGates.of({"NodeDeclaredFeatures": True})
    world = world_of(*objects, gates=gates)
    if plugin not in world.frameworks["default-scheduler"].plugins.instances:
        world = world_of(*objects, config=enabling(plugin, gates), gates=gates)
    said = explain(world, asked, OPTIONS)

    reasons: list[Reason | ReasonCount] = [*said.pod_reasons, *said.reasons]
    found = [detail.text for each in reasons if each.plugin == plugin for detail in each.details]
    assert sorted(found) == sorted(texts)


def test_the_name_of_its_node_is_behind_a_rejection_of_others() -> None:
    world = world_of(node("n1"))
    info = world.cluster.compiler.pending(pod("p", node="n9"))
    plugin = world.frameworks["default-scheduler"].plugins.instances["NodeName"]

    (detail,) = plugin.details(CycleState(), info, NodeRows.all_of(world.table))

    assert detail.text == "spec.nodeName is n9, which does not exist"


def test_there_is_no_filter_without_details() -> None:
    filters = {
        name for name in IN_TREE if issubclass(IN_TREE.get(name) or Plugin, Filter | RowFilter)
    }

    # Only a pod that has a node already, to be resized there, is the other one's.
    others = {"NodeName", "DeferredPodScheduling"}
    assert filters - others == {plugin for plugin, *_ in CASES}
