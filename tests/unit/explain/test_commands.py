"""Patches say exactly what differs; commands are words of a shell, for whatever made the pod."""

from __future__ import annotations

import json
import shlex
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from msgspec import to_builtins
from msgspec.structs import replace

from kubesched.api.core import Node, Pod, Toleration
from kubesched.api.meta import OwnerReference
from kubesched.explain import commands
from kubesched.explain.explaining import changes_that_help
from kubesched.explain.patching import differences, edits, plain
from tests.support.drawn_clusters import clusters
from tests.support.objects import must, pod, pod_term, spread_over
from tests.support.worlds import case_of, world_of

DEFAULTED = tuple(
    Toleration(key=f"node.kubernetes.io/{each}", operator="Exists", effect="NoExecute")
    for each in ("not-ready", "unreachable")
)
GPU = Toleration(key="gpu", operator="Exists", effect="NoSchedule")


@given(clusters())
@settings(max_examples=40)
def test_a_patch_makes_the_proposed_pod_of_the_one_that_is(
    drawn: tuple[list[Node | Pod], Pod],
) -> None:
    objects, wanting = drawn
    case = case_of(world_of(*objects), wanting)
    for proposal, _ in changes_that_help(case):
        patch = to_builtins(differences(case.pod, proposal.pod))
        before, after = plain(case.pod), plain(proposal.pod)
        assert jsonpatch.apply_patch(before, patch) == after
        # Nothing is rewritten: what is added was not there, and lists are never replaced.
        assert not any(
            isinstance(each.get("value"), list) and each["op"] == "replace" for each in patch
        )


def test_elements_of_lists_come_and_go_one_by_one() -> None:
    old = {"a/b": ["x", "y", "z"], "kept": [1]}

    assert [(op, path) for op, path, _ in edits(old, {**old, "a/b": ["y"]})] == [
        ("remove", ("a/b", 2)),
        ("remove", ("a/b", 0)),
    ]
    assert list(edits(old, {**old, "kept": [1, 2]})) == [("add", ("kept", "-"), 2)]


def owned_by(pod: Pod, kind: str, name: str, **labels: str) -> Pod:
    owner = OwnerReference(kind=kind, name=name, controller=True)
    meta = replace(pod.metadata, owner_references=(owner,), labels=labels or None)
    return replace(pod, metadata=meta)


def tolerating(before: Pod, *more: Toleration) -> Pod:
    spec = replace(before.spec, tolerations=(*before.spec.tolerations, *more))
    return replace(before, spec=spec)


def smaller(before: Pod) -> Pod:
    container = pod("p", cpu="1").spec.containers[0]
    return replace(before, spec=replace(before.spec, containers=(container,)))


def words(command: str) -> tuple[list[str], Any]:
    """The words before a patch, and the patch."""
    found = shlex.split(command)
    return found[:-2], json.loads(found[-1])


def test_a_toleration_is_added_to_the_pod_itself() -> None:
    before = tolerating(pod("p"), *DEFAULTED)

    [command] = commands.change(before, tolerating(before, GPU)).commands

    asked, patch = words(command)
    assert asked == ["kubectl", "-n", "default", "patch", "pod", "p", "--type=json"]
    assert [(each["op"], each["path"]) for each in patch] == [("add", "/spec/tolerations/-")]


@pytest.mark.parametrize(
    ("kind", "name", "labels", "target"),
    [
        ("ReplicaSet", "web-77c", {"pod-template-hash": "77c"}, ["deployment", "web"]),
        ("ReplicaSet", "web", {}, ["replicaset", "web"]),
        ("StatefulSet", "db", {}, ["statefulset", "db"]),
        ("DaemonSet", "agent", {}, ["daemonset", "agent"]),
    ],
)
def test_what_a_pod_cannot_change_is_changed_in_what_it_was_made_from(
    kind: str, name: str, labels: dict[str, str], target: list[str]
) -> None:
    before = owned_by(pod("p", cpu="2"), kind, name, **labels)

    [command] = commands.change(before, smaller(before)).commands

    asked, patch = words(command)
    assert asked == ["kubectl", "-n", "default", "patch", *target, "--type=strategic"]
    changed = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    assert patch == {"spec": {"template": {"spec": {"containers": [changed]}}}}


@pytest.mark.parametrize("kind", ["Job", "Workflow"])
def test_what_cannot_be_patched_is_only_said(kind: str) -> None:
    before = owned_by(pod("p", cpu="2"), kind, "import")

    found = commands.change(before, smaller(before))

    assert not found.commands
    assert f"the {kind} import" in found.note


def test_an_element_by_its_place_is_tested_first() -> None:
    before = owned_by(
        pod("p", away_from=must(pod_term("zone", app="x"), pod_term("rack", app="x"))),
        "StatefulSet",
        "db",
    )
    anti = before.spec.affinity and before.spec.affinity.pod_anti_affinity
    assert before.spec.affinity
    assert anti
    required = anti.required_during_scheduling_ignored_during_execution
    kept = replace(anti, required_during_scheduling_ignored_during_execution=required[1:])
    affinity = replace(before.spec.affinity, pod_anti_affinity=kept)

    [command] = commands.change(
        before, replace(before, spec=replace(before.spec, affinity=affinity))
    ).commands

    terms = "podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution"
    at = f"/spec/template/spec/affinity/{terms}/0"
    assert words(command)[1] == [
        {"op": "test", "path": f"{at}/topologyKey", "value": "zone"},
        {"op": "remove", "path": at},
    ]


def test_a_list_that_is_gone_is_gone_from_the_template() -> None:
    before = owned_by(pod("p", spread=[spread_over("zone", app="x")]), "StatefulSet", "db")
    after = replace(before, spec=replace(before.spec, topology_spread_constraints=()))

    [command] = commands.change(before, after).commands

    assert words(command)[1]["spec"]["template"]["spec"] == {"topologySpreadConstraints": None}


def test_names_are_words_of_a_shell() -> None:
    name, value = "it's; rm -rf $HOME", "a 'b' \"c\" $(d)"
    before = pod(name, node_selector={"pool": value})
    after = pod(name, node_selector={"pool": value + "!"})

    [evict] = commands.evict([before]).commands
    [patch] = commands.change(owned_by(before, "StatefulSet", name), after).commands

    assert shlex.split(evict) == ["kubectl", "-n", "default", "delete", "pod", name]
    asked, changed = words(patch)
    assert asked[5] == name
    assert changed["spec"]["template"]["spec"] == {"nodeSelector": {"pool": value + "!"}}
