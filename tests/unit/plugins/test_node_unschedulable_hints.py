"""NodeUnschedulable, when nodes or tolerations change: is there a node that is not cordoned?"""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api import names
from kubesched.api.core import Pod, Toleration
from kubesched.queue.events import Action
from kubesched.queue.hints import Change
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

from .hinting import added, changed_itself, helps, updated

PLUGIN = "NodeUnschedulable"
OPEN = node("n")
CORDONED = node("n", unschedulable=True)
CORDON = Toleration(key=names.TAINT_UNSCHEDULABLE, operator="Exists")
TAINT, TOLERATION = Action.UPDATE_NODE_TAINT, Action.UPDATE_POD_TOLERATION


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(added(OPEN), True, id="an open node came"),
        pytest.param(added(CORDONED), False, id="a cordoned node came"),
        pytest.param(updated(TAINT, CORDONED, OPEN), True, id="uncordoned"),
        pytest.param(updated(TAINT, OPEN, CORDONED), False, id="cordoned"),
        pytest.param(
            updated(TAINT, CORDONED, node("n", unschedulable=True, taints=["late:NoExecute"])),
            False,
            id="another taint of a cordoned node",
        ),
        pytest.param(
            updated(TAINT, OPEN, node("n", taints=["late:NoExecute"])),
            False,
            id="another taint of an open node",
        ),
    ],
)
def test_nodes(change: Change[Any], want: bool) -> None:
    assert helps(Lab(), PLUGIN, pod(), change) is want


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(pod("p", tolerations=[CORDON]), True, id="it tolerates cordons now"),
        pytest.param(
            pod("p", tolerations=[Toleration(operator="Exists")]), True, id="it tolerates all now"
        ),
        pytest.param(
            pod("p", tolerations=[Toleration(key="team", operator="Exists")]),
            False,
            id="it tolerates something else",
        ),
        pytest.param(
            pod(
                "p", tolerations=[Toleration(key=CORDON.key, operator="Exists", effect="NoExecute")]
            ),
            False,
            id="it tolerates another effect",
        ),
    ],
)
def test_tolerations(new: Pod, want: bool) -> None:
    change = changed_itself(TOLERATION, pod("p"), new)
    assert helps(Lab(), PLUGIN, pod("p"), change) is want
