"""Metadata that every API object carries."""

from __future__ import annotations

from msgspec import Struct


class ApiStruct(Struct, frozen=True, gc=False, kw_only=True, rename="camel", omit_defaults=True):
    """Base of everything decoded from the wire.

    Frozen and without reference cycles, so the garbage collector does not track the hundreds of
    thousands that a large cluster has.
    """


class OwnerReference(ApiStruct, frozen=True):
    """The owner of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(ApiStruct, frozen=True):
    """Identity, labels and life cycle of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class LabelSelectorRequirement(ApiStruct, frozen=True):
    """One ``matchExpressions`` entry."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(ApiStruct, frozen=True):
    """Labels that must match: all of ``matchLabels`` and all of ``matchExpressions``."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
