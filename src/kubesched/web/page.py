"""Handles all requests of the page: files, short and long answers, streams.

    request ──> method and path ──┬── /ui/…            files
                                  ├── /ui/api/…        telling.py, in the loop
                                  ├── explanations, what-if: questions.py, in a child
                                  └── /ui/api/stream   streams.py

The enclosing server authorizes requests. Errors are one line of JSON.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Self

import msgspec
from msgspec.structs import replace

from kubesched.errors import KubeschedError, ObjectError, UsageError
from kubesched.server.answers import ServerAnswer
from kubesched.server.request import ServerRequest
from kubesched.web import group_state, questions, static, telling
from kubesched.web.errors import BrokenError, BusyError, TooLongError
from kubesched.web.forked import ForkedAnswers
from kubesched.web.pod_state import pod_told
from kubesched.web.problems import JSON, PREFIX, for_reader, problem
from kubesched.web.source import Source
from kubesched.web.streams import Streams

_log = logging.getLogger(__name__)

EVENTS: Final = "text/event-stream"
BODY_LIMIT_BYTES: Final = 1 << 20
MOST_ROWS: Final = 1000
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)

_encode = msgspec.json.Encoder().encode

_Handler = Callable[[ServerRequest], Awaitable[ServerAnswer]]
#: the entry of a recording
_AT: Final = ("at",)

#: Maximum number of a recording's decisions that are evaluated again for one request.
MOST_GRADED: Final = 200


class _RefusalError(Exception):
    """An error response."""

    def __init__(self, code: int, message: str, *headers: tuple[str, str]) -> None:
        super().__init__(message)
        self.code = code
        self.headers = headers


class WebPage:
    """Everything under /ui/; an async context manager while it can serve."""

    def __init__(
        self,
        source: Source,
        *,
        streams: Streams | None = None,
        forked: ForkedAnswers | None = None,
    ) -> None:
        self._source = source
        self._streams = streams or Streams(source)
        self._forked = forked or ForkedAnswers()
        self._running: asyncio.Task[None] | None = None
        #: each with the parameters that it takes
        self._by_name: dict[str, tuple[_Handler, tuple[str, ...]]] = {
            "overview": (self._overview, _AT),
            "nodes": (self._nodes, _AT),
            "queue": (self._queue, (*_AT, "limit", "search")),
            "pods": (self._pods, (*_AT, "limit", "search")),
            "stream": (self._stream, ("version",)),
            "groups": (self._groups, _AT),
            "decisions": (self._decisions, (*_AT, "limit", "graded")),
            "labels": (self._labels, (*_AT, "key")),
        }
        #: what is asked about an object: its kind, and a part of it
        self._of_object: dict[
            tuple[str, ...], Callable[[str, str, ServerRequest], Awaitable[ServerAnswer]]
        ] = {
            ("groups",): self._group,
            ("groups", "explanation"): self._group_explanation,
            ("pods",): self._pod,
            ("pods", "explanation"): self._explanation,
        }

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run(), name="web page")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._streams.aclose()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._forked.aclose()
        await self._source.aclose()

    async def _run(self) -> None:
        try:
            await self._source.run()
        except Exception:  # noqa: BLE001 (the page goes on without it; logged)
            _log.exception("the web page's source stopped working")

    async def answer(self, request: ServerRequest) -> ServerAnswer:
        """Answer an authorized request."""
        try:
            found = await self._answer(request)
        except _RefusalError as refused:
            found = replace(problem(str(refused), refused.code), headers=refused.headers)
        except KubeschedError as failed:
            found = problem(str(failed), _code_of(failed))
        return replace(for_reader(request, found), headers=(*HEADERS, *found.headers))

    # --- inside -----------------------------------------------------------------------------

    async def _answer(self, request: ServerRequest) -> ServerAnswer:
        path = request.path.removeprefix(PREFIX)
        if path == "api/what-if":
            _want(request, "POST")
            return await self._what_if(request)
        _want(request, "GET")
        if path == request.path:  # /ui without its slash
            return ServerAnswer(code=308, headers=(("location", PREFIX),))
        if path.startswith("api/"):
            found = self._handler(path.split("/")[1:])
            if found is None:
                raise _RefusalError(404, f"there is nothing at {request.path}")
            handler, parameters = found
            _check_query(request, parameters)
            return await handler(request)
        file = static.file(path or static.INDEX)
        if file is None:
            raise _RefusalError(404, f"there is nothing at {request.path}")
        return file

    def _handler(self, path: list[str]) -> tuple[_Handler, tuple[str, ...]] | None:
        """Return what answers requests for a path, and the parameters that it takes."""
        match path:
            case [name]:
                return self._by_name.get(name)
            case ["nodes", name]:
                return partial(self._node, name), _AT
            case [kind, namespace, name, *part]:
                handler = self._of_object.get((kind, *part))
                return None if handler is None else (partial(handler, namespace, name), _AT)
        return None

    async def _overview(self, request: ServerRequest) -> ServerAnswer:
        return _json(telling.overview(self._source, await self._source.state(_at(request))))

    async def _nodes(self, request: ServerRequest) -> ServerAnswer:
        return _json((await self._source.state(_at(request))).columns.all())

    async def _node(self, name: str, request: ServerRequest) -> ServerAnswer:
        told = telling.node(await self._source.state(_at(request)), name)
        if told is None:
            raise _RefusalError(404, f"there is no node {name}")
        return _json(told)

    async def _queue(self, request: ServerRequest) -> ServerAnswer:
        state = await self._source.state(_at(request))
        limit = _number(request, "limit", default=200, most=MOST_ROWS)
        search = _text(request, "search")
        if search:
            return _json(await telling.queue_search(state, search, limit=limit))
        return _json(telling.queue(state, limit=limit))

    async def _pods(self, request: ServerRequest) -> ServerAnswer:
        state = await self._source.state(_at(request))
        limit = _number(request, "limit", default=50, most=MOST_ROWS)
        return _json(await telling.pods(state, _text(request, "search"), limit=limit))

    async def _pod(self, namespace: str, name: str, request: ServerRequest) -> ServerAnswer:
        state = await self._source.state(_at(request))
        pod = state.find_pod(namespace, name)
        if pod is None:
            raise _RefusalError(404, f"there is no pod {namespace}/{name}")
        return _json(pod_told(state, pod))

    async def _groups(self, request: ServerRequest) -> ServerAnswer:
        return _json(group_state.groups(await self._source.state(_at(request)), most=MOST_ROWS))

    async def _group(self, namespace: str, name: str, request: ServerRequest) -> ServerAnswer:
        told = group_state.group(await self._source.state(_at(request)), namespace, name)
        if told is None:
            raise _RefusalError(404, f"there is no pod group {namespace}/{name}")
        return _json(told)

    async def _group_explanation(
        self, namespace: str, name: str, request: ServerRequest
    ) -> ServerAnswer:
        question = questions.AboutGroup(at=_at(request), namespace=namespace, name=name)
        return await self._ask(request, question)

    async def _decisions(self, request: ServerRequest) -> ServerAnswer:
        graded = _text(request, "graded")
        if graded not in ("", "true", "false"):
            raise _RefusalError(400, "'graded' must be true or false")
        is_graded = graded == "true"
        most = MOST_GRADED if is_graded else MOST_ROWS
        limit = _number(request, "limit", default=100, most=most)
        state = await self._source.state(_at(request))
        return _json(await state.graded(limit) if is_graded else state.decisions(limit))

    async def _labels(self, request: ServerRequest) -> ServerAnswer:
        state = await self._source.state(_at(request))
        return _json(telling.node_labels(state, _text(request, "key")))

    async def _explanation(self, namespace: str, name: str, request: ServerRequest) -> ServerAnswer:
        at = _at(request)
        if (await self._source.state(at)).find_pod(namespace, name) is None:
            raise _RefusalError(404, f"there is no pod {namespace}/{name}")
        return await self._ask(request, questions.AboutPod(at=at, namespace=namespace, name=name))

    async def _what_if(self, request: ServerRequest) -> ServerAnswer:
        _check_origin(request)
        if request.header("content-type").partition(";")[0].strip().lower() != JSON:
            raise _RefusalError(415, f"the body must be {JSON}")
        try:
            body = await request.body(limit_bytes=BODY_LIMIT_BYTES)
        except ValueError:
            raise _RefusalError(
                413, f"the body must not be longer than {BODY_LIMIT_BYTES >> 20} MiB"
            ) from None
        except TimeoutError:
            raise _RefusalError(408, "the body did not come in time") from None
        return await self._ask(request, questions.read(body))

    async def _ask(self, request: ServerRequest, question: questions.AnyQuestion) -> ServerAnswer:
        """Run a question in a child, as long as the client waits for it."""
        state = await self._source.state(question.at)
        classes = (
            await state.priority_classes() if isinstance(question, questions.AboutWorkload) else ()
        )

        def work() -> bytes:
            return questions.answered(state.make_world(), question, classes)

        asking = asyncio.create_task(self._forked.run(work))
        leaving = asyncio.create_task(request.disconnected())
        try:
            await asyncio.wait((asking, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise _RefusalError(499, "the client is gone")
            return ServerAnswer(await asking, 200, JSON)
        finally:
            for task in (asking, leaving):
                task.cancel()
            await asyncio.gather(asking, leaving, return_exceptions=True)

    async def _stream(self, request: ServerRequest) -> ServerAnswer:
        if not self._source.live:
            raise _RefusalError(404, f"a {self._source.kind} does not change: there is no stream")
        if self._streams.is_full:
            raise _RefusalError(429, "too many pages are open: close some", ("retry-after", "30"))
        last = request.header("last-event-id") or _text(request, "version")
        version = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else None
        return ServerAnswer(
            code=200, content_type=EVENTS, pieces=self._streams.follow(request, version)
        )


def _json(told: object) -> ServerAnswer:
    return ServerAnswer(_encode(told), 200, JSON)


def _code_of(failed: KubeschedError) -> int:
    match failed:
        case BusyError():
            return 429
        case TooLongError():
            return 504
        case BrokenError():
            return 500
        case ObjectError():
            return 404
        case UsageError():
            return 400
    return 422


def _want(request: ServerRequest, method: str) -> None:
    if request.method != method:
        message = f"{request.method} is not possible here, only {method}"
        raise _RefusalError(405, message, ("allow", method))


def _check_query(request: ServerRequest, known: tuple[str, ...]) -> None:
    for name in request.query:
        if name not in known:
            takes = ", ".join(f"'{each}'" for each in known)
            raise _RefusalError(400, f"there is no parameter '{name}' here, only {takes}")


def _check_origin(request: ServerRequest) -> None:
    """Reject cross-site requests."""
    origin = request.header("origin")
    if origin and origin.partition("://")[2] != request.header("host"):
        raise _RefusalError(403, "this comes from another site")


def _at(request: ServerRequest) -> int | None:
    text = _text(request, "at")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise _RefusalError(400, "'at' must be the number of an entry")
    return int(text)


def _number(request: ServerRequest, name: str, *, default: int, most: int) -> int:
    text = _text(request, name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 16 and 1 <= int(text) <= most):
        raise _RefusalError(400, f"'{name}' must be a number from 1 to {most}")
    return int(text)


def _text(request: ServerRequest, name: str) -> str:
    return request.query.get(name, [""])[0]
