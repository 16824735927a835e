"""The wire format between scheduler and extender: requests to JSON, responses from JSON. No I/O.

    pod, nodes or their names ──ExtenderArgs──────────> bytes ──> FilterAnswer │ host priorities
    pod and node              ──ExtenderBindingArgs───> bytes ──> error text
    nodes and their victims   ──ExtenderPreemptionArgs> bytes ──> victims, by uid

The keys are Go's field names, capitalised, and an absent list is ``null``; the pods and nodes
inside are ordinary API objects, embedded as the API server wrote them. Responses are decoded as Go
decodes them: keys of any case, ``null`` for an absent value, unknown keys ignored, and bytes after
the first JSON value ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct, field

from kubesched.errors import ExtenderError

T = TypeVar("T")

#: Longer error texts of extenders are truncated, because events show them to users.
_LONGEST_TEXT: Final = 4096
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_trailing_characters = re.compile(r"trailing characters \(byte (\d+)\)").search

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


# --- requests ---------------------------------------------------------------------------------


class _Message(Struct, frozen=True, kw_only=True, rename="pascal"):
    """Base of requests; empty fields are encoded, as in Go."""


class NodeList(Struct, frozen=True):
    """A ``v1.NodeList`` with empty metadata."""

    metadata: dict[str, str]
    items: Sequence[Raw] | None


class ExtenderArgs(_Message, frozen=True):
    """Arguments of filter and prioritize; either nodes or names are set."""

    pod: Raw
    nodes: NodeList | None = None
    node_names: Sequence[str] | None = None


class ExtenderBindingArgs(_Message, frozen=True):
    """Arguments of bind."""

    pod_name: str
    pod_namespace: str
    pod_uid: str = field(name="PodUID")
    node: str


class MetaPod(_Message, frozen=True):
    """A pod by its uid."""

    uid: str = field(name="UID")


class MetaVictims(_Message, frozen=True):
    """The victims on one node, by their uids."""

    pods: tuple[MetaPod, ...] = ()
    num_pdb_violations: int = field(default=0, name="NumPDBViolations")


class FullVictims(_Message, frozen=True):
    """The victims on one node, as whole objects."""

    pods: Sequence[Raw]
    num_pdb_violations: int = field(name="NumPDBViolations")


class ExtenderPreemptionArgs(_Message, frozen=True):
    """Arguments of preempt; one of the two maps is set."""

    pod: Raw
    node_name_to_victims: Mapping[str, FullVictims] | None = None
    node_name_to_meta_victims: Mapping[str, MetaVictims] | None = None


Arguments = ExtenderArgs | ExtenderBindingArgs | ExtenderPreemptionArgs

_encoder = msgspec.json.Encoder()


def encode(arguments: Arguments) -> bytes:
    """Encode the body of a request."""
    return _encoder.encode(arguments)


def node_list(nodes: Sequence[bytes]) -> NodeList:
    """Wrap nodes that are JSON already."""
    return NodeList({}, [Raw(node) for node in nodes] or None)


# --- answers ----------------------------------------------------------------------------------


class FilterAnswer(Struct, frozen=True, kw_only=True):
    """The response of filter; None: it did not send that list."""

    node_names: list[str] | None = None
    #: names of the node objects that it sent
    nodes: list[str] | None = None
    #: nodes that it rejected, with its reasons
    failed: Mapping[str, str] = {}
    #: nodes that it rejected and that preemption cannot help; takes precedence over ``failed``
    unresolvable: Mapping[str, str] = {}
    error: str = ""


def read_filter_answer(body: bytes) -> FilterAnswer:
    """Read an ExtenderFilterResult."""
    answer = _Fields(_first_value(body, _raw_object), "")
    names = answer.get("NodeNames", _texts)
    return FilterAnswer(
        node_names=None if names is None else [name or "" for name in names],
        nodes=_node_names(answer),
        failed=_messages(answer.get("FailedNodes", _text_map)),
        unresolvable=_messages(answer.get("FailedAndUnresolvableNodes", _text_map)),
        error=one_line(answer.get("Error", _text) or ""),
    )


def read_priorities(body: bytes) -> list[tuple[str, int]]:
    """Read a HostPriorityList: hosts with their scores, as often as they are named."""
    priorities: list[tuple[str, int]] = []
    answer = _first_value(body, _raw_objects)
    for number, each in enumerate(answer or ()):
        priority = _Fields(each, f"[{number}].")
        host = priority.get("Host", _text) or ""
        priorities.append((host, priority.get("Score", _int64) or 0))
    return priorities


def read_binding_answer(body: bytes) -> str:
    """Read an ExtenderBindingResult: "" if the pod was bound, else why not."""
    answer = _Fields(_first_value(body, _raw_object), "")
    return one_line(answer.get("Error", _text) or "")


def read_preemption_answer(body: bytes) -> dict[str, MetaVictims]:
    """Read an ExtenderPreemptionResult: victims by node."""
    answer = _Fields(_first_value(body, _raw_object), "")
    nodes = answer.get("NodeNameToMetaVictims", _raw_object_map) or {}
    return {node: _victims(each, f"NodeNameToMetaVictims[{node}].") for node, each in nodes.items()}


def one_line(text: str) -> str:
    """Return an extender's text as one line, truncated."""
    if len(text) > _LONGEST_TEXT:
        text = f"{text[:_LONGEST_TEXT]}…"
    return " ".join(text.splitlines()) if "\n" in text or "\r" in text else text


def _victims(raw: dict[str, Raw] | None, where: str) -> MetaVictims:
    fields = _Fields(raw, where)
    pods = [_Fields(pod, f"{where}Pods.") for pod in fields.get("Pods", _raw_objects) or ()]
    return MetaVictims(
        pods=tuple(MetaPod(uid=pod.get("UID", _text) or "") for pod in pods),
        num_pdb_violations=fields.get("NumPDBViolations", _int64) or 0,
    )


def _node_names(answer: _Fields) -> list[str] | None:
    nodes = answer.get("Nodes", _raw_object)
    if nodes is None:
        return None
    items = _Fields(nodes, "Nodes.").get("Items", _raws) or []
    return [_name_of(node, f"Nodes.Items[{number}]") for number, node in enumerate(items)]


def _name_of(node: Raw, where: str) -> str:
    """Read a node's name; nearly every extender sends the keys as the API server spells them."""
    try:
        named = _named_node.decode(node)
        if named.metadata is not None and named.metadata.name:
            return named.metadata.name
    except _UNREADABLE:
        pass  # the slow path below finds the error
    fields = _Fields(_decode(_raw_object, node, where), f"{where}.")
    metadata = _Fields(fields.get("Metadata", _raw_object), f"{where}.Metadata.")
    return metadata.get("Name", _text) or ""


def _messages(given: dict[str, str | None] | None) -> dict[str, str]:
    return {node: one_line(message or "") for node, message in (given or {}).items()}


class _Named(Struct, frozen=True, gc=False):
    name: str = ""


class _NamedNode(Struct, frozen=True, gc=False):
    metadata: _Named | None = None


def _decoder(of: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - a union is not a type[T]
    return msgspec.json.Decoder(of)


_named_node: Final = msgspec.json.Decoder(_NamedNode)
_text: msgspec.json.Decoder[str | None] = _decoder(str | None)
_texts: msgspec.json.Decoder[list[str | None] | None] = _decoder(list[str | None] | None)
_text_map: msgspec.json.Decoder[dict[str, str | None] | None] = _decoder(
    dict[str, str | None] | None
)
_int64: msgspec.json.Decoder[int | None] = _decoder(Int64 | None)
_raws: msgspec.json.Decoder[list[Raw] | None] = _decoder(list[Raw] | None)
_raw_object: msgspec.json.Decoder[dict[str, Raw] | None] = _decoder(dict[str, Raw] | None)
_raw_objects: msgspec.json.Decoder[list[dict[str, Raw] | None] | None] = _decoder(
    list[dict[str, Raw] | None] | None
)
_raw_object_map: msgspec.json.Decoder[dict[str, dict[str, Raw] | None] | None] = _decoder(
    dict[str, dict[str, Raw] | None] | None
)


class _Fields:
    """The fields of one object of a response, with case-insensitive keys."""

    __slots__ = ("_raw", "_where")

    def __init__(self, raw: dict[str, Raw] | None, where: str) -> None:
        self._raw = {key.lower(): value for key, value in (raw or {}).items()}
        self._where = where

    def get(self, name: str, decoder: msgspec.json.Decoder[T | None]) -> T | None:
        """Decode a field, None if it is absent or null."""
        raw = self._raw.get(name.lower())
        return None if raw is None else _decode(decoder, raw, f"{self._where}{name}")


def _decode(decoder: msgspec.json.Decoder[T], raw: Raw, where: str) -> T:
    try:
        return decoder.decode(raw)
    except _UNREADABLE as error:
        raise _unreadable(error, f" in {where}") from error


def _first_value(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        try:
            return decoder.decode(body)
        except msgspec.DecodeError as error:
            trailing = _trailing_characters(str(error))
            if trailing is None:
                raise
            return decoder.decode(body[: int(trailing[1]) - 1])
    except _UNREADABLE as error:
        raise _unreadable(error, "") from error


def _unreadable(error: Exception, where: str) -> ExtenderError:
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return ExtenderError(f"the answer cannot be read: {one_line(reason)}{where}")
