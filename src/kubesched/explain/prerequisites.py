"""What a pod lacks before any node can take it: objects that do not exist, gates, a scheduler.

    case ──> Prerequisites: what to do about each, and the pod as it is tried without them
                └── fits: that is all    └── does not: with a change that places the trial pod

How a missing object will look is not known. So the pod is tried without its use of it: the nodes
that are then feasible are those that nothing else speaks against.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubesched.api.core import Pod, PodResourceClaim
from kubesched.api.resource import ResourceClaim
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.cluster.pod_groups import named_group
from kubesched.cluster.pod_volumes import ClaimMount
from kubesched.errors import ObjectError
from kubesched.explain.case import Case, Kind, Proposal
from kubesched.plugins.pod_claims import claim_name, shown
from kubesched.plugins.volume_claims import LOST, is_fully_bound, sort_claims
from kubesched.plugins.volume_details import requested_size
from kubesched.plugins.volume_provisioning import NO_PROVISIONER

COST_PREREQUISITE: Final = 0.2


class Prerequisite(Struct, frozen=True):
    """One thing that is to be done first."""

    kind: Kind
    title: str
    note: str = ""
    #: volumes and claims to devices, by their names in the pod, that it is tried without
    volumes: frozenset[str] = frozenset()
    resource_claims: frozenset[str] = frozenset()


class Prerequisites(Struct, frozen=True):
    """All that is to be done first, and the pod to be tried."""

    all: tuple[Prerequisite, ...]
    trial: Pod

    @property
    def title(self) -> str:
        """All titles, joined."""
        return " and ".join(dict.fromkeys(each.title for each in self.all))

    @property
    def note(self) -> str:
        """All notes, joined."""
        return " ".join(dict.fromkeys(each.note for each in self.all if each.note))

    def alone(self) -> Proposal:
        """Return the proposal to do these things and no more."""
        return Proposal(
            kind=self.all[0].kind,
            title=self.title,
            cost=COST_PREREQUISITE * len(self.all),
            steps=len(self.all),
            pod=self.trial,
        )

    def before(self, proposal: Proposal) -> Proposal:
        """Return a proposal for the trial pod, with these things done first."""
        return replace(
            proposal,
            title=f"{self.title}, and {proposal.title}",
            cost=proposal.cost + COST_PREREQUISITE * len(self.all),
            steps=proposal.steps + len(self.all),
        )


def find_prerequisites(case: Case, *, is_unclaimed: bool = False) -> Prerequisites | None:
    """Return what a pod lacks before nodes matter, None if it lacks nothing."""
    found = [
        *(_scheduler(case) if is_unclaimed else ()),
        *_gates(case.pod),
        *_group(case),
        *_volumes(case),
        *_resource_claims(case),
    ]
    return Prerequisites(tuple(found), _trial(case, found)) if found else None


def restored(changed: Pod, original: Pod) -> Pod:
    """Return a changed trial pod with all that it was tried without."""
    spec = replace(
        changed.spec,
        volumes=original.spec.volumes,
        resource_claims=original.spec.resource_claims,
        scheduling_group=original.spec.scheduling_group,
    )
    return replace(changed, spec=spec)


def _trial(case: Case, found: list[Prerequisite]) -> Pod:
    volumes = frozenset(name for each in found for name in each.volumes)
    claims = frozenset(name for each in found for name in each.resource_claims)
    kinds = {each.kind for each in found}
    return case.with_spec(
        lambda spec: replace(
            spec,
            volumes=tuple(each for each in spec.volumes if each.name not in volumes),
            resource_claims=tuple(each for each in spec.resource_claims if each.name not in claims),
            scheduling_gates=(),
            scheduling_group=None if "podGroup" in kinds else spec.scheduling_group,
            scheduler_name=case.framework.scheduler_name
            if "schedulerName" in kinds
            else spec.scheduler_name,
        )
    )


# --- the pod itself -----------------------------------------------------------------------------


def _scheduler(case: Case) -> Iterator[Prerequisite]:
    profile, named = case.framework.scheduler_name, case.pod.spec.scheduler_name
    yield Prerequisite("schedulerName", f"schedulerName {profile} instead of {named}")


def _gates(pod: Pod) -> Iterator[Prerequisite]:
    gates = [each.name for each in pod.spec.scheduling_gates]
    if gates:
        yield Prerequisite(
            "schedulingGates",
            f"remove gate{'s' if len(gates) > 1 else ''} {', '.join(gates)}",
            "The controller that set a gate removes it when it is ready.",
        )


def _group(case: Case) -> Iterator[Prerequisite]:
    key = named_group(case.pod)
    groups = case.world.engine.groups
    if key is not None and groups is not None and groups.forest.get(key) is None:
        yield Prerequisite("podGroup", f"create PodGroup {key.namespace}/{key.name}")


# --- volumes ------------------------------------------------------------------------------------


def _volumes(case: Case) -> Iterator[Prerequisite]:
    storage = case.world.cluster.storage
    for mount in case.info.volumes.mounts:
        claim = storage.claims.get(*mount.key)
        if claim is None:
            yield _missing_claim(mount)
        elif claim.status.phase == LOST:
            name, volume = "/".join(mount.key), claim.spec.volume_name
            title = f"create PersistentVolume {volume} of PersistentVolumeClaim {name} again"
            yield Prerequisite("create", title, volumes=frozenset((mount.volume,)))
        elif _is_immediate(case, claim):
            yield _unbound(case, claim, mount)


def _missing_claim(mount: ClaimMount) -> Prerequisite:
    title = f"create PersistentVolumeClaim {mount.namespace}/{mount.name}"
    note = "Its size and class are yours to choose."
    if mount.ephemeral:
        note = "kube-controller-manager creates claims of ephemeral volumes: look there."
    return Prerequisite("create", title, note, volumes=frozenset((mount.volume,)))


def _is_immediate(case: Case, claim: PersistentVolumeClaim) -> bool:
    if is_fully_bound(claim):
        return False
    try:
        return bool(sort_claims((claim,), case.world.cluster.storage).immediate)
    except ObjectError:
        return False


def _unbound(case: Case, claim: PersistentVolumeClaim, mount: ClaimMount) -> Prerequisite:
    name, class_name = "/".join(mount.key), claim.storage_class
    known = case.world.cluster.storage.classes.get(class_name) if class_name else None
    describe = f"kubectl -n {mount.namespace} describe pvc {mount.name}"
    size = requested_size(claim)
    if class_name and known is None:
        title, note = f"create StorageClass {class_name}", f"PersistentVolumeClaim {name} names it."
    elif known is None or known.provisioner in ("", NO_PROVISIONER):
        wanted = " and ".join(filter(None, (size, class_name and f"class {class_name}")))
        of = f" of {wanted}" if wanted else ""
        title = f"create a PersistentVolume{of} for PersistentVolumeClaim {name}"
        note = "A claim without a provisioner is bound to a volume that exists."
    else:
        title = f"have {known.provisioner} bind PersistentVolumeClaim {name}"
        note = f"'{describe}' says what keeps the provisioner from it."
    return Prerequisite("create", title, note, volumes=frozenset((mount.volume,)))


# --- devices ------------------------------------------------------------------------------------


def _resource_claims(case: Case) -> Iterator[Prerequisite]:
    for reference in case.pod.spec.resource_claims:
        found = _resource_claim(case, reference)
        if found is not None:
            title, note = found
            names = frozenset((reference.name,))
            yield Prerequisite("create", title, note, resource_claims=names)


def _resource_claim(case: Case, reference: PodResourceClaim) -> tuple[str, str] | None:
    """Return what is to be done about one claim, and a note; None if it is there."""
    namespace = case.pod.metadata.namespace
    try:
        name = claim_name(case.pod, reference)
    except ObjectError:
        return _not_made(case, reference.resource_claim_template_name or "")
    if name is None:
        return None
    claim = case.world.cluster.devices.claims.get(namespace, name)
    if claim is None:
        return f"create ResourceClaim {namespace}/{name}", ""
    return _without_class(case, claim)


def _not_made(case: Case, template: str) -> tuple[str, str] | None:
    named = f"ResourceClaimTemplate {case.pod.metadata.namespace}/{template}"
    if not template:
        return None
    if case.world.has_claim_template(case.pod.metadata.namespace, template):
        note = "kube-controller-manager makes it: look there."
        return f"have the ResourceClaim of {named} made", note
    return f"create {named}", ""


def _without_class(case: Case, claim: ResourceClaim) -> tuple[str, str] | None:
    classes = case.world.cluster.devices.classes
    for request in claim.spec.devices.requests:
        asked = request.first_available if request.exactly is None else (request.exactly,)
        for each in asked:
            if each.device_class_name and classes.get(each.device_class_name) is None:
                note = f"Request {request.name} of ResourceClaim {shown(claim)} names it."
                return f"create DeviceClass {each.device_class_name}", note
    return None
