"""NodePorts, when a pod goes: did it have one of the ports?"""

from __future__ import annotations

import pytest

from kubesched.api.core import Pod
from kubesched.cluster.ports import ANY_ADDRESS
from tests.support.objects import container, host_port, node, pod
from tests.support.scheduling import Lab

from .hinting import added, deleted, helps

PLUGIN = "NodePorts"
WAITING = pod("p", ports=[8080])


@pytest.mark.parametrize(
    ("gone", "want"),
    [
        pytest.param(pod("o", node="n", ports=[8080]), True, id="the port"),
        pytest.param(pod("o", node="n", ports=[80, 8080]), True, id="one of its ports"),
        pytest.param(pod("o", node="n", ports=[8081]), False, id="another port"),
        pytest.param(pod("o", node="n"), False, id="no ports"),
        pytest.param(pod("o", ports=[8080]), False, id="it was on no node"),
        pytest.param(pod("o", nominated="n", ports=[8080]), True, id="it was to be on a node"),
        pytest.param(
            pod("o", node="n", ports=[host_port(8080, protocol="UDP")]), False, id="by UDP"
        ),
        pytest.param(
            pod("o", node="n", ports=[host_port(8080, protocol="TCP", address="10.0.0.1")]),
            True,
            id="on one address, all are wanted",
        ),
        pytest.param(
            pod("o", node="n", init_containers=[container("proxy", ports=[8080], sidecar=True)]),
            True,
            id="a sidecar's port",
        ),
        pytest.param(
            pod("o", node="n", init_containers=[container("setup", ports=[8080])]),
            False,
            id="an init container's port",
        ),
    ],
)
def test_a_pod_goes(gone: Pod, want: bool) -> None:
    assert helps(Lab(), PLUGIN, WAITING, deleted(gone)) is want


@pytest.mark.parametrize(
    ("address", "want"),
    [("10.0.0.1", True), ("10.0.0.2", False), (ANY_ADDRESS, True), ("", True)],
)
def test_addresses(address: str, want: bool) -> None:
    waiting = pod("p", ports=[host_port(53, protocol="UDP", address="10.0.0.1")])
    gone = pod("o", node="n", ports=[host_port(53, protocol="UDP", address=address)])
    assert helps(Lab(), PLUGIN, waiting, deleted(gone)) is want


def test_all_ports_of_a_new_node_are_free() -> None:
    assert helps(Lab(), PLUGIN, WAITING, added(node()))
