"""Objects as a table, for ``kubectl get``: columns and, for each object, a row of cells.

A row also carries the object's metadata (or all of it, or nothing), which kubectl uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubesched.embedded.refusals import bad_request
from kubesched.embedded.resources import PODS, ServedResource
from kubesched.embedded.tables import core, devices, groups, storage, workloads
from kubesched.embedded.tables.columns import COLUMNS, NAME_AND_AGE
from kubesched.embedded.tables.pods import pod_cells, pod_row_conditions
from kubesched.embedded.tables.text import Age, human_duration
from kubesched.embedded.times import Timestamps, parse_time

JsonObject = dict[str, Any]

_CELLS: Final[Mapping[str, Callable[[JsonObject, Age], list[Any]]]] = {
    "Pod": pod_cells,
    **core.CELLS,
    **devices.CELLS,
    **groups.CELLS,
    **storage.CELLS,
    **workloads.CELLS,
}
_META: Final = "meta.k8s.io/v1"
_INCLUDE: Final = frozenset({"", "Metadata", "None", "Object"})


class Tables:
    """Makes tables of the objects of one resource."""

    def __init__(self, resource: ServedResource, times: Timestamps, *, include: str) -> None:
        if include not in _INCLUDE:
            raise bad_request(
                "Unable to convert to Table as requested: includeObject: Invalid value: "
                f"\"{include}\": must be 'Metadata', 'Object', 'None', or empty"
            )
        self._resource = resource
        self._times = times
        self._include = include
        self._cells = _CELLS.get(resource.rules, core.name_and_age)

    def table(
        self, objects: Iterable[JsonObject], meta: JsonObject, *, with_columns: bool = True
    ) -> JsonObject:
        """Return a table; later ones of a watch have no columns."""
        columns = COLUMNS.get(self._resource.rules, NAME_AND_AGE)
        definitions = [column.definition() for column in columns]
        return {
            "kind": "Table",
            "apiVersion": _META,
            "metadata": meta,
            "columnDefinitions": definitions if with_columns else None,
            "rows": [self._row(obj) for obj in objects],
        }

    def _row(self, obj: JsonObject) -> JsonObject:
        row: JsonObject = {"cells": self._cells(obj, self._age)}
        if self._resource is PODS and (conditions := pod_row_conditions(obj)):
            row["conditions"] = conditions
        if self._include == "None":
            row["object"] = None
        elif self._include == "Object":
            resource = self._resource
            row["object"] = {"kind": resource.kind, "apiVersion": resource.api_version, **obj}
        else:
            row["object"] = partial(obj)
        return row

    def _age(self, timestamp: str | None) -> str:
        if not timestamp:
            return "<unknown>"
        return human_duration(self._times.clock.time() - parse_time(timestamp))


def partial(obj: JsonObject) -> JsonObject:
    """Return the metadata of an object as an object."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": _META,
        "metadata": obj["metadata"],
    }


def partial_list(objects: Iterable[JsonObject], meta: JsonObject) -> JsonObject:
    """Return a list of metadata."""
    items = [partial(obj) for obj in objects]
    kind = "PartialObjectMetadataList"
    return {"kind": kind, "apiVersion": _META, "metadata": meta, "items": items}
