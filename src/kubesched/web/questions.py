"""Long-running questions: why a pod is pending, and what-if.

body of a request ──> WebQuestion ──answered(world, …), in a child──> JSON, as the command line's
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.scheduling import PodGroup, PriorityClass
from kubesched.errors import ObjectError, UsageError
from kubesched.explain.explaining import explain, find_pod
from kubesched.explain.groups import explain_group
from kubesched.explain.report import Explanation
from kubesched.simulate import displacing
from kubesched.simulate.applying import conditions_of, create, report
from kubesched.simulate.comparing import add_nodes
from kubesched.simulate.headroom import headroom
from kubesched.simulate.report import Applied
from kubesched.simulate.wanted_pods import Replicas, wanted_pods
from kubesched.snapshot import manifests
from kubesched.snapshot.world import World
from kubesched.web.living_world import LivingWorld, Rules
from kubesched.web.report import AppliedOnPage, ShortExplanation

#: Maximum number of nodes, and of their scores, in an explanation.
MOST_NODES: Final = 500
#: Maximum number of details of a reason over all nodes: nearly every node has numbers of its own.
MOST_DETAILS: Final = 20
MOST_ADDED: Final = 1000
#: Maximum number of pods of new workloads.
MOST_REPLICAS: Final = 10_000
MOST_DRAINED: Final = 1000

_Name = Annotated[str, Meta(min_length=1, max_length=253)]
_encode = msgspec.json.Encoder().encode


class WebQuestion(
    Struct, frozen=True, tag_field="kind", rename="camel", forbid_unknown_fields=True
):
    """Base of all questions."""

    #: entry of a recording, None for now
    at: int | None = None


class AboutPod(WebQuestion, frozen=True, kw_only=True, tag="explanation"):
    """Why is a pod where it is, or pending?"""

    namespace: _Name
    name: _Name


class AboutGroup(WebQuestion, frozen=True, kw_only=True, tag="group"):
    """How much of a group fits, and where?"""

    namespace: _Name
    name: _Name


class AboutHeadroom(WebQuestion, frozen=True, kw_only=True, tag="headroom"):
    """How many more pods like this one fit?"""

    namespace: _Name
    name: _Name


class AboutWorkload(WebQuestion, frozen=True, kw_only=True, tag="apply"):
    """Do the pods of a manifest fit, and where would they go?"""

    manifest: Annotated[str, Meta(min_length=1)]
    #: None for as many as the manifest says
    replicas: Annotated[int, Meta(ge=1, le=MOST_REPLICAS)] | None = None
    #: whether that many are wanted beside those that are there
    more: bool = False


class AboutGates(WebQuestion, frozen=True, kw_only=True, tag="ungate"):
    """Where would a pod go without scheduling gates?"""

    namespace: _Name
    name: _Name
    #: gates to remove, all of them if there are none
    gates: tuple[_Name, ...] = ()


class AboutMoreNodes(WebQuestion, frozen=True, kw_only=True, tag="add"):
    """Would more nodes place pending pods?"""

    count: Annotated[int, Meta(ge=1, le=MOST_ADDED)]
    like: _Name


class AboutDrain(WebQuestion, frozen=True, kw_only=True, tag="drain"):
    """Where would the pods of nodes go?"""

    nodes: Annotated[tuple[_Name, ...], Meta(min_length=1, max_length=MOST_DRAINED)]


class AboutLoss(WebQuestion, frozen=True, kw_only=True, tag="loss"):
    """What would the loss of a node, or of a zone, mean?"""

    zone: str = ""
    node: str = ""


WhatIf = AboutHeadroom | AboutWorkload | AboutGates | AboutMoreNodes | AboutDrain | AboutLoss
AnyQuestion = WhatIf | AboutPod | AboutGroup

_decoder = msgspec.json.Decoder(WhatIf)


def read(body: bytes) -> WhatIf:
    """Decode a question; raises UsageError if it is malformed."""
    try:
        question = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as unreadable:
        raise UsageError(f"the question cannot be understood: {unreadable}") from None
    if isinstance(question, AboutLoss) and bool(question.zone) == bool(question.node):
        raise UsageError("the question cannot be understood: name either a zone or a node")
    return question


def answered(world: World, question: AnyQuestion, classes: Sequence[PriorityClass]) -> bytes:
    """Answer as the command line does, as JSON; raises KubeschedError if there is no answer."""
    return _encode(_answer(world, question, classes))


def _answer(world: World, question: AnyQuestion, classes: Sequence[PriorityClass]) -> Struct:
    answer: Struct
    match question:
        case AboutPod():
            answer = _explained(world, find_pod(world, question.namespace, question.name))
        case AboutGroup():
            answer = explain_group(world, _group(world, question))
        case AboutWorkload():
            answer = _applied(world, question, classes)
        case AboutGates():
            answer = _explained(world, _without_gates(world, question))
        case AboutHeadroom():
            answer = headroom(world, find_pod(world, question.namespace, question.name))
        case AboutMoreNodes():
            answer = add_nodes(world, question.count, question.like)
        case AboutDrain():
            answer = displacing.drain(world, question.nodes)
        case AboutLoss():
            name, node_names = _lost(world, question)
            answer = displacing.lose(world, name, node_names)
    return answer


def _group(world: World, question: AboutGroup) -> PodGroup:
    found = world.cluster.groups.objects.get(question.namespace, question.name)
    if found is None:
        raise ObjectError(f"there is no pod group {question.namespace}/{question.name}")
    return found


def _applied(
    world: World, question: AboutWorkload, classes: Sequence[PriorityClass]
) -> AppliedOnPage:
    """Simulate as ``kubesched simulate apply``, and explain one of the pods that do not fit."""
    conditions = conditions_of(world, classes)
    number = question.replicas
    wanted = wanted_pods(
        conditions.snapshot,
        manifests.objects_of(question.manifest),
        namespace="default",
        replicas=None if number is None else Replicas(number, more=question.more),
        most=MOST_REPLICAS,
    )
    if not wanted:
        raise ObjectError(manifests.no_pod_in("the manifest"))
    found = create(conditions, wanted)
    said = report(conditions, wanted, found)
    explanation = None
    if said.left:
        # Beside the pods that have found a node: on the state at the end.
        rules = Rules(conditions.config, conditions.gates, conditions.registry)
        at_end = LivingWorld(found.cluster, found.pods, rules)
        left = at_end.find_pod(*said.left[0].pod.split("/"))
        explanation = None if left is None else _explained(at_end, left)
    told = {name: getattr(said, name) for name in Applied.__struct_fields__}
    return AppliedOnPage(**told, explanation=explanation)


def _without_gates(world: World, question: AboutGates) -> Pod:
    """Return a pending pod without gates; its group then counts it like this, too."""
    pod = find_pod(world, question.namespace, question.name)
    there = [each.name for each in pod.spec.scheduling_gates]
    full_name = f"{question.namespace}/{question.name}"
    if not there:
        raise ObjectError(f"pod {full_name} has no scheduling gates")
    removed = question.gates or there
    missing = [each for each in removed if each not in there]
    if missing:
        raise ObjectError(f"pod {full_name} has no gate {missing[0]}, but {', '.join(there)}")
    gates = tuple(each for each in pod.spec.scheduling_gates if each.name not in removed)
    pod = replace(pod, spec=replace(pod.spec, scheduling_gates=gates))
    if pod.spec.scheduling_group is not None:
        # The world is this question's own: there is nothing to undo.
        world.cluster.groups.put_pending(world.compile(pod))
    return pod


def _lost(world: World, question: AboutLoss) -> tuple[str, list[str]]:
    """Return the name of the loss, and its nodes."""
    if question.node:
        return question.node, [question.node]
    zones, name = displacing.by_zone(world), question.zone
    matching = [zone for zone in zones if name in (zone, zone.rpartition("/")[2])]
    if len(matching) != 1:
        raise ObjectError(f"there is no zone {name}, or more than one: {', '.join(zones)}")
    return matching[0], zones[matching[0]]


def _explained(world: World, pod: Pod) -> ShortExplanation:
    return shortened(explain(world, pod))


def shortened(said: Explanation, most: int = MOST_NODES) -> ShortExplanation:
    """Shorten an explanation: keeps the nodes with the fewest reasons, and the best scores."""
    nodes = said.nodes
    if len(nodes) > most:
        nodes = tuple(sorted(nodes, key=lambda each: len(each.reasons))[:most])
    told = {name: getattr(said, name) for name in Explanation.__struct_fields__}
    told |= {"nodes": nodes, "scores": said.scores[:most]}
    told["reasons"] = tuple(
        replace(each, details=each.details[:MOST_DETAILS]) for each in said.reasons
    )
    return ShortExplanation(
        **told,
        nodes_left_off=len(said.nodes) - len(nodes),
        scores_left_off=max(len(said.scores) - most, 0),
    )
