"""Reading collections: a consistent state, whole or in pages.

A continue token names the revision of the first page and the last key that was sent, so that all
pages show one state. When that state is no longer available the response is ``Expired``, with a
token that continues from the same key in the current state.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.embedded.options import ListOptions
from kubesched.embedded.refusals import StatusError, bad_request, expired
from kubesched.embedded.resources import ServedResource
from kubesched.embedded.store import VersionedStore
from kubesched.embedded.versions import Version

JsonObject = dict[str, Any]

_FORMAT: Final = "meta.k8s.io/v1"
#: In a token: continue in the current state.
_PRESENT: Final = -1
_TOO_OLD: Final = "The resourceVersion for the provided list is too old."
_PAGE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class _Token(msgspec.Struct):
    v: str
    rv: int
    start: str


class Page(NamedTuple):
    """Some objects of a collection, and how to continue."""

    versions: list[Version]
    revision: int
    continue_token: str = ""
    #: None if a selector makes it unknown, or there are no more
    remaining: int | None = None

    def meta(self) -> JsonObject:
        """Return the metadata of the list."""
        meta: JsonObject = {"resourceVersion": str(self.revision)}
        if self.continue_token:
            meta["continue"] = self.continue_token
        if self.remaining:
            meta["remainingItemCount"] = self.remaining
        return meta


def list_page(store: VersionedStore, resource: ServedResource, options: ListOptions) -> Page:
    """Return the requested page."""
    if options.continue_token:
        return _continued(store, resource, options)
    collection = store.collection(resource)
    at = store.revision
    if options.exact:
        at = options.resource_version or 0
        if not collection.remembers(at):
            raise expired(_TOO_OLD)
    versions = collection.snapshot(at=at, namespace=options.namespace)
    # "Any version" is answered from the current state.
    limit = 0 if options.resource_version == 0 else options.limit
    return _page(versions, options, at=at, limit=limit)


def _continued(store: VersionedStore, resource: ServedResource, options: ListOptions) -> Page:
    if options.resource_version:
        raise bad_request("specifying resource version is not allowed when using continue")
    token = _decoded(options.continue_token)
    collection = store.collection(resource)
    at = store.revision if token.rv == _PRESENT else token.rv
    if not collection.remembers(at):
        refusal = expired(_PAGE_TOO_OLD)
        refusal.list_meta = {"continue": _encoded(_PRESENT, token.start)}
        raise refusal
    versions = collection.snapshot(at=at, namespace=options.namespace)
    start = _prefix(options.namespace) + token.start
    rest = [version for version in versions if version.key >= start]
    return _page(rest, options, at=at, limit=options.limit)


def _page(versions: list[Version], options: ListOptions, *, at: int, limit: int) -> Page:
    selection = options.selection
    if not selection.selective:
        if not limit or len(versions) <= limit:
            return Page(versions, at)
        token = _token_after(versions[limit - 1], options.namespace, at)
        return Page(versions[:limit], at, token, len(versions) - limit)
    selected = [version for version in versions if selection.matches(version)]
    if not limit or len(selected) <= limit:
        return Page(selected, at)
    return Page(selected[:limit], at, _token_after(selected[limit - 1], options.namespace, at))


def _token_after(last: Version, namespace: str, at: int) -> str:
    return _encoded(at, last.key.removeprefix(_prefix(namespace)) + "\0")


def _prefix(namespace: str) -> str:
    return f"{namespace}/" if namespace else ""


def _encoded(revision: int, start: str) -> str:
    token = msgspec.json.encode(_Token(_FORMAT, revision, start))
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _decoded(text: str) -> _Token:
    try:
        padded = text + "=" * (-len(text) % 4)
        token = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise _bad_token(str(error)) from None
    if token.v != _FORMAT or not token.start or token.rv < _PRESENT or token.rv == 0:
        raise _bad_token("it is not one of this server's")
    return token


def _bad_token(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
