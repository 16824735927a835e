"""NodePorts: a host port of a node belongs to one pod."""

from __future__ import annotations

import pytest

from kubesched.api.core import ContainerPort
from kubesched.framework.status import Code, unschedulable
from tests.support.objects import container, host_port, node, pod
from tests.support.scheduling import Lab

REJECTED = unschedulable("node(s) didn't have free ports for the requested pod ports")


@pytest.mark.parametrize(
    ("taken", "wanted", "fits"),
    [
        pytest.param(host_port(80), host_port(80), False, id="the same port"),
        pytest.param(host_port(80), host_port(81), True, id="another port"),
        pytest.param(host_port(80), host_port(80, protocol="UDP"), True, id="another protocol"),
        pytest.param(host_port(80, protocol="TCP"), host_port(80), False, id="TCP is the default"),
        pytest.param(
            host_port(80, address="10.0.0.1"),
            host_port(80, address="10.0.0.2"),
            True,
            id="another address",
        ),
        pytest.param(
            host_port(80, address="10.0.0.1"), host_port(80), False, id="all addresses are wanted"
        ),
        pytest.param(
            host_port(80),
            host_port(80, address="10.0.0.1"),
            False,
            id="all addresses are taken",
        ),
        pytest.param(
            host_port(80, address="0.0.0.0"),  # noqa: S104 (what the pod asks for)
            host_port(80, address="10.0.0.1"),
            False,
            id="the wildcard in words",
        ),
    ],
)
def test_conflicts(taken: ContainerPort, wanted: ContainerPort, fits: bool) -> None:
    lab = Lab(node("busy"), node("free"), pod("there", node="busy", ports=[taken]))
    found = lab.rejections("NodePorts", pod(ports=[wanted]))
    assert found == ({} if fits else {"busy": REJECTED})


def test_pods_without_host_ports_are_not_looked_at() -> None:
    lab = Lab(node())
    plugin = lab.plugin("NodePorts")
    assert plugin.pre_filter(lab.pending(pod()).signature).status.code is Code.SKIP
    no_host_port = pod(ports=[ContainerPort(container_port=80)])
    assert plugin.pre_filter(lab.pending(no_host_port).signature).status.code is Code.SKIP
    assert plugin.pre_filter(lab.pending(pod(ports=[80])).signature).status.ok


def test_sidecars_take_ports_and_other_init_containers_do_not() -> None:
    lab = Lab(node("busy"), pod("there", node="busy", ports=[80]))
    early = pod(init_containers=[container("setup", ports=[80])])
    beside = pod(init_containers=[container("proxy", ports=[80], sidecar=True)])
    assert lab.feasible(early) == ["busy"]
    assert lab.rejections("NodePorts", beside) == {"busy": REJECTED}


def test_a_port_is_free_again_when_its_pod_is_gone() -> None:
    lab = Lab(node("n"), pod("there", node="n", ports=[80]))
    asking = pod(ports=[80])
    assert lab.message(asking) == (
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    )
    lab.cluster.remove_pod("there")
    assert lab.feasible(asking) == ["n"]
    lab.cluster.assume(lab.pending(pod("assumed", ports=[80])), "n")
    assert lab.feasible(asking) == []
