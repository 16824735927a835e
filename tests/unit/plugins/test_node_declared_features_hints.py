"""NodeDeclaredFeatures, when nodes or the pod itself change."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.core import Container, ContainerRestartRule, Pod
from kubesched.queue.events import Action
from kubesched.queue.hints import Change
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

from .hinting import added, changed_itself, helps, updated

PLUGIN = "NodeDeclaredFeatures"
DECLARED = Action.UPDATE_NODE_DECLARED_FEATURE
ONE = node("n", features=["UserNamespacesHostNetworkSupport"])
TWO = node("n", features=["UserNamespacesHostNetworkSupport", "SomethingElse"])

RESTARTING = Container(
    name="main", restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),)
)


def isolated(name: str = "p", *, containers: list[Container] | None = None) -> Pod:
    """A pod that needs a feature, and another if its containers do."""
    return pod(name, host_network=True, host_users=False, containers=containers)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(added(ONE), True, id="a node with a feature came"),
        pytest.param(added(node("n")), True, id="a node without any came"),
        pytest.param(updated(DECLARED, node("n"), ONE), True, id="a feature more"),
        pytest.param(updated(DECLARED, TWO, ONE), True, id="a feature less"),
        pytest.param(updated(DECLARED, ONE, ONE), False, id="the same features"),
        pytest.param(updated(DECLARED, node("n"), node("n", cpu="9")), False, id="still none"),
    ],
)
def test_nodes(change: Change[Any], want: bool) -> None:
    """Which features changed does not matter, as in kube-scheduler."""
    assert helps(Lab(), PLUGIN, isolated(), change) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(isolated(), pod("p"), True, id="needs nothing any more"),
        pytest.param(pod("p"), isolated(), True, id="needs something now"),
        pytest.param(
            isolated(containers=[RESTARTING]), isolated(), True, id="needs one of two things"
        ),
        pytest.param(isolated(), isolated(), False, id="needs the same"),
    ],
)
@pytest.mark.parametrize("action", [Action.UPDATE, Action.UPDATE_POD_LABEL])
def test_its_own_needs(old: Pod, new: Pod, action: Action, want: bool) -> None:
    assert helps(Lab(), PLUGIN, isolated(), changed_itself(action, old, new)) is want
