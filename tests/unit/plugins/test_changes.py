"""What hints ask of a change, and that it is worked out once."""

from __future__ import annotations

import pytest

from kubesched.api.core import Node, Pod
from kubesched.plugins.changes import Prepared, has_place
from kubesched.queue.events import NODE_ADD
from kubesched.queue.hints import Change
from tests.support.objects import node, pod


@pytest.mark.parametrize(
    ("each", "want"),
    [(pod(), False), (pod(node="n"), True), (pod(nominated="n"), True)],
    ids=["pending", "on a node", "nominated"],
)
def test_a_pod_has_a_place_on_its_node_and_on_the_one_it_is_promised(each: Pod, want: bool) -> None:
    assert has_place(each) is want


def test_a_change_is_prepared_once_and_equal_ones_are_told_apart() -> None:
    seen: list[str] = []

    def prepare(change: Change[Node]) -> int:
        assert change.new is not None
        seen.append(change.new.metadata.name)
        return len(seen)

    prepared = Prepared(prepare)
    first, again = (Change(NODE_ADD, new=node("n")) for _ in range(2))
    assert [prepared(first), prepared(first), prepared(again), prepared(again)] == [1, 1, 2, 2]
    assert prepared(first) == 3, "only the latest is kept"
