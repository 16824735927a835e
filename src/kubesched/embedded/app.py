"""The API server as an ASGI application: one request in, one response or stream out.

    scope, receive ──▶ path, verb ──▶ ObjectRegistry, ObjectDeletion, listing ──▶ Renderer ──▶ send
                                  └─▶ WatchResponse ──▶ send … send

Served by uvicorn in the loop that owns all state, so a write runs to its end before the next
request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, NamedTuple

import msgspec

from kubesched.embedded import discovery, openapi, patches
from kubesched.embedded.deletion import ObjectDeletion
from kubesched.embedded.listing import list_page
from kubesched.embedded.media import (
    JSON,
    PROTOBUF,
    YAML,
    MediaForm,
    sent_form,
    wanted_form,
    wants_aggregated_discovery,
)
from kubesched.embedded.options import (
    delete_options,
    flag,
    is_dry_run,
    list_options,
    object_version,
    parse_query,
    watch_options,
)
from kubesched.embedded.patches import decoded_yaml
from kubesched.embedded.protobuf import decode_object
from kubesched.embedded.refusals import (
    StatusError,
    bad_request,
    invalid,
    not_acceptable,
    not_allowed,
    request_too_large,
    too_large_resource_version,
)
from kubesched.embedded.registry import ObjectRegistry, Where, without_nulls
from kubesched.embedded.rendering import RenderedResponse, Renderer, document, refusal, text
from kubesched.embedded.resources import ACCESS_REVIEWS, BINDINGS, PODS, ServedResource
from kubesched.embedded.routing import SCALE, resource_path, verb
from kubesched.embedded.scaling import patched_scale, rescale, scale_of
from kubesched.embedded.streams import WatchResponse
from kubesched.embedded.versions import encode

JsonObject = dict[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_LOG: Final = logging.getLogger(__name__)
#: Larger bodies are rejected, as in kube-apiserver.
_BODY_LIMIT: Final = 3 * 1024 * 1024
#: How long a request waits for a future version.
_FUTURE_WAIT_S: Final = 3.0
_FUTURE_STEP_S: Final = 0.05
_CACHE_CONTROL: Final = (b"cache-control", b"no-cache, private")


class ApiRequest(NamedTuple):
    """The parsed request, for handlers."""

    where: Where
    query: dict[str, str]
    body: bytes
    content_type: str
    accept: str


class EmbeddedApiApp:
    """The ASGI application."""

    def __init__(
        self, registry: ObjectRegistry, *, allowed_hosts: frozenset[str] | None = None
    ) -> None:
        """``allowed_hosts`` are the valid names in a Host header; None allows all."""
        self._registry = registry
        self._store = registry.store
        self._deletion = ObjectDeletion(registry)
        self._allowed_hosts = allowed_hosts
        self._streams: set[WatchResponse] = set()
        self._ending = False
        self._plain: dict[ServedResource, Renderer] = {}
        #: Host headers that were checked
        self._known_hosts: set[bytes] = set()
        self._handlers: dict[str, Callable[[ApiRequest], RenderedResponse]] = {
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "bind": self._bind,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    @property
    def deletion(self) -> ObjectDeletion:
        """Deletes objects; for callers within this process."""
        return self._deletion

    def begin_watches(self) -> None:
        """Keep watches open until `end_watches`."""
        self._ending = False

    def end_watches(self) -> None:
        """End all current and future watches, so that the server can stop."""
        self._ending = True
        for stream in tuple(self._streams):
            stream.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        try:
            answer = await self._serve(scope, receive, send)
        except StatusError as error:
            answer = refusal(error)
        except Exception as error:  # noqa: BLE001  a bug must not close the connection
            _LOG.exception("%s %s failed", scope["method"], scope["path"])
            answer = refusal(_internal(error))
        if answer is not None:
            await _respond(send, answer)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> RenderedResponse | None:
        headers = self._headers(scope)
        if headers is None:
            return text("this server answers only to its own address\n", code=403)
        content_type, accept = headers
        method, path = scope["method"], scope["path"]
        where = resource_path(path)
        if where is None:
            return self._other_path(method, path, accept, scope)
        action = verb(method, where)
        body = await _body(receive) if method != "GET" else b""
        query = parse_query(scope["query_string"])
        request = ApiRequest(where, query, body, content_type, accept)
        if action == "list":
            if flag(query, "watch"):
                await self._watch(request, receive, send)
                return None
            return await self._list(request)
        if action == "get":
            return await self._get(request)
        return self._handlers[action](request)

    def _headers(self, scope: Scope) -> tuple[str, str] | None:
        """Return content type and accept; None if the host is not allowed.

        A browser tricked into calling this server (DNS rebinding) sends another host.
        """
        content_type = accept = b""
        for name, value in scope["headers"]:
            if name == b"accept":
                accept = value
            elif name == b"content-type":
                content_type = value
            elif name == b"host" and not self._is_own_host(value):
                return None
        return content_type.decode("latin-1"), accept.decode("latin-1")

    def _is_own_host(self, header: bytes) -> bool:
        if self._allowed_hosts is None or header in self._known_hosts:
            return True
        value = header.decode("latin-1")
        host, _, port = value.rpartition(":")
        if (host if host and port.isdecimal() else value).strip("[]") not in self._allowed_hosts:
            return False
        self._known_hosts.add(header)  # bounded by our own names and ports
        return True

    # ------------------------------------------------------------ reading

    async def _get(self, request: ApiRequest) -> RenderedResponse:
        form = wanted_form(request.accept)
        await self._reach(object_version(request.query) or 0)
        version = self._registry.get(request.where)
        if request.where.subresource == SCALE:
            return document(scale_of(version))
        return self._renderer(request, form).one(version)

    async def _list(self, request: ApiRequest) -> RenderedResponse:
        form = wanted_form(request.accept)
        where = request.where
        options = list_options(where.resource, where.namespace, request.query)
        await self._reach(options.resource_version or 0)
        page = list_page(self._store, where.resource, options)
        return self._renderer(request, form).many(page)

    def _renderer(self, request: ApiRequest, form: MediaForm) -> Renderer:
        resource = request.where.resource
        if form is MediaForm.JSON:
            if resource not in self._plain:
                self._plain[resource] = Renderer(resource, form, self._registry.times)
            return self._plain[resource]
        include = request.query.get("includeObject", "")
        return Renderer(resource, form, self._registry.times, include=include)

    async def _reach(self, revision: int) -> None:
        """Wait a little for a future revision."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _FUTURE_WAIT_S
        while self._store.revision < revision:
            if loop.time() >= deadline:
                raise too_large_resource_version(revision, self._store.revision)
            await asyncio.sleep(_FUTURE_STEP_S)

    async def _watch(self, request: ApiRequest, receive: Receive, send: Send) -> None:
        form = wanted_form(request.accept)
        if form is MediaForm.YAML:
            raise not_acceptable((f"{JSON};stream=watch",))
        where = request.where
        options = watch_options(where.resource, where.namespace, request.query)
        renderer = self._renderer(request, form)
        if options.initial_events:
            await self._reach(options.resource_version or 0)
        stream = WatchResponse(
            self._store,
            where.resource,
            options,
            render=renderer.line,
            shared=renderer.shared_line,
        )
        self._streams.add(stream)
        if self._ending:
            stream.cancel()
        listening = asyncio.ensure_future(_disconnected(receive))
        listening.add_done_callback(lambda _: stream.cancel())
        try:
            await _stream(send, stream)
        finally:
            self._streams.discard(stream)
            stream.close()
            listening.cancel()

    # ------------------------------------------------------------ writing

    def _create(self, request: ApiRequest) -> RenderedResponse:
        where, sent = request.where, _decoded(request)
        dry_run = is_dry_run(request.query, "CreateOptions")
        if where.resource is ACCESS_REVIEWS:
            # There is no authentication, and so no one who may not.
            review = {"kind": ACCESS_REVIEWS.kind, "apiVersion": ACCESS_REVIEWS.api_version}
            return document({**review, **sent, "status": {"allowed": True}}, code=201)
        if where.resource is BINDINGS:
            pod = where._replace(resource=PODS)
            return document(self._registry.bind(pod, sent, dry_run=dry_run), code=201)
        version = self._registry.create(where, sent, dry_run=dry_run)
        return self._renderer(request, wanted_form(request.accept)).one(version, code=201)

    def _bind(self, request: ApiRequest) -> RenderedResponse:
        dry_run = is_dry_run(request.query, "CreateOptions")
        pod = request.where._replace(subresource="")
        status = self._registry.bind(pod, _decoded(request, "Binding"), dry_run=dry_run)
        return document(status, code=201)

    def _update(self, request: ApiRequest) -> RenderedResponse:
        form = wanted_form(request.accept)
        dry_run = is_dry_run(request.query, "UpdateOptions")
        if request.where.subresource == SCALE:
            sent = _decoded(request, "Scale")
            return document(rescale(self._registry, request.where, sent, dry_run=dry_run))
        written = self._registry.update(request.where, _decoded(request), dry_run=dry_run)
        code = 201 if written.created else 200
        return self._renderer(request, form).one(written.version, code=code)

    def _patch(self, request: ApiRequest) -> RenderedResponse:
        form = wanted_form(request.accept)
        kind = request.content_type.partition(";")[0].strip()
        if kind not in patches.KINDS:
            raise StatusError(
                "415: Unsupported Media Type", code=415, reason="UnsupportedMediaType", details={}
            )
        dry_run = is_dry_run(request.query, "PatchOptions")
        if request.where.subresource == SCALE:
            wanted = patched_scale(self._registry, request.where, request.body)
            return document(rescale(self._registry, request.where, wanted, dry_run=dry_run))
        force = flag(request.query, "force")
        if kind == patches.APPLY:
            written = self._registry.apply(
                request.where,
                request.body,
                manager=request.query.get("fieldManager", ""),
                force=bool(force),
                dry_run=dry_run,
            )
        else:
            if force is not None:
                error = not_allowed("force", "may not be specified for non-apply patch")
                raise invalid("PatchOptions", "", [error], group="meta.k8s.io")
            written = self._registry.patch(request.where, kind, request.body, dry_run=dry_run)
        code = 201 if written.created else 200
        return self._renderer(request, form).one(written.version, code=code)

    def _delete(self, request: ApiRequest) -> RenderedResponse:
        form = wanted_form(request.accept)
        options = delete_options(request.query, _options_body(request))
        deleted = self._deletion.delete(request.where, options)
        if deleted.status is not None:
            return document(deleted.status)
        return self._renderer(request, form).one(deleted.version)

    def _delete_collection(self, request: ApiRequest) -> RenderedResponse:
        where = request.where
        options = delete_options(request.query, _options_body(request))
        chosen = list_options(where.resource, where.namespace, request.query)
        page = list_page(self._store, where.resource, chosen)
        for version in page.versions:
            name = version.obj["metadata"]["name"]
            if self._store.get(where.resource, version.key) is not None:
                self._deletion.delete(where._replace(name=name), options)
        return self._renderer(request, wanted_form(request.accept)).many(page)

    # ------------------------------------------------------------ everything else

    def _other_path(self, method: str, path: str, accept: str, scope: Scope) -> RenderedResponse:
        trimmed = path.rstrip("/")
        if method not in {"GET", "HEAD"}:
            return text("404 page not found\n", code=404)
        if trimmed in {"/healthz", "/livez", "/readyz"}:
            return text("ok")
        if trimmed == "/version":
            return document(discovery.VERSION)
        if trimmed in {"/api", "/apis"} and wants_aggregated_discovery(accept):
            found = discovery.aggregated(core=trimmed == "/api")
            return document(found, content_type=discovery.AGGREGATED)
        value = _described(trimmed, scope)
        return text("404 page not found\n", code=404) if value is None else document(value)


def _described(path: str, scope: Scope) -> JsonObject | None:
    """Return the discovery or OpenAPI document of a path, None if it is neither."""
    match path.strip("/").split("/"):
        case ["api"]:
            host, port = scope.get("server") or ("127.0.0.1", 0)
            found: JsonObject | None = discovery.core_versions(f"{host}:{port}")
        case ["apis"]:
            found = discovery.groups()
        case ["apis", group]:
            found = discovery.group(group)
        case ["api", version]:
            found = discovery.resources("", version)
        case ["apis", group, version]:
            found = discovery.resources(group, version)
        case ["openapi", "v3"]:
            found = openapi.index()
        case ["openapi", "v3", *rest]:
            found = openapi.document("/" + "/".join(rest))
        case _:
            found = None
    return found


def _decoded(request: ApiRequest, kind: str = "") -> JsonObject:
    """Return the object in the body."""
    kind = kind or request.where.resource.kind
    form = sent_form(request.content_type)
    if form == PROTOBUF:
        return decode_object(request.body)
    if form == YAML:
        value = decoded_yaml(request.body)
    else:
        try:
            value = msgspec.json.decode(request.body)
        except msgspec.DecodeError as error:
            shown = request.body[:80].decode(errors="replace") or "<empty>"
            raise bad_request(
                f"the object provided is unrecognized (must be of type {kind}): couldn't get "
                f"version/kind; json parse error: {error} ({shown})"
            ) from None
    if not isinstance(value, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind})")
    has_nulls = b"null" in request.body or b"~" in request.body
    obj: JsonObject = without_nulls(value) if has_nulls else value
    return obj


def _options_body(request: ApiRequest) -> bytes:
    """Return the body of a DELETE as JSON."""
    if request.body and sent_form(request.content_type) == PROTOBUF:
        return encode(decode_object(request.body))
    return request.body


async def _body(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body
    parts, size = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > _BODY_LIMIT:
            raise request_too_large(_BODY_LIMIT)
    return b"".join(parts)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _respond(send: Send, answer: RenderedResponse) -> None:
    headers = [
        (b"content-type", answer.content_type.encode("latin-1")),
        (b"content-length", b"%d" % len(answer.body)),
        _CACHE_CONTROL,
    ]
    await send({"type": "http.response.start", "status": answer.code, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _stream(send: Send, stream: WatchResponse) -> None:
    headers = [(b"content-type", JSON.encode()), _CACHE_CONTROL]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    while (lines := await stream.next()) is not None:
        await send({"type": "http.response.body", "body": lines, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _internal(error: Exception) -> StatusError:
    return StatusError(
        f"Internal error occurred: {error}",
        code=500,
        reason="InternalError",
        details={"causes": [{"message": str(error)}]},
    )
