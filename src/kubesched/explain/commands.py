"""The kubectl commands for a change: they add, set or remove one thing and rewrite nothing.

    proposal ──┬── pods to evict, nodes to uncordon      one command each
               └── JSON Patch of the pod ──┬── the pod itself, if Kubernetes allows that
                                           ├── the template of its controller
                                           └── no controller: the pod is deleted and recreated

A template is not the pod: admission adds tolerations, webhooks add containers. So a template gets a
strategic merge patch, which finds containers by name, wherever that can express the change.
Otherwise a JSON Patch first tests that the elements it refers to exist.
"""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from kubesched.api import names
from kubesched.api.core import Pod, Toleration
from kubesched.api.resource import ResourceClaim
from kubesched.api.scheduling import PodGroup
from kubesched.api.workloads import ReplicaSet
from kubesched.cluster.object_store import NamespacedStore
from kubesched.explain.owners import workload_of
from kubesched.explain.patching import Path, edits, plain, pointer

JsonObject = dict[str, Any]

#: Controllers with a mutable template, and their kubectl names.
_CONTROLLERS: Final = {
    "Deployment": "deployment",
    "ReplicaSet": "replicaset",
    "ReplicationController": "replicationcontroller",
    "StatefulSet": "statefulset",
    "DaemonSet": "daemonset",
}
#: Tolerations that admission adds to every pod, so a template need not have them.
_BY_ADMISSION: Final = (names.TAINT_NOT_READY, names.TAINT_UNREACHABLE)
#: Lists that a strategic merge patch merges, and their merge key.
_MERGED_BY: Final = {
    "containers": "name",
    "initContainers": "name",
    "ports": "containerPort",
}
#: Fields that a pod can change, and how.
_MUTABLE: Final = {("tolerations", "add"), ("schedulingGates", "remove")}
_IN_TEMPLATE: Final = ("spec", "template", "spec")
#: Fields that identify an element of a list.
_IDENTITY: Final = (
    "name",
    "key",
    "operator",
    "values",
    "topologyKey",
    "whenUnsatisfiable",
    "containerPort",
    "protocol",
)


class Instructions(Struct, frozen=True):
    """How to make a change."""

    commands: tuple[str, ...] = ()
    #: what to know before running them, or what to do if there is no command
    note: str = ""


def uncordon(node_name: str) -> Instructions:
    """Return the command that uncordons a node."""
    return Instructions((f"kubectl uncordon {shlex.quote(node_name)}",))


def evict(pods: Iterable[Pod]) -> Instructions:
    """Return the commands that evict pods."""
    commands = (f"{_kubectl(each)} delete pod {shlex.quote(each.metadata.name)}" for each in pods)
    return Instructions(
        tuple(commands), "A pod with a controller is replaced by a new one; others are gone."
    )


def need_fewer(group: PodGroup, members: int) -> Instructions:
    """Return how to let a gang be bound with fewer members."""
    meta = group.metadata
    patch = _compact({"spec": {"schedulingPolicy": {"gang": {"minCount": members}}}})
    target = f"kubectl -n {shlex.quote(meta.namespace)} patch podgroup {shlex.quote(meta.name)}"
    return Instructions((f"{target} --type=merge -p {shlex.quote(patch)}",))


def change_claim(pod: Pod, claim: ResourceClaim) -> Instructions:
    """Say how a claim of a pod becomes another one: none can be changed."""
    of_pod = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    for each in pod.spec.resource_claims:
        template = each.resource_claim_template_name
        if template and of_pod.get(each.name) == claim.metadata.name:
            return Instructions(
                note=f"A claim cannot be changed: change the ResourceClaimTemplate {template}, "
                "then create the pod anew."
            )
    return Instructions(
        note=f"A claim cannot be changed: delete the ResourceClaim {claim.metadata.name}, and "
        "create it anew."
    )


def change(
    before: Pod, after: Pod, replica_sets: NamespacedStore[ReplicaSet] | None = None
) -> Instructions:
    """Return the commands that change an existing pod, or the template of its workload."""
    old, new = plain(before.spec), plain(after.spec)
    found = list(edits(old, new))
    if not found:
        return Instructions()
    name = shlex.quote(before.metadata.name)
    if all((path[0], op) in _MUTABLE for op, path, _ in found):
        patch = _json_patch(("spec",), found)
        command = _patch(before, f"pod {name}", "json", patch)
        return Instructions((command,), "Can be changed in the pod as it is.")
    owner = workload_of(before, replica_sets)
    if owner is None:
        text = shlex.quote(_compact(_json_patch(("spec",), found)))
        kubectl = _kubectl(before)
        command = (
            f"{kubectl} get pod {name} -o json | kubectl patch --local -f - --type=json -p {text} "
            f"-o json | {kubectl} replace --force -f -"
        )
        return Instructions(
            (command,), "A pod cannot change these fields: it is deleted and created anew."
        )
    if owner.kind not in _CONTROLLERS:
        return Instructions(
            note=f"A pod cannot change these fields: change the {owner.kind} {owner.name} that it "
            "was made from, or create that anew."
        )
    target = _CONTROLLERS[owner.kind], owner.name
    return Instructions(
        tuple(_on_template(before, f"{target[0]} {shlex.quote(target[1])}", old, found)),
        f"A pod cannot change these fields: change the template of {target[0]} {target[1]}, "
        "which then makes new pods.",
    )


# --- templates --------------------------------------------------------------------------------


def _on_template(
    pod: Pod, target: str, old: JsonObject, found: Sequence[tuple[str, Path, Any]]
) -> Iterator[str]:
    merged: JsonObject = {}
    counted: list[tuple[str, Path, Any]] = []
    added: list[Any] = []
    for op, path, value in found:
        if path[0] == "tolerations":
            added += value if path == ("tolerations",) else [value]
        elif not _merge(merged, old, path, None if op == "remove" else value):
            counted.append((op, path, value))
    if merged:
        patch = {"spec": {"template": {"spec": merged}}}
        yield _patch(pod, target, "strategic", patch)
    if counted:
        tests = [
            {"op": "test", "path": pointer((*_IN_TEMPLATE, *path)), "value": value}
            for path, value in _identities(old, [path for _, path, _ in counted])
        ]
        yield _patch(pod, target, "json", [*tests, *_json_patch(_IN_TEMPLATE, counted)])
    if added:
        yield _tolerating(pod, target, added)


def _merge(merged: JsonObject, old: JsonObject, path: Path, value: object) -> bool:
    """Add an edit to a strategic merge patch; False if such a patch cannot express it."""
    keys = _merge_keys(old, path)
    if keys is None or isinstance(value, (dict, list)):
        return False
    tree: Any = merged
    for step, following in itertools.pairwise(keys):
        if isinstance(step, str):
            tree = tree.setdefault(step, {} if isinstance(following, str) else [])
        else:
            element = next((each for each in tree if each.items() >= step.items()), None)
            if element is None:
                tree.append(element := dict(step))
            tree = element
    tree[keys[-1]] = value
    return True


def _merge_keys(old: JsonObject, path: Path) -> list[Any] | None:
    """Return a path with merge keys in place of list indexes.

    None if a list has none, or if the path is that of an element itself.
    """
    found: list[Any] = []
    there: Any = old
    for list_name, key in zip(("", *path), path, strict=False):
        if isinstance(key, int):
            field = _MERGED_BY.get(str(list_name), "")
            value = there[key].get(field)
            if value is None or [each.get(field) for each in there].count(value) > 1:
                return None
            found.append({field: value})
        else:
            found.append(key)
        there = there[key] if isinstance(key, int) else there.get(key)
    return None if isinstance(path[-1], int) else found


def _identities(old: JsonObject, paths: Sequence[Path]) -> Iterator[tuple[Path, Any]]:
    """Yield tests for the list elements that patches refer to by index."""
    seen: set[Path] = set()
    for path in paths:
        there: Any = old
        for position, key in enumerate(path):
            there = there[key]
            at = path[: position + 1]
            if isinstance(key, int) and at not in seen:
                seen.add(at)
                yield from (((*at, each), there[each]) for each in _IDENTITY if each in there)


def _tolerating(pod: Pod, target: str, added: list[Any]) -> str:
    """Add to the template's tolerations, which may be missing."""
    at = (*_IN_TEMPLATE, "tolerations")
    append = _json_patch(at, [("add", ("-",), each) for each in added])
    appending = _patch(pod, target, "json", append)
    if not all(map(_is_by_admission, pod.spec.tolerations)):
        return appending
    # Adding a list where there is one would replace it: hence the test that there is none.
    create = [
        {"op": "test", "path": pointer(at), "value": None},
        {"op": "add", "path": pointer(at), "value": added},
    ]
    return f"{_patch(pod, target, 'json', create)} ||\n  {appending}"


def _is_by_admission(toleration: Toleration) -> bool:
    return (
        toleration.key in _BY_ADMISSION
        and toleration.operator == "Exists"
        and toleration.effect == names.NO_EXECUTE
    )


# --- words of a shell -------------------------------------------------------------------------


def _json_patch(below: Path, found: Iterable[tuple[str, Path, Any]]) -> list[JsonObject]:
    return [
        {"op": op, "path": pointer((*below, *path))} | ({} if op == "remove" else {"value": value})
        for op, path, value in found
    ]


def _patch(pod: Pod, target: str, kind: str, patch: object) -> str:
    return f"{_kubectl(pod)} patch {target} --type={kind} -p {shlex.quote(_compact(patch))}"


def _kubectl(pod: Pod) -> str:
    return f"kubectl -n {shlex.quote(pod.metadata.namespace)}"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
