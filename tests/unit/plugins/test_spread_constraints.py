"""Topology spread constraints, compiled for a pod."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api import labels
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement
from kubesched.errors import SelectorError
from kubesched.plugins.spread_constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SpreadConstraint,
    compile_constraints,
    keys_read,
)
from tests.support.objects import spread_over

WEB = {"app": "web"}


def compiled(
    *, pod_labels: dict[str, str] | None = None, keys: bool = True, **changes: Any
) -> SpreadConstraint:
    (result,) = compile_constraints(
        [replace(spread_over("zone", app="web"), **changes)],
        when_unsatisfiable=DO_NOT_SCHEDULE,
        namespace="ns",
        pod_labels=WEB if pod_labels is None else pod_labels,
        match_label_keys=keys,
    )
    return result


def test_what_is_not_said_has_a_default() -> None:
    found = compiled()
    assert (found.max_skew, found.topology_key, found.min_domains) == (1, "zone", 1)
    assert (found.honor_affinity, found.honor_taints) == (True, False)
    assert found.counts_itself
    assert found.selection is not None
    assert found.selection.namespaces == frozenset({"ns"})
    assert not found.selection.with_terminating


@pytest.mark.parametrize(("policy", "honoured"), [("Honor", True), ("Ignore", False)])
def test_policies(policy: str, honoured: bool) -> None:
    found = compiled(node_affinity_policy=policy, node_taints_policy=policy, min_domains=5)
    assert (found.honor_affinity, found.honor_taints) == (honoured, honoured)
    assert found.min_domains == 5


def test_constraints_are_told_apart_by_what_happens_if_they_fail() -> None:
    both = [spread_over("zone", app="web"), spread_over("host", soft=True, app="web")]
    for kind, key in ((DO_NOT_SCHEDULE, "zone"), (SCHEDULE_ANYWAY, "host")):
        found = compile_constraints(
            both, when_unsatisfiable=kind, namespace="ns", pod_labels=WEB, match_label_keys=True
        )
        assert [each.topology_key for each in found] == [key]


@pytest.mark.parametrize(
    ("selector", "counts_itself", "counts_others"),
    [
        (LabelSelector(match_labels=WEB), True, True),
        (LabelSelector(match_labels={"app": "db"}), False, True),
        (LabelSelector(), True, False),
        (None, False, False),
    ],
    ids=["its own kind", "another kind", "empty", "none"],
)
def test_who_counts(
    selector: LabelSelector | None, counts_itself: bool, counts_others: bool
) -> None:
    found = compiled(label_selector=selector)
    assert found.counts_itself is counts_itself
    assert (found.selection is not None) is counts_others


def test_keys_add_the_pod_s_own_values() -> None:
    mine, other = {**WEB, "version": "1"}, {**WEB, "version": "2"}
    found = compiled(pod_labels=mine, match_label_keys=("version", "absent"))
    without = compiled(pod_labels=mine, keys=False, match_label_keys=("version",))
    assert found.selection is not None
    assert without.selection is not None
    assert found.selection.selector.matches(mine)
    assert not found.selection.selector.matches(other)
    assert without.selection.selector.matches(other)


def test_a_default_s_selector_is_given() -> None:
    (found,) = compile_constraints(
        [replace(spread_over("zone"), label_selector=None)],
        when_unsatisfiable=DO_NOT_SCHEDULE,
        namespace="ns",
        pod_labels=WEB,
        match_label_keys=False,
        selector=labels.from_match_labels(WEB),
    )
    assert found.counts_itself
    assert found.selection is not None


def test_a_malformed_selector_is_refused() -> None:
    wrong = LabelSelectorRequirement(key="app", operator="Resembles")
    with pytest.raises(SelectorError, match="Resembles"):
        compiled(label_selector=LabelSelector(match_expressions=(wrong,)))


def test_the_labels_of_the_pod_that_constraints_depend_on() -> None:
    expressions = (LabelSelectorRequirement(key="tier", operator="Exists"),)
    selecting = LabelSelector(match_labels={"app": "web"}, match_expressions=expressions)
    constraint = replace(spread_over("zone", app="web"), match_label_keys=("version", "app"))

    assert keys_read([constraint]) == ("app", "version")
    assert keys_read([constraint, replace(constraint, label_selector=selecting)]) == (
        "app",
        "version",
        "tier",
    )
    assert keys_read([replace(constraint, label_selector=None, match_label_keys=())]) == ()
