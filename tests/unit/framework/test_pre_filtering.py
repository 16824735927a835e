"""PreFilter: in what order plugins are called, whose status counts, which nodes are left."""

from __future__ import annotations

import pytest

from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.pre_filtering import UNRESTRICTED, Restriction
from kubesched.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from tests.support.objects import pod

from .attempts import Attempt, pre_filter, restricts


def test_success_lets_all_nodes_be_looked_at() -> None:
    attempt = Attempt(pre_filter("A", SUCCESS), pre_filter("B", SUCCESS))
    assert attempt.find() == ["a", "b", "c"]
    assert attempt.calls == ["A", "B"]


def test_skip_leaves_the_same_plugin_s_filter_out() -> None:
    attempt = Attempt(pre_filter("A", SKIP))
    assert attempt.find() == ["a", "b", "c"]
    assert attempt.state.skip_filter == {"A"}


def test_unresolvable_ends_the_attempt_at_once() -> None:
    attempt = Attempt(
        pre_filter("A", SUCCESS), pre_filter("B", unresolvable("never")), pre_filter("C", SUCCESS)
    )
    diagnosis = attempt.diagnosis()
    assert attempt.calls == ["A", "B"]
    assert diagnosis.message() == "0/3 nodes are available: never."
    assert diagnosis.unschedulable_plugins == {"B"}
    assert diagnosis.status_of(0) == unresolvable("never").by("B")


def test_unschedulable_lets_the_others_be_asked_and_the_last_one_counts() -> None:
    attempt = Attempt(
        pre_filter("A", unschedulable("first")),
        pre_filter("B", SUCCESS),
        pre_filter("C", unschedulable("last")),
    )
    diagnosis = attempt.diagnosis()
    assert attempt.calls == ["A", "B", "C"]
    assert diagnosis.message() == "0/3 nodes are available: last."
    assert diagnosis.unschedulable_plugins == {"C"}


def test_unresolvable_wins_over_an_earlier_unschedulable() -> None:
    attempt = Attempt(
        pre_filter("A", unschedulable("maybe")), pre_filter("B", unresolvable("never"))
    )
    diagnosis = attempt.diagnosis()
    assert diagnosis.message() == "0/3 nodes are available: never."
    assert diagnosis.unschedulable_plugins == {"B"}


@pytest.mark.parametrize(
    "status",
    [error("boom"), Status(Code.PENDING, ("boom",)), Status(Code.WAIT, ("boom",))],
    ids=lambda status: status.code.label,
)
def test_anything_else_is_an_error(status: Status) -> None:
    attempt = Attempt(pre_filter("A", status), pre_filter("B", SUCCESS))
    with pytest.raises(AttemptError) as raised:
        attempt.find()
    assert str(raised.value) == 'running PreFilter plugin "A": boom'
    assert raised.value.status == error('running PreFilter plugin "A": boom').by("A")
    assert attempt.calls == ["A"]


def test_names_are_intersected() -> None:
    attempt = Attempt(restricts("A", "a", "b"), pre_filter("B", SUCCESS), restricts("C", "b", "c"))
    assert attempt.find() == ["b"]


def test_names_of_one_plugin_that_are_no_nodes_at_all() -> None:
    attempt = Attempt(restricts("A"), pre_filter("B", SUCCESS))
    diagnosis = attempt.diagnosis()
    assert attempt.calls == ["A"], "the others are not asked any more"
    assert diagnosis.message() == "0/3 nodes are available: node(s) didn't satisfy plugin A."
    assert diagnosis.unschedulable_plugins == {"A"}
    assert diagnosis.status_of(0).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_names_of_several_plugins_that_have_nothing_in_common() -> None:
    diagnosis = Attempt(restricts("B", "a"), restricts("A", "c")).diagnosis()
    assert diagnosis.message() == (
        "0/3 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously."
    )
    assert diagnosis.unschedulable_plugins == {"A", "B"}


def test_a_restriction_is_narrowed_by_each_plugin() -> None:
    one = UNRESTRICTED.narrowed("A", frozenset("ab"))

    assert one == Restriction(frozenset("ab"), frozenset({"A"}))
    assert one.narrowed("B", frozenset("bc")) == Restriction(frozenset("b"), frozenset({"A", "B"}))


def test_plugins_that_need_volumes_are_not_asked_about_pods_without() -> None:
    needs_volumes = pre_filter("A", SUCCESS)
    needs_volumes.only_with_volumes = True
    attempt = Attempt(needs_volumes, pre_filter("B", SUCCESS))

    assert attempt.find() == ["a", "b", "c"]
    assert attempt.calls == ["B"]
    assert attempt.state.skip_filter == {"A"}


def test_plugins_that_skip_resizes_are_not_asked_about_them() -> None:
    skips_resizes = pre_filter("A", SUCCESS)
    skips_resizes.skips_resizes = True
    attempt = Attempt(skips_resizes, pre_filter("B", SUCCESS))
    resized = attempt.lab.cluster.compiler.resizing(pod("p", node="a"))
    attempt.lab.framework.evaluator.look(attempt.state, resized)

    assert attempt.calls == ["B"]
