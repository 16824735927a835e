"""Query parameters, parsed and validated as in kube-apiserver.

A query is a plain dict with the last value of each parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from kubesched.embedded.refusals import (
    FieldError,
    StatusError,
    bad_request,
    invalid,
    not_allowed,
    not_supported,
)
from kubesched.embedded.resources import ServedResource
from kubesched.embedded.schemas import DeleteOptions, PreconditionsSchema
from kubesched.embedded.selectors import parse_fields, parse_labels
from kubesched.embedded.watching import WatchSelection
from kubesched.errors import SelectorError

Query = Mapping[str, str]

_EXACT: Final = "Exact"
_NOT_OLDER: Final = "NotOlderThan"
_MATCHES: Final = (_EXACT, _NOT_OLDER, "")


def parse_query(query_string: bytes) -> dict[str, str]:
    """Return the parameters of a request."""
    if not query_string:
        return {}
    return dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=True))


def is_dry_run(query: Query, options_kind: str) -> bool:
    """Tell whether the request is a dry run."""
    value = query.get("dryRun")
    if not value:
        return False
    if value != "All":
        error = not_supported("dryRun", [value], ("All",))
        raise invalid(options_kind, "", [error], group="meta.k8s.io")
    return True


def flag(query: Query, name: str) -> bool | None:
    """Return a boolean parameter, None if it is absent."""
    value = query.get(name)
    return None if value is None else value.lower() not in {"false", "0"}


def number(query: Query, name: str) -> int | None:
    """Return an integer parameter, None if it is absent."""
    value = query.get(name)
    if not value:
        return None
    try:
        return int(value)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None


class ListOptions(NamedTuple):
    """Options of a list or a watch."""

    selection: WatchSelection
    namespace: str = ""
    limit: int = 0
    continue_token: str = ""
    #: None if not given; 0 means any
    resource_version: int | None = None
    exact: bool = False
    timeout_s: int | None = None
    bookmarks: bool = False
    initial_events: bool = False


def list_options(resource: ServedResource, namespace: str, query: Query) -> ListOptions:
    """Read the parameters of a list."""
    _refuse_list_options(query)
    return ListOptions(
        selection=selection(resource, namespace, query),
        namespace=namespace,
        limit=max(number(query, "limit") or 0, 0),
        continue_token=query.get("continue", ""),
        resource_version=list_version(query),
        exact=query.get("resourceVersionMatch") == _EXACT,
    )


def watch_options(resource: ServedResource, namespace: str, query: Query) -> ListOptions:
    """Read the parameters of a watch."""
    _refuse_watch_options(query)
    version = object_version(query)
    initial = flag(query, "sendInitialEvents")
    return ListOptions(
        selection=selection(resource, namespace, query),
        namespace=namespace,
        resource_version=version,
        timeout_s=number(query, "timeoutSeconds"),
        bookmarks=bool(flag(query, "allowWatchBookmarks")),
        # A watch without a version starts with the existing objects.
        initial_events=not version if initial is None else initial,
    )


def selection(resource: ServedResource, namespace: str, query: Query) -> WatchSelection:
    """Return the selection of objects; rejects malformed selectors."""
    try:
        labels = parse_labels(query.get("labelSelector", ""))
        fields = parse_fields(query.get("fieldSelector", ""), resource.field_name)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    return WatchSelection(resource, namespace=namespace, labels=labels, fields=fields)


def object_version(query: Query) -> int | None:
    """Return the resourceVersion of a get or a watch, None if it is absent."""
    text = query.get("resourceVersion", "")
    if text and not text.isdecimal():
        # A quirk of kube-apiserver that clients can see: no reason, and the code is 500.
        raise StatusError(_unreadable(text), code=500, reason="")
    return int(text) if text else None


def list_version(query: Query) -> int | None:
    """Return the resourceVersion of a list, None if it is absent."""
    text = query.get("resourceVersion", "")
    if text and not text.isdecimal():
        raise bad_request(f"invalid resource version: {_unreadable(text)}")
    return int(text) if text else None


def _unreadable(text: str) -> str:
    return (
        f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": '
        "invalid syntax"
    )


def _refuse_list_options(query: Query) -> None:
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    errors: list[FieldError] = []

    def forbid(detail: str, field: str = "resourceVersionMatch") -> None:
        errors.append(not_allowed(field, detail))

    if match:
        if not version:
            forbid("resourceVersionMatch is forbidden unless resourceVersion is provided")
        if query.get("continue"):
            forbid("resourceVersionMatch is forbidden when continue is provided")
        if match not in _MATCHES:
            errors.append(not_supported("resourceVersionMatch", match, _MATCHES))
        if match == _EXACT and version == "0":
            forbid('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if "sendInitialEvents" in query:
        forbid("sendInitialEvents is forbidden for list", "sendInitialEvents")
    _raise(errors)


def _refuse_watch_options(query: Query) -> None:
    match, initial = query.get("resourceVersionMatch", ""), "sendInitialEvents" in query
    errors: list[FieldError] = []

    def forbid(detail: str) -> None:
        errors.append(not_allowed("resourceVersionMatch", detail))

    if initial and match != _NOT_OLDER:
        forbid(f"sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER}")
    if match:
        if not initial:
            forbid(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
        if match != _NOT_OLDER:
            errors.append(not_supported("resourceVersionMatch", match, (_NOT_OLDER,)))
        if query.get("continue"):
            forbid("resourceVersionMatch is forbidden when continue is provided")
    _raise(errors)


def _raise(errors: list[FieldError]) -> None:
    if errors:
        raise invalid("ListOptions", "", errors, group="meta.k8s.io")


def delete_options(query: Query, body: bytes) -> DeleteOptions:
    """Parse delete options: from the body if there is one, else from the query."""
    if body:
        try:
            return msgspec.json.decode(body, type=DeleteOptions)
        except msgspec.MsgspecError as error:
            raise bad_request(f"couldn't read DeleteOptions: {error}") from None
    dry_run = query.get("dryRun")
    return DeleteOptions(
        grace_period_seconds=number(query, "gracePeriodSeconds"),
        propagation_policy=query.get("propagationPolicy"),
        orphan_dependents=flag(query, "orphanDependents"),
        preconditions=PreconditionsSchema(
            uid=query.get("preconditions.uid"),
            resource_version=query.get("preconditions.resourceVersion"),
        ),
        dry_run=[dry_run] if dry_run else None,
    )
