"""Renders objects, lists and errors as bytes, in the format that the client accepts.

Plain JSON is composed of bytes that the store has cached. All else (tables, metadata alone, YAML,
events in the newer API) is rendered on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import msgspec
import yaml

from kubesched.embedded import event_forms
from kubesched.embedded.listing import Page
from kubesched.embedded.media import JSON, YAML, MediaForm
from kubesched.embedded.refusals import StatusError
from kubesched.embedded.resources import NEW_EVENTS, ServedResource
from kubesched.embedded.tables import Tables, partial, partial_list
from kubesched.embedded.times import Timestamps
from kubesched.embedded.versions import (
    Version,
    VersionChange,
    encode,
    opening_of,
    watch_line,
    whole,
)

JsonObject = dict[str, Any]


class RenderedResponse(NamedTuple):
    """A whole response."""

    code: int
    body: bytes
    content_type: str = JSON


def refusal(error: StatusError) -> RenderedResponse:
    """Render an error."""
    return RenderedResponse(error.code, error.body())


def document(value: object, *, code: int = 200, content_type: str = JSON) -> RenderedResponse:
    """Render any JSON value."""
    return RenderedResponse(code, encode(value), content_type)


def text(message: str, *, code: int = 200) -> RenderedResponse:
    """Render plain text."""
    return RenderedResponse(code, message.encode(), "text/plain; charset=utf-8")


@cache
def opening(resource: ServedResource) -> bytes:
    """Return the first bytes of every object of a resource."""
    return opening_of(resource.kind, resource.api_version)


class Renderer:
    """Renders the objects of one resource in one format."""

    def __init__(
        self, resource: ServedResource, form: MediaForm, times: Timestamps, *, include: str = ""
    ) -> None:
        self._resource = resource
        self._form = form
        self._opening = opening(resource)
        self._is_plain = form is MediaForm.JSON and resource is not NEW_EVENTS
        self._tables = Tables(resource, times, include=include) if form is MediaForm.TABLE else None
        self._columns_sent = False

    def one(self, version: Version, *, code: int = 200) -> RenderedResponse:
        """Render one object."""
        if self._is_plain:
            return RenderedResponse(code, whole(self._opening, version.body))
        if self._tables is not None:
            meta = {"resourceVersion": version.obj["metadata"].get("resourceVersion", "")}
            return document(self._tables.table([version.obj], meta), code=code)
        if self._form is MediaForm.METADATA:
            return document(partial(version.obj), code=code)
        body = whole(self._opening, self._body(version))
        return (
            _as_yaml(body, code) if self._form is MediaForm.YAML else RenderedResponse(code, body)
        )

    def many(self, page: Page) -> RenderedResponse:
        """Render a list."""
        objects = (version.obj for version in page.versions)
        if self._tables is not None:
            return document(self._tables.table(objects, page.meta()))
        if self._form in {MediaForm.METADATA, MediaForm.METADATA_LIST}:
            return document(partial_list(objects, page.meta()))
        body = b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[%b]}' % (
            self._resource.list_kind.encode(),
            self._resource.api_version.encode(),
            encode(page.meta()),
            b",".join(self._bodies(page.versions)),
        )
        return _as_yaml(body, 200) if self._form is MediaForm.YAML else RenderedResponse(200, body)

    def _bodies(self, versions: Iterable[Version]) -> Iterable[bytes]:
        return map(self._body, versions)

    def _body(self, version: Version) -> bytes:
        if self._resource is NEW_EVENTS:
            return encode(event_forms.from_core(version.obj))
        return version.body

    # ------------------------------------------------------------ watches

    def line(self, kind: str, version: Version) -> bytes:
        """Render one event of a watch."""
        if self._tables is not None:
            return self._table_line(kind, version)
        if self._form in {MediaForm.METADATA, MediaForm.METADATA_LIST}:
            return b'{"type":"%b","object":%b}\n' % (kind.encode(), encode(partial(version.obj)))
        return watch_line(kind, self._opening, self._body(version))

    @property
    def shared_line(self) -> Callable[[str, VersionChange], bytes] | None:
        """Return a function that renders lines shared by all plain watchers, None if not plain."""
        if not self._is_plain:
            return None
        start = self._opening
        return lambda kind, change: change.line(kind, start)

    def _table_line(self, kind: str, version: Version) -> bytes:
        if self._tables is None:
            raise AssertionError("a line of a table needs a table")
        meta = {"resourceVersion": version.obj["metadata"]["resourceVersion"]}
        objects = [] if kind == "BOOKMARK" else [version.obj]
        table = self._tables.table(objects, meta, with_columns=not self._columns_sent)
        if kind == "BOOKMARK":
            # Its one row has no object, only the metadata that makes it a bookmark.
            table["rows"] = [{"cells": [], "object": partial(version.obj)}]
        self._columns_sent = True
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), encode(table))


def _as_yaml(body: bytes, code: int) -> RenderedResponse:
    written = yaml.safe_dump(msgspec.json.decode(body), sort_keys=False, allow_unicode=True)
    return RenderedResponse(code, written.encode(), YAML)
