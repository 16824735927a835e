"""Devices: claims with counts, selectors, constraints, alternatives, taints, partitions, shares.

A claim must get the same devices in the same order on the node that kube-scheduler chose. Devices,
taints and pods come and go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.resource import AllocationResult, ResourceClaim
from kubesched.cluster.cluster import Cluster
from kubesched.errors import ObjectError
from kubesched.framework.cycle_state import CycleState
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.pod_devices import PodDevices
from tests.integration.claim_controller import make_claims

from . import drawn_devices
from .one_by_one import GATE, OneByOne, Question, Scenario
from .session import NAMESPACE, PODS, Session
from .theme import Json

NODES: Final = 12
#: So many pods stay.
KEPT: Final = 40
#: The claim that a scheduler makes for extended resources.
EXTENDED: Final = "(extended resources)"
PRE_BIND: Final = 'running PreBind plugin "DynamicResources"'
CLAIM, TEMPLATE, SLICE = "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"


class DeviceScenario(Scenario):
    """Pods with claims of devices."""

    retries = False

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._number = 0
        self._generations: Counter[int] = Counter()
        self._slices: dict[int, list[str]] = {}

    # --- the cluster ------------------------------------------------------------------------

    def objects(self) -> list[Json]:
        """Return nodes, classes and slices."""
        nodes = drawn_devices.random_nodes(self.rng, NODES)
        made = [{**each, "kind": "Node"} for each in nodes]
        made += [{**each, "kind": "DeviceClass"} for each in drawn_devices.device_classes()]
        for number in range(NODES + 1):
            made += self._publish(number)
        return made

    def _publish(self, number: int) -> list[Json]:
        """Return what a node has, or, for the number after the last, what no node has, anew."""
        self._generations[number] += 1
        generation = self._generations[number]
        if number < NODES:
            made = drawn_devices.node_slices(self.rng, number, generation)
        else:
            made = drawn_devices.network_slices(self.rng, NODES, generation)
        self._slices[number] = [each["metadata"]["name"] for each in made]
        return [{**each, "kind": SLICE} for each in made]

    def change(self, session: Session) -> None:
        """Let some pods go, and change devices and taints now and then."""
        rng = self.rng
        pods = sorted(each["metadata"]["name"] for each in session.copy.all_of("Pod"))
        while len(pods) > KEPT or (pods and rng.random() < 0.1):
            name = rng.choice(pods)
            pods.remove(name)
            self._delete_pod(session, name, deallocate=rng.random() < 0.7)
        if rng.random() < 0.04:
            number = rng.randrange(NODES + 1)
            for name in self._slices[number]:
                session.delete(SLICE, name)
            for each in self._publish(number):
                session.create(each)
        rules = sorted(each["metadata"]["name"] for each in session.copy.all_of("DeviceTaintRule"))
        if rules and rng.random() < 0.03:
            session.delete("DeviceTaintRule", rng.choice(rules))
        if rng.random() < 0.03:
            rule = drawn_devices.taint_rule(rng, self._number, NODES)
            session.create({**rule, "kind": "DeviceTaintRule"})
        for claim in session.copy.all_of(CLAIM):
            is_unused = not claim.get("status", {}).get("reservedFor")
            if is_unused and not claim["metadata"].get("ownerReferences") and rng.random() < 0.3:
                self._forget_claim(session, claim["metadata"]["name"])

    def _forget_claim(self, session: Session, name: str) -> None:
        nothing = {"status": {"allocation": None, "devices": None}}
        session.patch(CLAIM, name, nothing, "status")
        session.delete(CLAIM, name)

    def _delete_pod(self, session: Session, name: str, *, deallocate: bool = True) -> None:
        uid = session.copy.objects["Pod", name]["metadata"]["uid"]
        session.delete("Pod", name)
        for claim in session.copy.all_of(CLAIM):
            self._release(session, claim, uid, deallocate=deallocate)

    def _release(self, session: Session, claim: Json, uid: str, *, deallocate: bool) -> None:
        """Take back what a pod that is gone had of a claim, as the claim controller would."""
        name = claim["metadata"]["name"]
        is_own = any(each["uid"] == uid for each in claim["metadata"].get("ownerReferences", ()))
        users = claim.get("status", {}).get("reservedFor", [])
        left = [each for each in users if each["uid"] != uid]
        if not is_own and len(left) == len(users):
            return
        status: Json = {"reservedFor": left or None}
        if not left and (deallocate or is_own):
            status |= {"allocation": None, "devices": None}
        session.copy.put(CLAIM, session.patch(CLAIM, name, {"status": status}, "status"))
        if is_own:
            session.delete(CLAIM, name)

    # --- questions --------------------------------------------------------------------------

    def question(self, session: Session) -> Question:
        """Return a pod with claims, old and new ones, or with extended resources."""
        rng = self.rng
        self._number += 1
        new: list[Json] = []
        names: list[str] = []
        shared = [
            each["metadata"]["name"]
            for each in session.copy.all_of(CLAIM)
            if not each["metadata"].get("ownerReferences")
        ]
        from_templates = rng.random() < 0.3
        if rng.random() > 0.1:
            for number in range(rng.choice([1, 1, 1, 2])):
                left = sorted(set(shared) - set(names))
                if left and rng.random() < 0.2:
                    names.append(rng.choice(left))
                    continue
                names.append(f"claim-{self._number:04d}-{number}")
                spec = drawn_devices.random_claim(rng)
                metadata = {"name": names[-1]}
                if from_templates:
                    new.append({"kind": TEMPLATE, "metadata": metadata, "spec": {"spec": spec}})
                else:
                    new.append({"kind": CLAIM, "metadata": metadata, "spec": spec})
        pod = drawn_devices.random_pod(rng, f"pod-{self._number:04d}", names)
        if from_templates:
            made = {each["metadata"]["name"] for each in new}
            for each in pod["spec"].get("resourceClaims", ()):
                if each["name"] in made:
                    each["resourceClaimTemplateName"] = each.pop("resourceClaimName")
        return Question(pod, tuple(new))

    def submit(self, session: Session, question: Question) -> Json:
        """Create claims, and a pod that waits until kube-scheduler has seen them."""
        for each in question.objects:
            session.create(each)
        gated = {**question.pod, "spec": {**question.pod["spec"]}}
        gated["spec"]["schedulingGates"] = [{"name": GATE}]
        created = session.plane.request("POST", PODS, gated)
        templates = [each for each in question.objects if each["kind"] == TEMPLATE]
        if templates:
            session.reread(CLAIM, _claim_names(make_claims(session.plane, created)))
        for each in templates:
            session.delete(TEMPLATE, each["metadata"]["name"])
        return session.patch("Pod", gated["metadata"]["name"], {"spec": {"schedulingGates": None}})

    # --- answers ----------------------------------------------------------------------------

    def our_claims(
        self, state: CycleState, cluster: Cluster, node_name: str
    ) -> Mapping[str, object]:
        """Return the allocations that ours decides for."""
        devices = state.get(DynamicResources.name)
        if not isinstance(devices, PodDevices):
            return {}
        found: dict[str, object] = {
            devices.claims[number].metadata.name: _comparable(each)
            for number, each in devices.decided.items()
            if devices.claims[number] is not devices.extended
        }
        made, last = devices.extended_claim, len(devices.claims) - 1
        if devices.has_extended and last in devices.decided and not (made and made.mappings):
            # Device plugins offer all extended resources, but there are other claims to allocate.
            what = f"pod {NAMESPACE}/{devices.pod.metadata.name} ExtendedResourceClaimStatus"
            raise ObjectError(f"{PRE_BIND}: nil or empty request mappings, no update of {what}")
        if made is not None and made.mappings:
            allocation = _comparable(devices.decided[last])
            found[EXTENDED] = made.claim.spec.devices, made.mappings, allocation
        return found

    def their_claims(self, session: Session, pod: Json) -> Mapping[str, object]:
        """Return the allocations that are new."""
        found: dict[str, object] = {}
        status = msgspec.convert(pod, Pod).status.extended_resource_claim_status
        if status is not None:
            made = self._read(session, status.resource_claim_name)
            assert made.status.allocation is not None
            allocation = _comparable(made.status.allocation)
            found[EXTENDED] = made.spec.devices, status.request_mappings, allocation
        for name in _claim_names(pod):
            before = session.copy.objects[CLAIM, name].get("status", {}).get("allocation")
            allocated = self._read(session, name).status.allocation
            if allocated is not None and not before:
                found[name] = _comparable(allocated)
        return found

    def _read(self, session: Session, name: str) -> ResourceClaim:
        return msgspec.convert(session.read(CLAIM, name), ResourceClaim)

    def placed(self, session: Session, pod: Json) -> None:
        """Take over a pod and its claims."""
        extended = pod["status"].get("extendedResourceClaimStatus")
        names = _claim_names(pod) + ([extended["resourceClaimName"]] if extended else [])
        session.reread(CLAIM, names)
        super().placed(session, pod)

    def refused(self, session: Session, question: Question, pod: Json) -> None:
        """Take back a pod; claims of its own go with it, others are there for later pods."""
        # kube-scheduler deallocates claims that cannot be used.
        session.reread(CLAIM, _claim_names(pod))
        session.copy.put("Pod", pod)
        self._delete_pod(session, pod["metadata"]["name"])


def _claim_names(pod: Json) -> list[str]:
    """Return the claims of a pod: those that it names, and those that were made for it."""
    named = [each.get("resourceClaimName") for each in pod["spec"].get("resourceClaims", ())]
    made = pod["status"].get("resourceClaimStatuses", ())
    names = [*named, *(each.get("resourceClaimName") for each in made)]
    return [each for each in names if each]


def _comparable(allocation: AllocationResult) -> AllocationResult:
    """Return an allocation without what no two can have in common."""
    results = tuple(replace(each, share_id=None) for each in allocation.devices.results)
    devices = replace(allocation.devices, results=results)
    return replace(allocation, devices=devices, allocation_timestamp=None)


class DeviceTheme(OneByOne):
    """Compares placements of pods with claims of devices."""

    name = "devices"
    scenario = DeviceScenario
