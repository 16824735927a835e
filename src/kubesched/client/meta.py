"""The parts of API objects that the client itself reads and writes.

The scheduler's own types are in ``kubesched.api``; here are the few structs that the protocol
needs: an object's identity, a list's envelope, ``Status`` and references to objects.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec
from msgspec import Struct, field

#: Exceptions for JSON that cannot be decoded, including too deep nesting.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Metadata(Protocol):
    """The fields of ``metadata`` that an informer reads."""

    @property
    def name(self) -> str:
        """Name, unique in its namespace."""

    @property
    def namespace(self) -> str:
        """Namespace, "" for cluster-scoped objects."""

    @property
    def uid(self) -> str:
        """Identity, not shared with a later object of the same name."""

    @property
    def resource_version(self) -> str:
        """Opaque version, changed by every write."""


class ApiObject(Protocol):
    """Any object that can be listed and watched."""

    @property
    def metadata(self) -> Metadata:
        """Identity and version."""


class WireStruct(Struct, frozen=True, gc=False, kw_only=True, rename="camel", omit_defaults=True):
    """Base of what this package sends and receives."""


class ListMeta(WireStruct, frozen=True):
    """``metadata`` of a list."""

    resource_version: str = ""
    #: token of the next page, "" on the last one
    next_page: str = field(default="", name="continue")


class StatusDetails(WireStruct, frozen=True):
    """The part of ``Status.details`` that callers use."""

    retry_after_seconds: float = 0


class ApiStatus(WireStruct, frozen=True):
    """The API server's response to a failed request, or to one without an object."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ObjectReference(WireStruct, frozen=True):
    """The object of an event; all fields count in comparisons."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class BadObject(Struct, frozen=True, gc=False, kw_only=True):
    """An object of a list or watch that could not be decoded, and was skipped."""

    #: ADDED, MODIFIED or DELETED in a watch, "" in a list
    event_type: str = ""
    kind: str = ""
    namespace: str = ""
    #: "" if not even the name could be read
    name: str = ""
    resource_version: str = ""
    error: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind or 'object'} {where or '(without a readable name)'}: {self.error}"
