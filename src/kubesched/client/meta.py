"""What the client itself reads and writes of API objects, and nothing more.

The scheduler's own types live in ``kubesched.api``; here are the few structs that the protocol
needs: an object's identity, a list's envelope, ``Status`` and references to objects.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec
from msgspec import Struct, field

#: What decoding raises for JSON that cannot be read, be it nested deeper than any stack.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Metadata(Protocol):
    """What an informer asks of an object's ``metadata``."""

    @property
    def name(self) -> str:
        """Name, unique in its namespace."""

    @property
    def namespace(self) -> str:
        """Namespace, "" for cluster-scoped objects."""

    @property
    def uid(self) -> str:
        """Identity that a later object of the same name does not share."""

    @property
    def resource_version(self) -> str:
        """Opaque version, another one after every change."""


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
    """The part of ``Status.details`` that callers act upon."""

    retry_after_seconds: float = 0


class Status(WireStruct, frozen=True):
    """The API server's answer to a request that failed, or that has no object to show."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ObjectReference(WireStruct, frozen=True):
    """Which object an event is about; all fields take part in telling two references apart."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class BadObject(Struct, frozen=True, gc=False, kw_only=True):
    """An object of a list or a watch that could not be read, and was left out."""

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
