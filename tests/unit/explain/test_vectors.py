"""What explain says of the conformance cases, which kube-scheduler itself has answered.

Cases hold, for every filter by itself, which nodes it turns away and why: all reasons of all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.resource import ResourceClaim, ResourceClaimStatus
from kubesched.config.features import FeatureGates
from kubesched.config.loading import profile_from_fragment
from kubesched.config.types import SchedulerConfiguration
from kubesched.explain.case import Case
from kubesched.explain.explaining import ExplainOptions, changes_that_help, explain
from kubesched.explain.report import Explanation
from kubesched.kinds import KINDS
from kubesched.snapshot.contents import Snapshot
from kubesched.snapshot.world import World
from tests.conformance.answers import all_candidates
from tests.conformance.vectors import Vector, read, themes

#: One pod a case: not sequences of them, nor groups.
THEMES = [each for each in themes() if each not in {"podgroups", "sequence"}]
#: Of each theme, so that it takes seconds. The scheduler's own tests go through all of them.
CASES = 15
#: Every change of a case is tried in a cluster made anew, which takes longer.
CASES_WITH_CHANGES = 5

#: Name of a list of objects, in lower case → kind.
LISTS = {kind.path.plural: kind for kind in KINDS.values()}


@cache
def _cases(theme: str, *, unschedulable: bool) -> list[Vector]:
    # A pod that names its node is explained as if it did not: it has been scheduled.
    found = [
        vector
        for vector in read(theme)
        if ("fitError" in vector.expect) == unschedulable
        and not vector.case["pod"]["spec"].get("nodeName")
    ]
    # No image keeps a pod away from a node.
    assert len(found) > 20 or (theme == "images" and unschedulable)
    return found


def _some(theme: str, count: int, *, unschedulable: bool) -> list[Vector]:
    found = _cases(theme, unschedulable=unschedulable)
    return found[:: max(len(found) // count, 1)]


def _world(case: dict[str, Any], **others: list[Any]) -> World:
    gates = FeatureGates.of(case.get("featureGates") or {})
    profile = all_candidates(profile_from_fragment(case.get("config") or {}, gates), case)
    config = replace(SchedulerConfiguration.default(gates), profiles=(profile,))
    snapshot = Snapshot(source=case["id"])
    for key, manifests in case["objects"].items():
        kind = LISTS.get(key.lower())
        if kind is not None:
            snapshot.objects[kind.name] = [msgspec.convert(each, kind.type) for each in manifests]
    snapshot.objects.update(others)
    return World.of_snapshot(snapshot, config, gates)


def _pod(case: dict[str, Any]) -> Pod:
    return msgspec.convert(case["pod"], Pod)


def _said(vector: Vector) -> Explanation:
    world = _world(vector.case)
    return explain(world, _pod(vector.case), ExplainOptions(changes=False))


AFFINITY = "InterPodAffinity"


def _by_plugin(said: Explanation) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for node in said.nodes:
        for reason in node.reasons:
            if "(beside nominated " not in reason.text:
                found.setdefault(reason.plugin, {}).setdefault(node.node, []).append(reason.text)
    # Of this plugin's rules kube-scheduler gives the first that a node breaks, and we give all.
    found[AFFINITY] = {node: each[:1] for node, each in found.get(AFFINITY, {}).items()}
    return {
        plugin: {node: sorted(each) for node, each in of.items()}
        for plugin, of in found.items()
        if of
    }


def _messages(expect: dict[str, Any]) -> set[str]:
    """What may be said: of equally good nodes to preempt pods on, any may be named."""
    post_filter = expect.get("postfilter") or {}
    chosen = f"on node {post_filter.get('nominatedNode')},"
    said, ties = expect["fitError"], post_filter.get("ties", [])
    return {said, *(said.replace(chosen, f"on node {each},") for each in ties)}


@pytest.mark.parametrize("theme", THEMES)
def test_reasons_and_message_are_kube_schedulers(theme: str) -> None:
    for vector in _some(theme, CASES, unschedulable=True):
        said, expect = _said(vector), vector.expect
        if expect.get("preenqueue"):
            continue

        assert said.message in _messages(expect), vector.name
        of_pod = {each.plugin for each in said.pod_reasons}
        restricted = {
            plugin
            for plugin, of in (expect.get("prefilter") or {}).items()
            if of.get("nodeNames") is not None
        }
        wanted = {
            plugin: {node: sorted(each.get("reasons", ())) for node, each in of.items()}
            for plugin, of in (expect.get("filter") or {}).items()
        }
        found = {
            plugin: of
            for plugin, of in _by_plugin(said).items()
            if plugin not in of_pod | restricted
        }
        for plugin in restricted:
            wanted.pop(plugin, None)
        assert found == wanted, vector.name


@pytest.mark.parametrize("theme", THEMES)
def test_scores_are_kube_schedulers(theme: str) -> None:
    for vector in _some(theme, CASES, unschedulable=False):
        said, expect = _said(vector), vector.expect
        if "total" not in expect:
            continue

        assert {each.node: each.total for each in said.scores} == expect["total"], vector.name
        assert set(said.best_nodes) == set(expect["best"]), vector.name


def _decoded(vector: Vector, kind: str) -> list[Any]:
    plural = KINDS[kind].path.plural
    given = vector.case["objects"].items()
    found = [each for key, manifests in given if key.lower() == plural for each in manifests]
    return [msgspec.convert(each, KINDS[kind].type) for each in found]


def _claims(vector: Vector, gone: set[str], changed: Sequence[ResourceClaim]) -> list[Any]:
    """The claims without those of pods that are gone, and with what is changed about others."""
    found = {}
    for claim in _decoded(vector, "ResourceClaim"):
        users = [each for each in claim.status.reserved_for if each.uid not in gone]
        is_over = claim.status.reserved_for and not users
        status = replace(claim.status, reserved_for=tuple(users))
        claim = replace(claim, status=ResourceClaimStatus() if is_over else status)  # noqa: PLW2901
        found[claim.metadata.namespace, claim.metadata.name] = claim
    found |= {(each.metadata.namespace, each.metadata.name): each for each in changed}
    return list(found.values())


@pytest.mark.parametrize("theme", THEMES)
def test_every_change_places_the_pod_when_it_is_applied(theme: str) -> None:
    for vector in _some(theme, CASES_WITH_CHANGES, unschedulable=True):
        world, pod = _world(vector.case), _pod(vector.case)
        case = Case(world, next(iter(world.frameworks.values())), pod)
        for proposal, rows in changes_that_help(case):
            evicted = {(each.pod.metadata.uid) for each in proposal.evict}
            changed = {each.metadata.name: each for each in proposal.nodes}
            nodes = [msgspec.convert(each, KINDS["Node"].type) for each in _list(vector, "nodes")]
            pods = [msgspec.convert(each, Pod) for each in _list(vector, "pods")]
            there = {each.metadata.name for each in nodes}
            anew = _world(
                vector.case,
                Node=[
                    *(changed.get(each.metadata.name, each) for each in nodes),
                    *(each for name, each in changed.items() if name not in there),
                ],
                Pod=[
                    *(each for each in pods if each.metadata.uid not in evicted),
                    *proposal.arriving,
                ],
                ResourceSlice=[*_decoded(vector, "ResourceSlice"), *proposal.slices],
                ResourceClaim=_claims(vector, evicted, proposal.claims),
            )
            other = Case(anew, next(iter(anew.frameworks.values())), proposal.pod)
            fits = len(other.feasible(proposal.pod))
            assert fits == len(rows), f"{vector.name}: {proposal.title}"
        world.cluster.validate()


def _list(vector: Vector, key: str) -> list[Any]:
    return vector.case["objects"].get(key) or []
