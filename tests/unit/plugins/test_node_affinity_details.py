"""What nodes have instead of what the pod requires of them."""

from __future__ import annotations

from kubesched.cluster.node_rows import NodeRows
from kubesched.config.args import NodeAffinityArgs
from kubesched.framework.cycle_state import CycleState
from kubesched.plugins.node_affinity import NodeAffinityPlugin
from tests.support.objects import named, node, pod, requirement, requires, term
from tests.support.worlds import details, explained, world_of

MISMATCH = "node(s) didn't match Pod's node affinity/selector"
NODES = (
    node("n1", labels={"disk": "hdd"}, zone="a"),
    node("n2", labels={"disk": "hdd"}, zone="b"),
    node("n3", zone="b"),
)


def test_a_node_selector_names_the_values_that_there_are_the_most_common_first() -> None:
    found = details(pod("p", node_selector={"disk": "ssd"}), *NODES)

    assert found == {
        MISMATCH: [
            "node selector disk=ssd: the node has hdd",
            "node selector disk=ssd: the node has no such label",
        ]
    }


def test_each_value_comes_with_its_nodes_and_for_programs() -> None:
    said = explained(pod("p", node_selector={"disk": "ssd"}), *NODES)

    first, second = said.reasons[0].details
    assert (first.nodes, first.examples) == (2, ("n1", "n2"))
    assert first.values == {"key": "disk", "operator": "In", "values": ["ssd"], "has": "hdd"}
    assert (second.nodes, second.values["has"]) == (1, None)
    assert [each.text for each in said.nodes[0].reasons[0].details] == [first.text]


def test_of_several_terms_each_says_what_it_lacks_on_nodes_that_meet_none() -> None:
    either = requires(
        term(requirement("disk", "In", "ssd", "nvme"), requirement("gpu", "Exists")),
        term(requirement("topology.kubernetes.io/zone", "In", "a")),
    )

    found = details(pod("p", node_affinity=either, cpu="8"), *NODES)[MISMATCH]

    # n1 is in zone a, and so is rejected for its cpu alone.
    assert found == [
        "node affinity term 1 gpu: the node has no such label",
        "node affinity term 2 topology.kubernetes.io/zone=a: the node has b",
        "node affinity term 1 disk in (nvme,ssd): the node has no such label",
        "node affinity term 1 disk in (nvme,ssd): the node has hdd",
    ]


def test_a_named_node_is_named() -> None:
    found = details(pod("p", node_affinity=requires(named("n9"))), *NODES)

    assert found[MISMATCH] == ["node affinity metadata.name=n9: another node is named"]


def test_long_lists_of_values_are_cut() -> None:
    many = requires(term(requirement("rack", "In", *(f"r{n}" for n in range(9)))))

    (text,) = details(pod("p", node_affinity=many), node("n1"))[MISMATCH]

    assert text == "node affinity rack in (r0,r1,r2,r3 and 5 more): the node has no such label"


def test_the_profiles_own_affinity_is_told_apart() -> None:
    added = requires(term(requirement("pool", "In", "batch")))
    plugin = NodeAffinityPlugin(NodeAffinityArgs(added_affinity=added))
    world = world_of(node("n1", labels={"pool": "web"}), node("n2", labels={"pool": "batch"}))
    info = world.compile(pod("p", node_selector={"disk": "ssd"}))

    found = list(plugin.details(CycleState(), info, NodeRows.all_of(world.table)))

    assert [(each.reason, each.text) for each in found] == [
        (
            "node(s) didn't match scheduler-enforced node affinity",
            "node affinity pool=batch: the node has web",
        ),
        (MISMATCH, "node selector disk=ssd: the node has no such label"),
    ]
