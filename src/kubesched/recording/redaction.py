"""Redacts recordings: pseudonyms replace names, without changing any decision.

    names of pods, nodes, namespaces, …, uids, values of labels, images, disks    pseudonyms
    annotations                       dropped, except those that affect decisions
    texts of conditions, paths        dropped
    keys of labels, topology values, numbers in labels of nodes, resources, drivers, profiles   kept

The table of kinds lists these fields. Every text field is either redacted or explicitly kept there:
tests check that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kubesched.api import core, meta, storage
from kubesched.api.core import NodeAffinity, Pod
from kubesched.api.meta import ObjectMeta
from kubesched.cluster.pod_signature import normalized_image_name
from kubesched.config.defaults import IN_TREE_PLUGINS
from kubesched.kinds import KINDS, ObjectKind, Redaction, Redactions
from kubesched.recording.entries import (
    Answered,
    Asking,
    Assumed,
    ClaimDecided,
    ClaimDropped,
    Configured,
    Decided,
    Entry,
    Forgotten,
    Gone,
    GroupDecided,
    Header,
    Moved,
    NodeRejection,
    NodeVictims,
    Nominated,
    Pending,
    Put,
    Raised,
    Removed,
    Returned,
    Unnominated,
    VolumeAssumed,
    VolumeRestored,
)
from kubesched.recording.messages import without_names
from kubesched.recording.pseudonyms import OrderedPseudonyms, Pseudonyms

T = TypeVar("T", bound=Struct)
V = TypeVar("V")
Rule = Callable[[Any], Any]

#: Replaces a message that may contain names.
REDACTED: Final = "(redacted)"
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_KEPT_LABELS: Final = frozenset({"kubernetes.io/os", "kubernetes.io/arch"})
_KEPT_PREFIXES: Final = ("topology.", "failure-domain.beta.kubernetes.io/")
#: Annotations whose presence, or public value, affects decisions.
_KEPT_ANNOTATIONS: Final = frozenset(
    {
        storage.ANNOTATION_BIND_COMPLETED,
        storage.ANNOTATION_BOUND_BY_CONTROLLER,
        storage.ANNOTATION_MIGRATED_PLUGINS,
    }
)
#: Annotations that contain names.
_NAMING_ANNOTATIONS: Final = frozenset(
    {
        storage.ANNOTATION_CLASS,
        storage.ANNOTATION_SELECTED_NODE,
        "kubernetes.io/azure-file-resource-group",
    }
)
#: struct → field → redaction, in objects of all kinds
REDACTIONS: Final[Redactions] = {
    struct: fields for kind in KINDS.values() for struct, fields in kind.redactions.items()
}
#: Redactions that apply to the whole value, not item by item.
_OF_WHOLE_FIELDS: Final = frozenset(
    {Redaction.DROP, Redaction.LABELS, Redaction.NODE_LABELS, Redaction.NODE_SELECTOR}
)


class NameRedactor:
    """Removes names from entries."""

    def __init__(self) -> None:
        self._names = Pseudonyms()
        self._volumes = OrderedPseudonyms()
        #: whether an extender failed in the attempt in progress: the message quotes it
        self._quotes_extender = False
        self._redact: Mapping[Redaction, Rule] = {
            Redaction.KEEP: lambda known: known,
            Redaction.DROP: lambda known: type(known)(),
            Redaction.NAME: self._names.of,
            Redaction.JOINED_NAME: self._names.joined,
            Redaction.VOLUME_NAME: self._volumes.of,
            Redaction.IMAGE: self._image,
            Redaction.NODE_IMAGE: self._image_of_node,
            Redaction.AWS_DISK: self._aws_disk,
            Redaction.NODE_VALUE: self._node_value,
            Redaction.LABELS: self._labels,
            Redaction.NODE_LABELS: self._node_labels,
            Redaction.NODE_SELECTOR: self._node_selector,
        }
        #: structs whose fields depend on each other
        self._whole: Mapping[type[Struct], Rule] = {
            meta.LabelSelectorRequirement: lambda each: self._requirement(each, self._value),
            core.NodeSelectorRequirement: lambda each: self._requirement(each, self._node_value),
            storage.TopologySelectorLabelRequirement: lambda each: self._requirement(
                each, self._node_value
            ),
        }
        self._entries: Mapping[type[Entry], Callable[[Any], Entry]] = {
            Put: lambda each: replace(each, object=self.object(each.kind, each.object)),
            VolumeAssumed: lambda each: replace(each, object=self.object(each.kind, each.object)),
            Removed: self._removed,
            VolumeRestored: self._removed,
            Pending: lambda each: replace(each, pod=self.object("Pod", each.pod)),
            Gone: self._of_uid,
            Forgotten: self._of_uid,
            Unnominated: self._of_uid,
            Returned: self._returned,
            Moved: lambda each: replace(each, uids=tuple(map(self._names.of, each.uids))),
            Assumed: self._on_node,
            Nominated: self._on_node,
            Decided: self._decided,
            GroupDecided: self._group_decided,
            ClaimDecided: lambda each: replace(
                self._of_uid(each), allocation=self._struct(each.allocation)
            ),
            ClaimDropped: self._of_uid,
            Raised: lambda each: replace(self._of_pod(each), error=REDACTED),
            Asking: self._of_pod,
            Answered: self._answered,
            Configured: lambda each: replace(each, config=self.configuration(each.config)),
        }

    # --- lines ------------------------------------------------------------------------------

    def header(self, header: Header) -> Header:
        """Return a header without names."""
        config = self.configuration(header.config)
        return replace(header, config=config, plugin_files=(), redacted=True)

    def entry(self, entry: Entry) -> Entry:
        """Return an entry without names."""
        rule = self._entries.get(type(entry))
        return entry if rule is None else rule(entry)

    def configuration(self, config: dict[str, Any]) -> dict[str, Any]:
        """Return a configuration without names of nodes and without paths and addresses."""
        copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config))
        copied.get("clientConnection", {}).pop("kubeconfig", None)
        for number, extender in enumerate(copied.get("extenders") or ()):
            extender["urlPrefix"] = f"https://extender-{number}.invalid"
            extender.pop("tlsConfig", None)
        for profile in copied.get("profiles") or ():
            for plugin in profile.get("pluginConfig") or ():
                added = plugin.get("args", {}).get("addedAffinity")
                if added:
                    affinity = self._struct(msgspec.convert(added, NodeAffinity))
                    plugin["args"]["addedAffinity"] = msgspec.to_builtins(affinity)
        return copied

    def _removed(self, entry: Any) -> Any:  # noqa: ANN401 (one of two structs)
        changed = replace(
            entry,
            name=self._redact[KINDS[entry.kind].name_redaction](entry.name),
            namespace=self._names.of(entry.namespace),
        )
        return self._of_uid(changed) if isinstance(changed, Removed) else changed

    def _of_uid(self, entry: Any) -> Any:  # noqa: ANN401 (of many structs)
        return replace(entry, uid=self._names.of(entry.uid))

    def _of_pod(self, entry: Any) -> Any:  # noqa: ANN401 (of many structs)
        pod: Pod | None = entry.pod and self.object("Pod", entry.pod)
        return replace(entry, uid=self._names.of(entry.uid), pod=pod)

    def _on_node(self, entry: Assumed | Nominated) -> Entry:
        changed: Entry = replace(self._of_pod(entry), node=self._names.of(entry.node))
        return changed

    def _returned(self, entry: Returned) -> Entry:
        changed: Entry = replace(self._of_uid(entry), message=REDACTED)
        return changed

    def _answered(self, entry: Answered) -> Entry:
        name = self._names.of
        self._quotes_extender |= bool(entry.error)
        told = {
            each: NodeRejection(why.code, (REDACTED,))
            for each, why in (entry.rejected or {}).items()
        }
        victims = {
            node: NodeVictims(tuple(map(name, each.uids)), each.violations)
            for node, each in (entry.victims or {}).items()
        }
        return replace(
            entry,
            feasible=entry.feasible and tuple(map(name, entry.feasible)),
            rejected=entry.rejected and _renamed(told, name),
            scores=entry.scores and _renamed(entry.scores, name),
            victims=entry.victims and _renamed(victims, name),
            error=entry.error and REDACTED,
        )

    def _decided(self, entry: Decided) -> Entry:
        known = {*entry.plugins, *entry.pending_plugins} <= IN_TREE_PLUGINS
        known = known and entry.code != "Error" and not (self._quotes_extender and entry.message)
        self._quotes_extender = False
        changed: Entry = replace(
            self._of_pod(entry),
            namespace=self._names.of(entry.namespace),
            name=self._names.joined(entry.name),
            node=self._names.of(entry.node),
            message=without_names(entry.message) if known else REDACTED,
            nominated=entry.nominated and self._names.of(entry.nominated),
            victims=tuple(map(self._names.of, entry.victims)),
        )
        return changed

    def _group_decided(self, entry: GroupDecided) -> Entry:
        name, self._quotes_extender = self._names.of, False
        return replace(
            entry,
            namespace=name(entry.namespace),
            name=name(entry.name),
            uids=tuple(map(name, entry.uids)),
            pods=tuple(self.object("Pod", each) for each in entry.pods),
            members=tuple(
                replace(
                    each,
                    uid=name(each.uid),
                    namespace=name(each.namespace),
                    name=self._names.joined(each.name),
                    node=name(each.node),
                    message=REDACTED if each.code == "Error" else without_names(each.message),
                    nominated=each.nominated and name(each.nominated),
                )
                for each in entry.members
            ),
            victims=tuple(map(name, entry.victims)),
        )

    # --- objects ----------------------------------------------------------------------------

    def object(self, kind: str, obj: Any) -> Any:  # noqa: ANN401 (of the kind's type)
        """Return an object without names."""
        row = KINDS[kind]
        metadata = self._meta(row, obj.metadata)
        # The table does not describe the texts of kinds that only plugins read.
        if row.is_of_plugins:
            return row.type(metadata=metadata)
        return replace(self._struct(obj), metadata=metadata)

    def _meta(self, kind: ObjectKind, known: ObjectMeta) -> ObjectMeta:
        name = self._names.of
        owners = tuple(
            replace(each, name=name(each.name), uid=name(each.uid))
            for each in known.owner_references
        )
        return replace(
            known,
            name=self._redact[kind.name_redaction](known.name),
            generate_name="",
            namespace=name(known.namespace),
            uid=name(known.uid),
            labels=self._redact[kind.label_redaction](known.labels),
            annotations=self._annotations(known.annotations),
            owner_references=owners,
        )

    def _annotations(self, known: dict[str, str] | None) -> dict[str, str] | None:
        kept = {
            key: self._names.of(value) if key in _NAMING_ANNOTATIONS else value
            for key, value in (known or {}).items()
            if key in _NAMING_ANNOTATIONS or key in _KEPT_ANNOTATIONS
        }
        return kept or None

    def _struct(self, value: T) -> T:
        """Redact a struct, field by field."""
        kind = type(value)
        whole = self._whole.get(kind)
        if whole is not None:
            redacted: T = whole(value)
            return redacted
        redactions = REDACTIONS.get(kind, {})
        changes: dict[str, Any] = {}
        for field in value.__struct_fields__:
            known = getattr(value, field)
            if not known or field == "metadata":
                continue
            redaction = redactions.get(field)
            if redaction is not None:
                changes[field] = self._field(redaction, known)
            elif isinstance(known, Struct):
                changes[field] = self._struct(known)
            elif isinstance(known, tuple) and isinstance(known[0], Struct):
                changes[field] = tuple(map(self._struct, known))
        return replace(value, **changes) if changes else value

    def _field(self, redaction: Redaction, known: Any) -> Any:  # noqa: ANN401 (of the field's type)
        rule = self._redact[redaction]
        if redaction in _OF_WHOLE_FIELDS or isinstance(known, str):
            return rule(known)
        return _renamed(known, rule) if isinstance(known, dict) else tuple(map(rule, known))

    # --- values -----------------------------------------------------------------------------

    def _value(self, value: str) -> str:
        """Redact a label value: valid if it was valid, invalid if not."""
        hidden = self._names.of(value)
        if not value or (len(value) <= 63 and _LABEL_VALUE.fullmatch(value)):
            return hidden
        return hidden.ljust(64, "x") if len(value) > 63 else f"{hidden}!"

    def _node_value(self, value: str) -> str:
        """Redact a label value of nodes, unless it may be compared as a number."""
        return value if _NUMBER.fullmatch(value) else self._value(value)

    def _labels(self, labels: dict[str, str] | None) -> dict[str, str] | None:
        return labels and {key: self._under(key, each) for key, each in labels.items()}

    def _under(self, key: str, value: str) -> str:
        return value if _is_kept(key) else self._value(value)

    def _node_labels(self, labels: dict[str, str] | None) -> dict[str, str] | None:
        return labels and {
            key: each if _is_kept(key) else self._node_value(each) for key, each in labels.items()
        }

    def _node_selector(self, selector: meta.LabelSelector) -> meta.LabelSelector:
        return replace(
            selector,
            match_labels=self._node_labels(selector.match_labels),
            match_expressions=tuple(
                self._requirement(each, self._node_value) for each in selector.match_expressions
            ),
        )

    def _requirement(self, known: Any, rule: Callable[[str], str]) -> Any:  # noqa: ANN401
        """Redact the values of a requirement on a label, or on a node's name."""
        return (
            known if _is_kept(known.key) else replace(known, values=tuple(map(rule, known.values)))
        )

    def _image(self, image: str) -> str:
        """Redact an image with an explicit tag: none and the default tag are the same."""
        return self._image_of_node(normalized_image_name(image))

    def _image_of_node(self, image: str) -> str:
        # Nodes report images literally: a name without a tag matches no pod's image.
        hidden = self._names.of(image)
        return f"{hidden}:tag" if normalized_image_name(image) == image else hidden

    def _aws_disk(self, volume_id: str) -> str:
        # An address has a format that is validated.
        return volume_id if volume_id.startswith("aws://") else self._names.of(volume_id)


def _is_kept(key: str) -> bool:
    return key in _KEPT_LABELS or key.startswith(_KEPT_PREFIXES)


def _renamed(known: dict[str, V], rule: Callable[[str], str]) -> dict[str, V]:
    return {rule(key): each for key, each in known.items()}
