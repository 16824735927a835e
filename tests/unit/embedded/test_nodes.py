"""Nodes from a template."""

from __future__ import annotations

from kubesched.embedded.nodes import NodeTemplate


def test_nodes_are_numbered_and_spread_over_zones() -> None:
    nodes = list(NodeTemplate(zones=("a", "b")).nodes(3, start=9))

    assert [node["metadata"]["name"] for node in nodes] == ["node-0009", "node-0010", "node-0011"]
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes]
    assert zones == ["b", "a", "b"]


def test_a_node_has_what_the_template_says() -> None:
    template = NodeTemplate(
        cpu="32",
        memory="1Ti",
        pods=250,
        resources={"example.com/gpu": "8"},
        labels={"disk": "ssd"},
        taints=[{"key": "gpu", "effect": "NoSchedule"}],
        name_format="gpu-{}",
    )

    node = template.node(7)

    assert node["metadata"]["name"] == "gpu-7"
    assert node["metadata"]["labels"]["disk"] == "ssd"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "gpu-7"
    assert "topology.kubernetes.io/zone" not in node["metadata"]["labels"]
    assert node["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule"}]
    allocatable = node["status"]["allocatable"]
    assert (allocatable["cpu"], allocatable["memory"], allocatable["pods"]) == ("32", "1Ti", "250")
    assert allocatable["example.com/gpu"] == "8"


def test_addresses_differ() -> None:
    template = NodeTemplate()
    addresses = [
        template.node(n)["status"]["addresses"][0]["address"] for n in (0, 255, 256, 70000)
    ]

    assert addresses == ["10.64.0.0", "10.64.0.255", "10.64.1.0", "10.65.17.112"]
