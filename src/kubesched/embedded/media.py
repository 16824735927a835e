"""Content negotiation: the format of requests and responses.

JSON and YAML are read and written. Protobuf is read, because Go clients send it unconditionally,
and never written: they accept JSON as their second choice.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Final

from kubesched.embedded.refusals import not_acceptable, unsupported_media_type

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_OFFERED: Final = (JSON, YAML)
_READ: Final = (JSON, YAML, PROTOBUF)
_ANY: Final = frozenset({"*/*", "application/*", JSON})


class MediaForm(Enum):
    """The form of a response."""

    JSON = "JSON"
    YAML = "YAML"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


@lru_cache(maxsize=256)
def wanted_form(accept: str) -> MediaForm:
    """Return the first supported form of an Accept header; raises StatusError 406."""
    for clause in accept.split(",") if accept else ("*/*",):
        media, parameters = _parsed(clause)
        if media in _ANY:
            form = _converted(parameters)
        elif media == YAML and "as" not in parameters:
            form = MediaForm.YAML
        else:
            continue
        if form is not None:
            return form
    raise not_acceptable(_OFFERED)


def _converted(parameters: dict[str, str]) -> MediaForm | None:
    kind = parameters.get("as")
    if kind is None:
        return MediaForm.JSON
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in {"v1", "v1beta1"}:
        return None
    if kind in {MediaForm.TABLE.value, MediaForm.METADATA.value, MediaForm.METADATA_LIST.value}:
        return MediaForm(kind)
    return None


def wants_aggregated_discovery(accept: str) -> bool:
    """Tell whether a client accepts aggregated discovery."""
    for clause in accept.split(","):
        _, parameters = _parsed(clause)
        if (
            parameters.get("g") == "apidiscovery.k8s.io"
            and parameters.get("v") == "v2"
            and parameters.get("as") == "APIGroupDiscoveryList"
        ):
            return True
    return False


def _parsed(clause: str) -> tuple[str, dict[str, str]]:
    media, *rest = (part.strip() for part in clause.split(";"))
    return media, dict(part.split("=", 1) for part in rest if "=" in part)


@lru_cache(maxsize=64)
def sent_form(content_type: str) -> str:
    """Return the format of a body: JSON, YAML or PROTOBUF; raises StatusError 415 otherwise."""
    media = content_type.partition(";")[0].strip() or JSON
    if media not in _READ:
        raise unsupported_media_type(_READ)
    return media
