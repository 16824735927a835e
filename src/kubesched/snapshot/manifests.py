"""Reads manifests as a snapshot: YAML or JSON, multiple documents, lists included.

    files, folders ──> documents ──> objects, with the API server's defaults

Also reads the pod of a manifest that was not created yet: a pod, or any object with a pod template.
Such a file may be standard input, ``-``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TextIO
from weakref import WeakKeyDictionary

import msgspec
import yaml

from kubesched.api import claim_templates
from kubesched.api.core import Pod
from kubesched.api.decoding import convert
from kubesched.api.scheduling import PriorityClass
from kubesched.cluster.object_store import HasMeta
from kubesched.config import untrusted_yaml
from kubesched.embedded.pod_defaults import set_spec_defaults
from kubesched.errors import ObjectError
from kubesched.kinds import KINDS, ObjectKind, kind_of
from kubesched.snapshot import api_fields
from kubesched.snapshot.contents import Snapshot

JsonObject = dict[str, Any]
#: Where an object stands, for messages, and the object.
Located = tuple[str, JsonObject]

#: The name of standard input as a file.
STDIN: Final = "-"
SUFFIXES: Final = (".yaml", ".yml", ".json")
_SHOWN_UNKNOWN: Final = 5
#: Kinds that a file of pods does not add; what a budget allows is counted by a controller.
_NOT_BESIDE: Final = frozenset({"Node", "Pod", "PodDisruptionBudget"})
#: Kinds whose objects have a state that a file does not know: those of the cluster stay.
_WITH_STATE: Final = frozenset(
    {"PersistentVolume", "PersistentVolumeClaim", "PodGroup", "ResourceClaim"}
)
#: Priority classes that every cluster has.
SYSTEM_CLASSES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def read(paths: Sequence[Path]) -> Snapshot:
    """Read files, and all manifests in folders; raises ObjectError if one cannot be read."""
    snapshot = Snapshot(source=", ".join(map(str, paths)))
    ignored: dict[str, int] = {}
    found: list[tuple[str, ObjectKind, JsonObject]] = []
    unknown: list[str] = []
    for path in _files(paths):
        for where, tree in _objects(path):
            kind = kind_of(tree.get("apiVersion"), tree.get("kind"))
            if kind is None:
                name = str(tree.get("kind"))
                ignored[name] = ignored.get(name, 0) + 1
            else:
                found.append((where, kind, tree))
                unknown += (f"{where}: {named(tree)}: {each}" for each in _unknown_fields(tree))
    # Classes first: pods get their priority from them.
    for where, kind, tree in sorted(found, key=lambda each: each[1].name != "PriorityClass"):
        snapshot.add(kind.name, _object(tree, kind, where, snapshot.priority_classes))
    _make_claims(snapshot)
    if ignored:
        listed = ", ".join(f"{count} {name}" for name, count in sorted(ignored.items()))
        snapshot.notes.append(f"objects that do not decide where pods go, left out: {listed}")
    # A newer API server may have written them: no reason to reject the rest.
    snapshot.notes += unknown[:_SHOWN_UNKNOWN]
    if len(unknown) > _SHOWN_UNKNOWN:
        snapshot.notes.append(f"{len(unknown) - _SHOWN_UNKNOWN} more unknown fields are left out")
    return snapshot


def _make_claims(snapshot: Snapshot) -> None:
    """Make the claims of pods that refer to templates: no controller does it for files."""
    find = claim_templates.among(snapshot.claim_templates)
    for number, pod in enumerate(snapshot.pods):
        snapshot.pods[number], made = claim_templates.with_claims(pod, find)
        snapshot.objects["ResourceClaim"] += made


def objects_in(paths: Sequence[Path]) -> list[Located]:
    """Return the objects of files and folders as they are written; raises ObjectError."""
    return [each for path in _files(paths) for each in _objects(path)]


def add_beside_pods(snapshot: Snapshot, path: Path, *, namespace: str = "default") -> None:
    """Add what a file of a pod not created yet has beside it: claims, templates, groups, …"""
    add_objects(snapshot, _objects(path), namespace=namespace)


def add_objects(snapshot: Snapshot, objects: Iterable[Located], *, namespace: str) -> None:
    """Add the objects that pods not created yet may refer to; `namespace` is the default."""
    known = {kind: set(map(_key, snapshot.objects[kind])) for kind in _WITH_STATE}
    for where, tree in objects:
        kind = kind_of(tree.get("apiVersion"), tree.get("kind"))
        if kind is None or kind.name in _NOT_BESIDE:
            continue
        inside = _in_namespace(tree, namespace) if kind.path.namespaced else tree
        made = _object(inside, kind, where, snapshot.priority_classes)
        if _key(made) not in known.get(kind.name, ()):
            snapshot.add(kind.name, made)


def _in_namespace(tree: JsonObject, namespace: str) -> JsonObject:
    meta = tree.get("metadata")
    if not isinstance(meta, dict) or meta.get("namespace"):
        return tree
    return {**tree, "metadata": {**meta, "namespace": namespace}}


def _key(obj: HasMeta) -> tuple[str, str]:
    return obj.metadata.namespace, obj.metadata.name


def names_in(path: Path, kind: str) -> set[str]:
    """Return the names of a file's objects of a kind."""
    trees = (tree for _, tree in _objects(path) if tree.get("kind") == kind)
    return {str(_map_of(tree.get("metadata")).get("name", "")) for tree in trees}


def read_pod(path: Path, classes: Sequence[PriorityClass], *, namespace: str) -> Pod:
    """Return the first pod, or pod template, of a file; raises ObjectError if it has none."""
    return _first_pod(_objects(path), str(path), classes, namespace=namespace)


def objects_of(text: str, where: str = "the manifest") -> list[Located]:
    """Return the objects of a text as they are written; raises ObjectError."""
    return list(_parsed(text, where))


def parse_pod(
    text: str, classes: Sequence[PriorityClass], *, namespace: str, where: str = "the manifest"
) -> Pod:
    """Return the first pod, or pod template, of a text; `where` names it in messages."""
    return _first_pod(_parsed(text, where), where, classes, namespace=namespace)


def _first_pod(
    objects: Iterator[Located],
    source: str,
    classes: Sequence[PriorityClass],
    *,
    namespace: str,
) -> Pod:
    for where, tree in objects:
        pod = pod_of(where, tree, classes, namespace=namespace)
        if pod is not None:
            return pod
    raise ObjectError(no_pod_in(source))


def no_pod_in(source: str) -> str:
    """Return what is wrong with a file that has no pod."""
    return f"{source}: no pod in it, and nothing with a pod template"


def pod_of(
    where: str, tree: JsonObject, classes: Sequence[PriorityClass], *, namespace: str
) -> Pod | None:
    """Return the pod of an object, or of its template; None if it has neither.

    Raises ObjectError if the object has fields that Kubernetes does not know.
    """
    found = _pod_tree(tree)
    if found is None:
        return None
    wrong = [*_unknown_fields(tree), *_wrong_values(tree)]
    if wrong:
        more = f" (and {len(wrong) - 1} more like this)" if len(wrong) > 1 else ""
        raise ObjectError(f"{where}: {named(tree)}: {wrong[0]}{more}")
    meta = found.setdefault("metadata", {})
    if not meta.get("namespace"):
        meta["namespace"] = namespace
    pod: Pod = _object(found, KINDS["Pod"], where, classes)
    return pod


def _pod_tree(tree: JsonObject) -> JsonObject | None:
    """Return the pod of an object, or that of its template."""
    if tree.get("kind") == "Pod":
        return tree
    # A PodTemplate has no spec of its own.
    spec = tree if tree.get("kind") == "PodTemplate" else spec_of(tree)
    template = spec.get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return None
    owner, meta = _map_of(tree.get("metadata")), dict(_map_of(template.get("metadata")))
    meta.setdefault("name", owner.get("name", ""))
    meta.setdefault("namespace", owner.get("namespace", ""))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


def spec_of(tree: JsonObject) -> JsonObject:
    """Return the spec of an object; that of a CronJob's Job, which has the pod template."""
    spec = _map_of(tree.get("spec"))
    return _map_of(_map_of(spec["jobTemplate"]).get("spec")) if "jobTemplate" in spec else spec


def _map_of(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


# --- validation ------------------------------------------------------------------------------


def _unknown_fields(tree: JsonObject) -> Iterator[str]:
    if not _is_from_a_server(tree):
        for part, type_name, path in _typed(tree):
            yield from api_fields.unknown_fields(part, type_name, path)


def _wrong_values(tree: JsonObject) -> Iterator[str]:
    if not _is_from_a_server(tree):
        for part, type_name, path in _typed(tree):
            yield from api_fields.wrong_values(part, type_name, path)


def _is_from_a_server(tree: JsonObject) -> bool:
    """Tell whether an API server has already validated an object: there may be many of these."""
    meta = tree.get("metadata")
    return isinstance(meta, dict) and bool(meta.get("resourceVersion"))


def _typed(tree: JsonObject) -> Iterator[tuple[object, str, str]]:
    """Yield the parts of an object whose fields are known: value, type, path."""
    kind, version = str(tree.get("kind")), tree.get("apiVersion")
    group = api_fields.group_of(kind)
    if group is not None and (not version or str(version).rpartition("/")[0] == group):
        yield tree, kind, ""
        return
    if kind == "PodTemplate":
        yield tree.get("template"), "PodTemplateSpec", "template"
    # A custom kind: a field in the place of a pod template is one.
    spec = tree.get("spec")
    if isinstance(spec, dict):
        yield spec.get("template"), "PodTemplateSpec", "spec.template"


def named(tree: JsonObject) -> str:
    """Return kind and name of an object, for messages."""
    meta = tree.get("metadata")
    name = meta.get("name") or meta.get("generateName", "") if isinstance(meta, dict) else ""
    return f"{tree.get('kind')} {name}".strip()


# --- files to trees ---------------------------------------------------------------------------


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES)
            if not inside:
                raise ObjectError(f"{path}: no manifests ({', '.join(SUFFIXES)}) in this folder")
            yield from inside
        else:
            yield path


def _objects(path: Path) -> Iterator[Located]:
    """Yield the objects of a file, each with its name for messages."""
    if str(path) == STDIN:
        return _parsed(_standard_input(), "standard input")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as failed:
        raise ObjectError(f"cannot read {path}: {failed.strerror}") from None
    except UnicodeDecodeError as malformed:
        raise ObjectError(f"{path}: not YAML: {malformed}") from None
    return _parsed(text, str(path))


#: What was read: a file is read for each question about it, which standard input allows once.
_inputs: WeakKeyDictionary[TextIO, str] = WeakKeyDictionary()


def _standard_input() -> str:
    stream = sys.stdin
    if stream not in _inputs:
        try:
            _inputs[stream] = stream.read()
        except UnicodeDecodeError as malformed:
            raise ObjectError(f"standard input: not YAML: {malformed}") from None
    return _inputs[stream]


def _parsed(text: str, source: str) -> Iterator[Located]:
    try:
        documents = _documents(text)
    except yaml.YAMLError as malformed:
        raise ObjectError(f"{source}: not YAML: {untrusted_yaml.problem(malformed)}") from None
    for number, document in enumerate(documents, start=1):
        where = source if len(documents) == 1 else f"{source}, document {number}"
        yield from _unpacked(document, where)


def _documents(text: str) -> list[Any]:
    if text.startswith("{"):
        # Output of ``kubectl get -o json`` is parsed as JSON, a hundred times faster than as YAML.
        try:
            document = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            pass
        else:
            untrusted_yaml.check_values(document)
            return [document]
    return untrusted_yaml.load_all(text)


def _unpacked(document: object, where: str) -> Iterator[Located]:
    if document is None:
        return
    if not isinstance(document, dict) or not document.get("kind"):
        raise ObjectError(f"{where}: not a Kubernetes object: it has no kind")
    items = document.get("items")
    kind = str(document["kind"])
    if not kind.endswith("List") or not isinstance(items, list):
        yield where, document
        return
    # Items of a typed list may omit kind and apiVersion.
    identity = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for number, item in enumerate(items):
        if isinstance(item, dict):
            missing = {} if item.get("kind") else identity
            yield f"{where}, item {number}", {**missing, **item}


# --- trees to objects -------------------------------------------------------------------------


def _object(
    tree: JsonObject, kind: ObjectKind, where: str, classes: Sequence[PriorityClass]
) -> Any:  # noqa: ANN401 (of the kind's type)
    tree = _without_nulls(tree)
    meta = tree.setdefault("metadata", {})
    if not isinstance(meta, dict):
        raise ObjectError(f"{where}: {kind.name}: metadata must be an object")
    name = meta.setdefault("name", meta.get("generateName", ""))
    if kind.path.namespaced:
        meta["namespace"] = meta.get("namespace") or "default"
    meta["uid"] = meta.get("uid") or "/".join((meta.get("namespace", ""), str(name)))
    at = f"{where}: {kind.name} {name}"
    if not name:
        raise ObjectError(f"{at}: it has no name")
    for wrong in _wrong_values(tree):
        raise ObjectError(f"{at}: {wrong}")
    try:
        if kind.name == "Pod":
            _complete_pod(tree, at, classes)
        elif kind.name == "Node":
            status = tree.setdefault("status", {})
            status.setdefault("allocatable", status.get("capacity"))
        return convert(tree, kind.type)
    except (msgspec.ValidationError, AttributeError, TypeError) as unreadable:
        raise ObjectError(f"{at}: {unreadable}") from None


def _complete_pod(tree: JsonObject, at: str, classes: Sequence[PriorityClass]) -> None:
    spec = tree.setdefault("spec", {})
    set_spec_defaults(spec)
    if spec.get("priority") is not None:
        return
    name = spec.get("priorityClassName", "")
    if name in SYSTEM_CLASSES:
        spec["priority"] = SYSTEM_CLASSES[name]
        return
    matching = [
        each for each in classes if (each.metadata.name == name if name else each.global_default)
    ]
    if name and not matching:
        raise ObjectError(f"{at}: there is no priority class {name}")
    if matching:
        spec["priority"] = matching[0].value
        spec.setdefault("preemptionPolicy", matching[0].preemption_policy or None)


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 (any JSON value)
    """Return a value without nulls, which the API treats as absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value
