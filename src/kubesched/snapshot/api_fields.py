"""All fields of Kubernetes API objects: to detect typos.

Our structs hold only what scheduling reads, so they cannot distinguish a misspelled field from an
irrelevant one. ``api_fields.json`` has all of them, as published by a kube-apiserver;
``tools/api_fields.py`` writes it.

    {"Pod": {"metadata": "ObjectMeta", "spec": "PodSpec", …},
     "PodSpec": {"containers": "[]Container", "overhead": "{}quantity", "hostname": "", …}, …}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec

from kubesched import kinds as table_of_kinds
from kubesched.api import quantity
from kubesched.errors import QuantityError

#: Type name → field → type of the field: "" for plain values, "quantity", a type name, "[]" before
#: the type of a list's items, "{}" before that of a map's values.
Fields = Mapping[str, Mapping[str, str]]

FILE: Final = "api_fields.json"
#: What a test control plane has to be started with to serve all kinds.
FEATURE_GATES: Final = (
    "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true"
)
RUNTIME_CONFIG: Final = "scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"
QUANTITY: Final = "quantity"
#: Kinds with a pod template that are not read otherwise.
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "apis/apps/v1": ("DaemonSet", "Deployment"),
    "apis/batch/v1": ("CronJob", "Job"),
}


def _by_group() -> dict[str, list[str]]:
    found = {group_version: list(kinds) for group_version, kinds in _TEMPLATES.items()}
    builtin = (each for each in table_of_kinds.KINDS.values() if not each.plugin)
    for kind in builtin:
        found.setdefault(kind.path.group_path.lstrip("/"), []).append(kind.name)
    return found


#: Group and version → kinds that manifests may hold; types of their fields are included.
KINDS: Final[Mapping[str, list[str]]] = _by_group()


@cache
def known() -> Fields:
    """Return the fields of all kinds that manifests may hold."""
    text = resources.files("kubesched.snapshot").joinpath(FILE).read_bytes()
    return msgspec.json.decode(text, type=dict[str, dict[str, str]])


@cache
def group_of(kind: str) -> str | None:
    """Return the group of a known kind, None if it is unknown."""
    for group_version, kinds in KINDS.items():
        if kind in kinds:
            return (
                group_version.rpartition("/")[0].removeprefix("apis").removeprefix("api").strip("/")
            )
    return None


# --- checking ---------------------------------------------------------------------------------


def unknown_fields(tree: object, type_name: str, path: str = "") -> Iterator[str]:
    """Yield errors about unknown fields below an object, one line each."""
    fields = known().get(type_name)
    if fields is not None and isinstance(tree, dict):
        for key in map(str, tree):
            if key not in fields:
                near = get_close_matches(key, fields, n=1)
                hint = f", did you mean {near[0]}?" if near else ""
                yield f"unknown field {_joined(path, key)}{hint}"
    for at, value, kind in _inside(tree, type_name, path):
        if kind:
            yield from unknown_fields(value, kind, at)


def wrong_values(tree: object, type_name: str, path: str = "") -> Iterator[str]:
    """Yield errors about lists, maps and quantities below an object, one line each."""
    if tree is None or not type_name:
        return
    if type_name == QUANTITY:
        yield from _wrong_quantity(tree, path)
        return
    wanted = list if type_name.startswith("[]") else dict
    if not isinstance(tree, wanted):
        yield f"{path}: must be {_WORDS[wanted]}, not {_WORDS.get(type(tree), 'a value')}"
        return
    for at, value, kind in _inside(tree, type_name, path):
        yield from wrong_values(value, kind, at)


def _wrong_quantity(value: object, path: str) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        shown = _WORDS.get(type(value), str(value).lower())
        yield f"{path}: must be a quantity such as 500m or 1Gi, not {shown}"
        return
    try:
        if quantity.compare(value, 0) < 0:
            # In the API server's words.
            yield f'{path}: Invalid value: "{value}": must be greater than or equal to 0'
    except QuantityError as malformed:
        yield f"{path}: {malformed}"


_WORDS: Final[Mapping[type, str]] = {list: "a list", dict: "a map"}


def _inside(tree: object, type_name: str, path: str) -> Iterator[tuple[str, object, str]]:
    """Yield the children of a list, a map or an object: path, value, expected type."""
    if isinstance(tree, list):
        if type_name.startswith("[]"):
            yield from ((f"{path}[{at}]", each, type_name[2:]) for at, each in enumerate(tree))
    elif isinstance(tree, dict):
        if type_name.startswith("{}"):
            yield from ((f"{path}[{key}]", each, type_name[2:]) for key, each in tree.items())
        else:
            fields = known().get(type_name, {})
            yield from (
                (_joined(path, key), each, fields.get(str(key), "")) for key, each in tree.items()
            )


def _joined(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


# --- building the table -----------------------------------------------------------------------


def from_openapi(documents: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Build the table from an API server's /openapi/v3, by group and version."""
    schemas = {
        name: schema
        for document in documents.values()
        for name, schema in document["components"]["schemas"].items()
    }
    wanted = [
        name
        for group_version, kinds in KINDS.items()
        for name in documents[group_version]["components"]["schemas"]
        if name.rpartition(".")[2] in kinds and ".api." in name
    ]
    types = _Types(schemas, wanted)
    found: dict[str, dict[str, str]] = {}
    while wanted:
        name = wanted.pop()
        if types.label(name) not in found:
            properties = schemas[name].get("properties", {})
            fields = {key: types.of(each) for key, each in properties.items()}
            found[types.label(name)] = dict(sorted(fields.items()))
    return dict(sorted(found.items()))


class _Types:
    """Short names of types; types that fields refer to are added to `wanted`."""

    def __init__(self, schemas: Mapping[str, Any], wanted: list[str]) -> None:
        self._schemas = schemas
        self._wanted = wanted
        #: Name in the schema → short name. Kinds come first: manifests use these names.
        self._labels = {name: name.rpartition(".")[2] for name in wanted}

    def label(self, name: str) -> str:
        """Return the last part of a name, or as many parts as make it unique."""
        if name not in self._labels:
            short = name.rpartition(".")[2]
            taken = short in self._labels.values()
            self._labels[name] = ".".join(name.split(".")[-3:]) if taken else short
        return self._labels[name]

    def of(self, schema: Mapping[str, Any]) -> str:
        """Return the type of a field."""
        reference = schema.get("$ref") or next(
            (each["$ref"] for each in schema.get("allOf", ()) if "$ref" in each), ""
        )
        if reference:
            name = reference.rpartition("/")[2]
            if name.endswith(".resource.Quantity"):
                return QUANTITY
            if not self._schemas[name].get("properties"):
                return ""
            self._wanted.append(name)
            return self.label(name)
        if schema.get("type") == "array":
            return "[]" + self.of(schema["items"])
        if isinstance(schema.get("additionalProperties"), dict):
            return "{}" + self.of(schema["additionalProperties"])
        return ""
