"""NodeDeclaredFeatures: a pod that needs a kubelet feature goes where it is declared."""

from __future__ import annotations

import pytest

from kubesched.api.core import Container, ContainerRestartRule, Pod
from kubesched.config.features import FeatureGates
from kubesched.framework.status import Code, unresolvable
from kubesched.plugins.node_declared_features import required_features
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

PLUGIN = "NodeDeclaredFeatures"
RESTART = "RestartAllContainersOnContainerExits"
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
REJECTED = unresolvable("node(s) didn't match Pod's required features")


#: The gate, and those that depend on it.
OFF = FeatureGates.of(
    dict.fromkeys(
        (
            PLUGIN,
            "ExtendWebSocketsToKubelet",
            "InPlacePodLevelResourcesVerticalScaling",
            "InPlacePodVerticalScalingInitContainers",
            RESTART,
        ),
        False,
    )
)


def _restarting(action: str) -> Container:
    return Container(name="main", restart_policy_rules=(ContainerRestartRule(action=action),))


@pytest.mark.parametrize(
    ("asking", "want"),
    [
        pytest.param(pod(), set(), id="nothing special"),
        pytest.param(
            pod(containers=[_restarting("RestartAllContainers")]), {RESTART}, id="restarts all"
        ),
        pytest.param(
            pod(init_containers=[_restarting("RestartAllContainers")]), {RESTART}, id="init"
        ),
        pytest.param(pod(containers=[_restarting("Restart")]), set(), id="restarts itself"),
        pytest.param(
            pod(host_network=True, host_users=False), {USER_NAMESPACES}, id="own users on host net"
        ),
        pytest.param(pod(host_network=True, host_users=True), set(), id="host's users"),
        pytest.param(pod(host_network=True), set(), id="users not mentioned"),
        pytest.param(pod(host_users=False), set(), id="own network"),
    ],
)
def test_what_a_pod_needs(asking: Pod, want: set[str]) -> None:
    assert required_features(asking.spec) == want
    lab = Lab(node())
    result = lab.plugin(PLUGIN).pre_filter(lab.pending(asking).signature)
    assert (result.status.code is Code.SKIP) is (not want)


def test_nodes_must_declare_all_of_it() -> None:
    lab = Lab(
        node("none"),
        node("one", features=[RESTART]),
        node("other", features=["SomethingElse", USER_NAMESPACES]),
        node("both", features=[RESTART, USER_NAMESPACES]),
    )
    asking = pod(
        containers=[_restarting("RestartAllContainers")], host_network=True, host_users=False
    )
    assert lab.rejections(PLUGIN, asking) == dict.fromkeys(("none", "one", "other"), REJECTED)
    lab.cluster.put_node(node("none", features=[RESTART, USER_NAMESPACES]))
    assert lab.feasible(asking) == ["none", "both"]


def test_without_its_gate_the_plugin_is_not_there() -> None:
    lab = Lab(node("none"), gates=OFF)
    assert PLUGIN not in lab.framework.plugins.instances
    assert lab.feasible(pod(host_network=True, host_users=False)) == ["none"]


def test_enabled_by_name_without_its_gate_it_does_nothing() -> None:
    lab = Lab(node("none"), only=[PLUGIN], gates=OFF)
    asking = pod(host_network=True, host_users=False)
    plugin = lab.plugin(PLUGIN)
    assert plugin.pre_filter(lab.pending(asking).signature).status.code is Code.SKIP
    assert plugin.events_to_register() == []
    assert lab.feasible(asking) == ["none"]
