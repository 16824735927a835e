"""NodeDeclaredFeatures: a pod that needs a kubelet feature goes where it is declared."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.core import Container, ContainerRestartRule, Pod, VolumeMount
from kubesched.config.features import FeatureGates
from kubesched.framework.status import Code, unresolvable
from kubesched.plugins.node_declared_features import required_features
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

PLUGIN = "NodeDeclaredFeatures"
RESTART = "RestartAllContainersOnContainerExits"
USER_NAMESPACES = "UserNamespacesHostNetworkSupport"
MOUNT_OPTIONS = "VolumeBindMountOptions"
REJECTED = unresolvable("node(s) didn't match Pod's required features")


#: When it was alpha; it can no longer be switched off.
OFF = FeatureGates.of(emulated_version=(1, 35))


def _restarting(action: str) -> Container:
    return Container(name="main", restart_policy_rules=(ContainerRestartRule(action=action),))


def _mounting(*options: str) -> Container:
    return Container(name="main", volume_mounts=(VolumeMount(bind_mount_options=options),))


def _debugged(container: Container) -> Pod:
    plain = pod()
    return replace(plain, spec=replace(plain.spec, ephemeral_containers=(container,)))


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
        pytest.param(pod(containers=[_mounting("noexec")]), {MOUNT_OPTIONS}, id="mount options"),
        pytest.param(pod(init_containers=[_mounting("nodev")]), {MOUNT_OPTIONS}, id="of init"),
        pytest.param(_debugged(_mounting("nosuid")), {MOUNT_OPTIONS}, id="of a debugger"),
        pytest.param(pod(containers=[_mounting()]), set(), id="a plain mount"),
    ],
)
def test_what_a_pod_needs(asking: Pod, want: set[str]) -> None:
    assert required_features(asking.spec) == want
    lab = Lab(node())
    result = lab.plugin(PLUGIN).pre_filter(lab.pending(asking).signature)
    assert (result.status.code is Code.SKIP) is (not want)


def test_mounts_without_options_make_no_difference() -> None:
    lab = Lab()
    plain, mounting = (
        pod("a", containers=[Container(name="main")]),
        pod("b", containers=[_mounting()]),
    )
    assert lab.pending(plain).signature is lab.pending(mounting).signature


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
