"""The real kube-scheduler and ours, asked about the same claims on the same cluster, one by one.

    python -m tests.integration.same_devices --pods 2000 --seed 7

The real one places each pod; ours, on a copy of the cluster in which the pod is not placed yet, is
asked for the best nodes and, on the node that the real one chose, for the devices. The node must be
one of the best, and claims must get the same devices in the same order; where no node fits, both
must say the same.

The real one learns of a change by watches that overtake each other. So a pod about which the two
differ is taken back and asked about once more, in the same state: only what is said twice counts.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from kubesched.api.core import Namespace, Node, Pod
from kubesched.api.resource import AllocationResult, DeviceClaim, ResourceClaim
from kubesched.bench import assets
from kubesched.cluster.cluster import Cluster
from kubesched.config.features import FeatureGates
from kubesched.config.loading import profile_from_fragment
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.building import build_framework
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.kinds import KINDS
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.in_tree import IN_TREE
from kubesched.plugins.pod_devices import PodDevices
from tests.support.evaluating import feasible_rows, total_scores

from . import random_devices
from .claim_controller import DEVICES, all_claims, claims_path, make_claims, release_claims
from .control_plane import MERGE_PATCH, ControlPlane
from .scheduler_process import configuration, pods_path, profile
from .settled_pods import settled, watching

Json = dict[str, Any]

NODES = 12
#: So many pods stay; the oldest make room for new ones.
KEPT = 40
#: Ends a difference that does not come from a watch that is late.
TRIES = 2


class Answer(NamedTuple):
    """What a scheduler makes of a pod."""

    #: the best nodes, or the one that was chosen; empty if there is none
    nodes: frozenset[str]
    #: why there is none; of errors, all that a node gives: workers meet any of them first
    messages: frozenset[str] = frozenset()
    #: by the name of the claim in the pod
    allocations: Mapping[str, AllocationResult] = MappingProxyType({})
    #: what the claim for extended resources asks for, and for which container
    extended: tuple[DeviceClaim, object] | None = None


class Ours:
    """Our scheduling cycle on a copy of the cluster."""

    def __init__(self, profile_fragment: Json) -> None:
        gates = FeatureGates.of({})
        self.cluster = Cluster()
        self._framework = build_framework(
            profile_from_fragment(profile_fragment, gates),
            registry=IN_TREE,
            gates=gates,
            cluster=self.cluster,
        )

    def put(self, kind: str, obj: Json) -> None:
        """Take over an object that is neither a node nor a pod."""
        row = KINDS[kind]
        assert row.store is not None
        row.store(self.cluster).put(msgspec.convert(obj, row.type))

    def remove(self, kind: str, obj: Json) -> None:
        """Forget one."""
        row = KINDS[kind]
        assert row.store is not None
        row.store(self.cluster).remove(msgspec.convert(obj, row.type))

    def claims_are(self, claims: list[Json]) -> None:
        """Take over all claims of the namespace."""
        known = {each.metadata.name: each for each in self.cluster.devices.claims}
        for each in claims:
            old = known.pop(each["metadata"]["name"], None)
            version = each["metadata"]["resourceVersion"]
            if old is None or old.metadata.resource_version != version:
                self.put("ResourceClaim", each)
        for gone in known.values():
            self.cluster.devices.claims.remove(gone)

    def answer(self, pod: Pod, node_name: str | None) -> Answer:
        """Return what we make of a pod, with devices for the node that is named."""
        info, state, framework = self.cluster.compiler.pending(pod), CycleState(), self._framework
        try:
            found = feasible_rows(framework.evaluator, state, info)
        except AttemptError:
            return Answer(frozenset(), self._errors(pod))
        if isinstance(found, Diagnosis):
            post = framework.post_filter(state, info, found)
            found.post_filter_message = post.status.message
            return Answer(frozenset(), frozenset((found.message(),)))
        total = total_scores(framework.evaluator, state, info, found)
        best = found[np.flatnonzero(total == total.max())]
        nodes = frozenset(self.cluster.table.name_at(row) for row in best.tolist())
        if node_name not in nodes:
            return Answer(nodes)
        status = framework.reserve(state, info, node_name)
        assert status.ok, status.message
        devices = state.get(DynamicResources.name)
        answer = Answer(nodes)
        if isinstance(devices, PodDevices):
            answer = answer._replace(
                allocations={
                    devices.claims[number].metadata.name: comparable(each)
                    for number, each in devices.decided.items()
                    if devices.claims[number] is not devices.extended
                },
                extended=_asked(devices),
            )
        framework.unreserve(state, info, node_name)
        return answer

    def _errors(self, pod: Pod) -> frozenset[str]:
        """Return the errors that nodes give, each asked about by itself."""
        messages = set()
        for row in self.cluster.table.order.rows().tolist():
            info, state = self.cluster.compiler.pending(pod), CycleState()
            state.placement = np.arange(self.cluster.table.size) == row
            try:
                feasible_rows(self._framework.evaluator, state, info)
            except AttemptError as failed:
                messages.add(failed.status.message)
        return frozenset(messages)


def _asked(devices: PodDevices) -> tuple[DeviceClaim, object] | None:
    made = devices.extended_claim
    if made is None or not made.mappings:
        return None
    allocation = devices.decided[len(devices.claims) - 1]
    return made.claim.spec.devices, (made.mappings, comparable(allocation))


def comparable(allocation: AllocationResult) -> AllocationResult:
    """An allocation without what no two can have in common."""
    results = tuple(replace(each, share_id=None) for each in allocation.devices.results)
    devices = replace(allocation.devices, results=results)
    return replace(allocation, devices=devices, allocation_timestamp=None)


class Comparison:
    """One run: a random cluster, and pods one after the other."""

    def __init__(self, plane: ControlPlane, namespace: str, seed: int) -> None:
        self._plane = plane
        self._namespace = namespace
        self._rng = random.Random(seed)
        self._profile = profile()
        self._ours = Ours(self._profile)
        self._placed: dict[str, str] = {}
        self._rules: list[Json] = []
        self._generations = Counter[int]()
        self._slices: dict[int, list[Json]] = {}
        self._number = 0
        #: differences that were gone when asked again
        self.doubts: list[str] = []
        #: how many pods were placed, on the only best node or on one of several, were not, …
        self.outcomes: Counter[str] = Counter()

    # --- the cluster ----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Create nodes, classes and slices."""
        plane, ours, rng = self._plane, self._ours, self._rng
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        path = f"/api/v1/namespaces/{self._namespace}"
        found = plane.request("PATCH", path, label, content_type=MERGE_PATCH)
        ours.cluster.namespaces.put(msgspec.convert(found, Namespace))
        for node in plane.create_many("/api/v1/nodes", random_devices.random_nodes(rng, NODES)):
            ours.cluster.put_node(msgspec.convert(node, Node))
        for each in random_devices.device_classes():
            ours.put("DeviceClass", plane.request("POST", f"{DEVICES}/deviceclasses", each))
        for number in range(NODES + 1):
            self._publish(number)

    def _publish(self, number: int) -> None:
        """Publish what a node has, or, for the number after the last, what no node has, anew."""
        for each in self._slices.pop(number, ()):
            path = f"{DEVICES}/resourceslices/{each['metadata']['name']}"
            self._ours.remove("ResourceSlice", self._plane.request("DELETE", path) and each)
        self._generations[number] += 1
        generation = self._generations[number]
        if number < NODES:
            made = random_devices.node_slices(self._rng, number, generation)
        else:
            made = random_devices.network_slices(self._rng, NODES, generation)
        path = f"{DEVICES}/resourceslices"
        self._slices[number] = [self._plane.request("POST", path, each) for each in made]
        for each in self._slices[number]:
            self._ours.put("ResourceSlice", each)

    def _change(self) -> None:
        """Let some pods go, and change devices and taints now and then."""
        rng = self._rng
        while len(self._placed) > KEPT or (self._placed and rng.random() < 0.1):
            name = rng.choice(sorted(self._placed))
            self._delete(name, deallocate=rng.random() < 0.7)
        if rng.random() < 0.04:
            self._publish(rng.randrange(NODES + 1))
        path = f"{DEVICES}/devicetaintrules"
        if rng.random() < 0.03:
            rule = random_devices.taint_rule(rng, self._number, NODES)
            self._rules.append(self._plane.request("POST", path, rule))
            self._ours.put("DeviceTaintRule", self._rules[-1])
        if self._rules and rng.random() < 0.03:
            rule = self._rules.pop(rng.randrange(len(self._rules)))
            self._plane.request("DELETE", f"{path}/{rule['metadata']['name']}")
            self._ours.remove("DeviceTaintRule", rule)
        for claim in all_claims(self._plane, self._namespace):
            is_unused = not claim.get("status", {}).get("reservedFor")
            if is_unused and not claim["metadata"].get("ownerReferences") and rng.random() < 0.3:
                self._forget_claim(claim)

    def _forget_claim(self, claim: Json) -> None:
        path = claims_path(self._namespace, claim["metadata"]["name"])
        nothing = {"status": {"allocation": None, "devices": None}}
        self._plane.request("PATCH", f"{path}/status", nothing, content_type=MERGE_PATCH)
        self._plane.purge_object(path)

    def _delete(self, name: str, *, deallocate: bool = True) -> None:
        path = pods_path(self._namespace, name)
        gone = self._plane.request("DELETE", path, {"gracePeriodSeconds": 0})
        uid = gone["metadata"]["uid"]
        if self._placed.pop(name, None):
            self._ours.cluster.remove_pod(uid)
        release_claims(self._plane, self._namespace, {uid}, deallocate=deallocate)

    # --- pods -----------------------------------------------------------------------------------

    def run(self, pods: int) -> None:
        """Ask both about so many pods; fail on the first about which they differ."""
        settings = configuration(
            self._plane.scheduler_kubeconfig,
            self._profile,
            percentageOfNodesToScore=100,
            podInitialBackoffSeconds=600,  # none is tried twice
            podMaxBackoffSeconds=600,
        )
        path = pods_path(self._namespace)
        with (
            self._plane.run_kube_scheduler(settings),
            watching(self._plane, path) as seen,
        ):
            for _ in range(pods):
                self._change()
                self._ask(seen)
        self._ours.cluster.validate()

    def _ask(self, seen: Iterator[Json]) -> None:
        wanted = self._wanted()
        for attempt in range(TRIES):
            name = self._create(wanted)
            before = all_claims(self._plane, self._namespace)
            self._ours.claims_are(before)
            created = self._let_go(name)
            theirs = settled(seen, created["metadata"]["uid"])
            node_name = theirs["spec"].get("nodeName")
            ours = self._ours.answer(msgspec.convert(created, Pod), node_name)
            after = all_claims(self._plane, self._namespace)
            said = self._answer_of(theirs, before, after)
            differs = difference(ours, said)
            if differs is None:
                self._ours.claims_are(after)
                break
            self.outcomes["asked again"] += 1
            self.doubts.append(differs)
            if attempt == TRIES - 1:
                raise AssertionError(f"{differs}\n{wanted}")
            self._delete(name)
            self._undo(before)
        if node_name is None:
            is_error = theirs["status"]["conditions"][0]["reason"] == "SchedulerError"
            self.outcomes["error" if is_error else "refused"] += 1
            self._delete(name)
        else:
            self.outcomes["one best node" if len(ours.nodes) == 1 else "several"] += 1
            self.outcomes["devices"] += sum(
                len(each.devices.results) for each in said.allocations.values()
            )
            self.outcomes["extended resources"] += said.extended is not None
            self._placed[name] = node_name
            self._ours.cluster.put_pod(msgspec.convert(theirs, Pod))

    def _undo(self, before: list[Json]) -> None:
        """Give claims the status that they had before; those of the pod alone are gone."""
        now = {each["metadata"]["name"]: each for each in all_claims(self._plane, self._namespace)}
        for claim in before:
            name = claim["metadata"]["name"]
            if name not in now or now[name].get("status") == claim.get("status"):
                continue
            path = f"{claims_path(self._namespace, name)}/status"
            nothing = {"reservedFor": None, "allocation": None, "devices": None}
            # An allocation is never changed: it is given up, and made anew.
            for status in (nothing, claim.get("status") or {}):
                patch = {"status": status}
                self._plane.request("PATCH", path, patch, content_type=MERGE_PATCH)

    def _wanted(self) -> Json:
        """What the next pod is to be: its claims, old and new, and itself."""
        rng = self._rng
        self._number += 1
        new: dict[str, Json] = {}
        names: list[str] = []
        if rng.random() > 0.1:
            for number in range(rng.choice([1, 1, 1, 2])):
                shared = [
                    each["metadata"]["name"]
                    for each in all_claims(self._plane, self._namespace)
                    if not each["metadata"].get("ownerReferences")
                    and each["metadata"]["name"] not in names
                ]
                if shared and rng.random() < 0.2:
                    names.append(rng.choice(shared))
                else:
                    names.append(f"claim-{self._number:04d}-{number}")
                    new[names[-1]] = random_devices.random_claim(rng)
        pod = random_devices.random_pod(rng, f"pod-{self._number:04d}", names)
        return {"claims": new, "pod": pod, "templates": set(new) if rng.random() < 0.3 else set()}

    def _create(self, wanted: Json) -> str:
        """Create claims, those that are left from the last try excepted, and a pod that waits."""
        pod = msgspec.json.decode(msgspec.json.encode(wanted["pod"]))
        there = {each["metadata"]["name"] for each in all_claims(self._plane, self._namespace)}
        templates = f"{DEVICES}/namespaces/{self._namespace}/resourceclaimtemplates"
        for name, spec in wanted["claims"].items():
            body = {"metadata": {"name": name}, "spec": spec}
            if name in wanted["templates"]:
                body["spec"] = {"spec": spec}
                self._plane.request("POST", templates, body)
            elif name not in there:
                self._plane.request("POST", claims_path(self._namespace), body)
        for each in pod["spec"].get("resourceClaims", ()):
            if each["name"] in wanted["templates"]:
                each["resourceClaimTemplateName"] = each.pop("resourceClaimName")
        pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        created = self._plane.request("POST", pods_path(self._namespace), pod)
        if wanted["templates"]:
            make_claims(self._plane, created)
        for name in wanted["templates"]:
            self._plane.request("DELETE", f"{templates}/{name}")
        return str(created["metadata"]["name"])

    def _let_go(self, name: str) -> Json:
        """Let a pod be scheduled."""
        path, patch = pods_path(self._namespace, name), {"spec": {"schedulingGates": None}}
        return self._plane.request("PATCH", path, patch, content_type=MERGE_PATCH)

    def _answer_of(self, pod: Json, before: list[Json], after: list[Json]) -> Answer:
        """What the real one made of a pod."""
        node_name = pod["spec"].get("nodeName")
        if node_name is None:
            return Answer(frozenset(), frozenset((pod["status"]["conditions"][0]["message"],)))
        had = {each["metadata"]["name"] for each in before if _allocation(each)}
        claims = {each["metadata"]["name"]: msgspec.convert(each, ResourceClaim) for each in after}
        extended = None
        status = msgspec.convert(pod, Pod).status.extended_resource_claim_status
        if status is not None:
            made = claims.pop(status.resource_claim_name)
            assert made.status.allocation is not None
            allocation = comparable(made.status.allocation)
            extended = made.spec.devices, (status.request_mappings, allocation)
        return Answer(
            frozenset((node_name,)),
            allocations={
                name: comparable(each.status.allocation)
                for name, each in claims.items()
                if each.status.allocation is not None and name not in had
            },
            extended=extended,
        )


def _allocation(claim: Json) -> Json | None:
    found: Json | None = claim.get("status", {}).get("allocation")
    return found


def difference(ours: Answer, theirs: Answer) -> str | None:
    """Say where two answers differ, None if they do not."""
    if not theirs.nodes:
        same = not ours.nodes and theirs.messages <= ours.messages
        return None if same else f"refused: {theirs.messages}; we say {ours!r}"
    if not theirs.nodes <= ours.nodes:
        return f"node {theirs.nodes}; best for us {ours.nodes} {set(ours.messages)}"
    for what in ("allocations", "extended"):
        mine, other = getattr(ours, what), getattr(theirs, what)
        if mine != other:
            return f"{what} on {theirs.nodes}: {other!r}; ours {mine!r}"
    return None


def compare(plane: ControlPlane, *, pods: int, seed: int) -> Comparison:
    """Compare on a cluster that has no objects; return what came of it."""
    namespace = f"devices-{seed}"
    plane.create_namespace(namespace)
    comparison = Comparison(plane, namespace, seed)
    comparison.prepare()
    try:
        comparison.run(pods)
    finally:
        plane.delete_namespace(namespace)
    return comparison


def main() -> None:
    """Compare for as long as it is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261118)
    flags = parser.parse_args()
    with ControlPlane(assets.folder()) as plane:
        done = compare(plane, pods=flags.pods, seed=flags.seed)
    for each in done.doubts:
        print(f"asked again: {each}")
    print(", ".join(f"{what}: {count}" for what, count in done.outcomes.items()))


if __name__ == "__main__":
    main()
