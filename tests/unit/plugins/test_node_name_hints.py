"""NodeName, when a node comes: it may be the one."""

from __future__ import annotations

import pytest

from tests.support.objects import node, pod
from tests.support.scheduling import Lab

from .hinting import added, helps


@pytest.mark.parametrize("name", ["wanted", "another"])
def test_any_node_that_comes_is_tried(name: str) -> None:
    """As in kube-scheduler, which does not compare the names here."""
    assert helps(Lab(), "NodeName", pod(node="wanted"), added(node(name)))
