"""What hints ask of a change, and that it is worked out once."""

from __future__ import annotations

import pytest

from kubesched.api.core import Node, Pod
from kubesched.cluster.pod_info import PodCompiler
from kubesched.plugins.changes import Prepared, has_place, is_about_itself
from kubesched.queue.events import NODE_ADD, UNSCHEDULABLE_POD_UPDATE
from kubesched.queue.hints import Change
from tests.support.objects import node, pod


@pytest.mark.parametrize(
    ("each", "want"),
    [(pod(), False), (pod(node="n"), True), (pod(nominated="n"), True)],
    ids=["pending", "on a node", "nominated"],
)
def test_a_pod_has_a_place_on_its_node_and_on_the_one_it_is_promised(each: Pod, want: bool) -> None:
    assert has_place(each) is want


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(pod("p", labels={"any": "change"}), True, id="another version"),
        pytest.param(pod("p", uid="later"), False, id="another pod of that name"),
        pytest.param(pod("q"), False, id="another pod"),
        pytest.param(None, False, id="gone"),
    ],
)
def test_a_pod_is_known_by_its_uid(new: Pod | None, want: bool) -> None:
    change = Change(UNSCHEDULABLE_POD_UPDATE, old=pod("p"), new=new)
    assert is_about_itself(PodCompiler().pending(pod("p")), change) is want


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
