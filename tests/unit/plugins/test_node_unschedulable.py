"""NodeUnschedulable: cordoned nodes take only pods that tolerate the cordon."""

from __future__ import annotations

import pytest

from kubesched.api.core import Toleration
from kubesched.api.names import TAINT_UNSCHEDULABLE
from kubesched.framework.status import unresolvable
from tests.support.objects import node, pod
from tests.support.scheduling import Lab

REJECTED = unresolvable("node(s) were unschedulable")


@pytest.mark.parametrize(
    ("tolerations", "fits"),
    [
        pytest.param([], False, id="no toleration"),
        pytest.param([Toleration(operator="Exists")], True, id="tolerates everything"),
        pytest.param(
            [Toleration(key=TAINT_UNSCHEDULABLE, operator="Exists")], True, id="tolerates cordons"
        ),
        pytest.param(
            [Toleration(key=TAINT_UNSCHEDULABLE, effect="NoSchedule")], True, id="empty value"
        ),
        pytest.param(
            [Toleration(key=TAINT_UNSCHEDULABLE, value="x")], False, id="the cordon has no value"
        ),
        pytest.param(
            [Toleration(operator="Exists", effect="NoExecute")], False, id="another effect"
        ),
    ],
)
def test_cordons(tolerations: list[Toleration], fits: bool) -> None:
    lab = Lab(node("open"), node("cordoned", unschedulable=True))
    found = lab.rejections("NodeUnschedulable", pod(tolerations=tolerations))
    assert found == ({} if fits else {"cordoned": REJECTED})
