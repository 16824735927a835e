"""Keeps a local copy of one resource and notifies handlers of changes.

                 ┌────────────── 410 Gone, or an error of the server ─────────────┐
                 v                                                                │
    list page by page ──> watch from the list's version ──> … ──> watch again from the last version
                                                      normal end, broken connection, silence

The store is updated first, then the handlers are called, in order. Handlers are plain functions on
the same event loop; an exception in one is logged and does not affect the others. Errors are
retried forever, with backoff, and logged when they start, change and end.

An *optional* resource that the API server does not serve counts as listed and empty; the informer
logs that once and tries again from time to time. Such a server responds with 404, or with 403: it
checks rights first, and its bootstrap roles do not name resources that it does not serve.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar

from kubesched.client import discovery
from kubesched.client.backoff import ReflectorBackoff
from kubesched.client.held_watches import HeldWatches
from kubesched.client.limiter import Sleep
from kubesched.client.meta import ApiObject, BadObject
from kubesched.client.resources import ResourcePath
from kubesched.client.rest import ApiClient
from kubesched.client.store import Added, Change, InformerStore, Key, Updated, key_of
from kubesched.client.watch import DELETED, Bookmark, WatchEvent
from kubesched.clock import Clock, RealClock
from kubesched.errors import (
    ApiError,
    ClientError,
    ForbiddenError,
    GoneError,
    KubeschedError,
    NotFoundError,
    TooManyRequestsError,
)

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=ApiObject)
HandledT_contra = TypeVar("HandledT_contra", bound=ApiObject, contravariant=True)

#: The server ends a watch after a random time in this range, to spread the load.
_WATCH_TIMEOUT_S = (300, 600)
#: How late the server may end a watch before we consider it dead.
_STALL_GRACE_S = 30.0
#: A watch that ends sooner, without an event, counts as a failure.
_SHORT_WATCH_S = 1.0
#: How often the informer retries an optional resource that the server did not serve.
NOT_SERVED_PAUSE_S = 60.0


class Handler(Protocol[HandledT_contra]):
    """Receives changes."""

    def on_add(self, obj: HandledT_contra, initial: bool) -> None:
        """Handle a new object; ``initial``: it was in the first list."""

    def on_update(self, old: HandledT_contra, new: HandledT_contra) -> None:
        """Handle a changed object."""

    def on_delete(self, obj: HandledT_contra) -> None:
        """Handle a deleted object; `obj` is its last known state."""


class Informer(Generic[T]):
    """Lists and watches one resource; ``run()`` does so until cancelled."""

    def __init__(
        self,
        client: ApiClient,
        resource: ResourcePath,
        type: type[T],  # noqa: A002 - as in msgspec
        *,
        handler: Handler[T] | None = None,
        namespace: str = "",
        field_selector: str | None = None,
        label_selector: str | None = None,
        optional: bool = False,
        page_size: int = 500,
        on_bad_object: Callable[[BadObject], None] | None = None,
        on_processed: Callable[[float], None] | None = None,
        held_watches: HeldWatches | None = None,
        stall_timeout_s: float | None = None,
        clock: Clock | None = None,
        sleep: Sleep = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._path = resource.collection(namespace)
        self._type = type
        self._field_selector = field_selector
        self._label_selector = label_selector
        #: whether the server may lack the resource, and whether it served it last time
        self._optional = optional
        self._is_served = True
        self._page_size = page_size
        self._on_bad_object = on_bad_object or self._log_bad_object
        #: called with the seconds that the store and the handlers took for a batch of objects
        self._on_processed = on_processed or (lambda _seconds: None)
        #: may pause the watch; None: every event is handled immediately
        self._held_watches = held_watches
        self._stall_timeout_s = stall_timeout_s
        self._clock = clock or RealClock()
        self._sleep = sleep
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._backoff = ReflectorBackoff(rng=self._rng)
        self._handlers: list[Handler[T]] = [handler] if handler is not None else []
        self._store: InformerStore[T] = InformerStore()
        #: objects whose newest version cannot be decoded, until one can, or they are deleted
        self._unreadable: dict[Key, str] = {}
        #: where the next watch starts, "": list first
        self._resource_version = ""
        #: the last error that was logged, "": none
        self._trouble = ""
        #: since when listing and watching fail, in seconds since the epoch; None while they work
        self.failing_since: float | None = None
        #: number of received objects that are not processed yet
        self.queued_count = 0
        #: set after the first complete list was handed to the handlers
        self.synced = asyncio.Event()

    @property
    def has_synced(self) -> bool:
        """Whether the handlers got the first complete list."""
        return self.synced.is_set()

    @property
    def trouble(self) -> str:
        """The error that prevents listing and watching, "" if none."""
        return self._trouble

    @property
    def objects(self) -> Mapping[Key, T]:
        """The local copy, by (namespace, name); a live view."""
        return self._store.objects

    @property
    def resource(self) -> ResourcePath:
        """The resource that is listed and watched."""
        return self._resource

    @property
    def kind(self) -> str:
        """The kind of its objects."""
        return self._type.__name__

    @property
    def unreadable(self) -> Mapping[Key, str]:
        """Objects whose newest version cannot be decoded, with the reason.

        An older version stays in the copy if there was one. Objects without a readable name are
        under ("", "") until the next list.
        """
        return self._unreadable

    @property
    def resource_version(self) -> str:
        """The last resource version, "" before the first list and after a 410."""
        return self._resource_version

    def get(self, name: str, *, namespace: str = "") -> T | None:
        """Return an object of the copy."""
        return self._store.objects.get((namespace, name))

    def add_handler(self, handler: Handler[T]) -> None:
        """Add a handler; it is first called for the existing objects."""
        self._handlers.append(handler)
        for obj in list(self._store.objects.values()):
            self._tell(handler, Added(obj), initial=True)

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if not self._resource_version:
                    await self._list()
                await self._watch()
            except GoneError as error:
                _log.info("%s: %s; listing again", self._resource, error)
                self._resource_version = ""
            except KubeschedError as error:
                if self._optional and await self._lacks_resource(error):
                    self._note_not_served()
                    await self._sleep(NOT_SERVED_PAUSE_S)
                    continue
                self._note_trouble(error)
                # The server may reject this version for another reason, e.g. because it was
                # restored from a backup and has not reached it: only a new list is safe.
                if isinstance(error, ApiError) and not isinstance(error, TooManyRequestsError):
                    self._resource_version = ""
            else:
                continue
            await self._sleep(self._backoff.next_s())

    async def _list(self) -> None:
        seen: set[Key] = set()
        version = ""
        initial = not self.has_synced
        pages = self._client.list_pages(
            self._path,
            self._type,
            limit=self._page_size,
            field_selector=self._field_selector,
            label_selector=self._label_selector,
        )
        async with aclosing(pages):
            async for page in pages:
                if page.first:
                    seen.clear()
                self.queued_count = page.waiting
                self._take_listed(page.items, seen, initial=initial)
                for bad in page.bad:  # it exists, so its last readable version stays
                    seen.add((bad.namespace, bad.name))
                    self._report(bad)
                version = page.resource_version
                await asyncio.sleep(0)
        self._deliver(self._store.retain(seen))
        self._unreadable = {key: why for key, why in self._unreadable.items() if key in seen}
        self._resource_version = version
        self.failing_since = None
        if not self._is_served:
            self._is_served = True
            _log.info(
                "the API server serves %s in version %s now",
                self._resource,
                self._resource.version,
            )
        self.synced.set()

    def _take_listed(self, batch: Sequence[T], seen: set[Key], *, initial: bool) -> None:
        started = self._clock.monotonic()
        for obj in batch:
            key = key_of(obj)
            seen.add(key)
            self._unreadable.pop(key, None)
            self._deliver(self._store.apply(obj), initial=initial)
        self._on_processed(self._clock.monotonic() - started)

    async def _watch(self) -> None:
        timeout_s = self._rng.randint(*_WATCH_TIMEOUT_S)
        stall_timeout_s = self._stall_timeout_s
        if stall_timeout_s is None:
            stall_timeout_s = timeout_s + _STALL_GRACE_S
        started = self._clock.monotonic()
        heard = False
        async with self._client.watch(
            self._path,
            self._type,
            resource_version=self._resource_version,
            timeout_s=timeout_s,
            stall_timeout_s=stall_timeout_s,
            field_selector=self._field_selector,
            label_selector=self._label_selector,
        ) as stream:
            self.failing_since = None
            async for batch in stream:
                batch_started = self._clock.monotonic()
                for event in batch:
                    self._take(event)
                    self._resource_version = stream.resource_version
                    if not heard:
                        heard = True
                        self._note_success()
                self._on_processed(self._clock.monotonic() - batch_started)
                if self._held_watches is not None:
                    self._held_watches.hold(stream)
        if not heard and self._clock.monotonic() - started < _SHORT_WATCH_S:
            raise ClientError("the watch ended at once, without an event")
        self._note_success()

    def _take(self, event: WatchEvent[T] | Bookmark | BadObject) -> None:
        if isinstance(event, WatchEvent):
            if self._unreadable:
                self._unreadable.pop(key_of(event.object), None)
            if event.type == DELETED:
                self._deliver(self._store.remove(event.object))
            else:
                self._deliver(self._store.apply(event.object))
        elif isinstance(event, BadObject):
            self._report(event)
            if event.event_type == DELETED and event.name:
                key = event.namespace, event.name
                self._unreadable.pop(key, None)
                self._deliver(self._store.remove_key(key))

    def _deliver(self, changes: Iterable[Change[T]], *, initial: bool = False) -> None:
        for change in changes:
            for handler in self._handlers:
                self._tell(handler, change, initial=initial)

    def _tell(self, handler: Handler[T], change: Change[T], *, initial: bool) -> None:
        try:
            if isinstance(change, Added):
                handler.on_add(change.object, initial)
            elif isinstance(change, Updated):
                handler.on_update(change.old, change.new)
            else:
                handler.on_delete(change.object)
        except MemoryError:
            raise  # its state may be half changed: only another process can go on
        except Exception:  # noqa: BLE001 - a handler's bug must not affect the others
            obj = change.new if isinstance(change, Updated) else change.object
            _log.exception(
                "%s %s: a handler failed on %s",
                self._resource,
                "/".join(filter(None, key_of(obj))),
                type(change).__name__.lower(),
            )

    def _report(self, bad: BadObject) -> None:
        self._unreadable[bad.namespace, bad.name] = bad.error
        try:
            self._on_bad_object(bad)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - as with handlers
            _log.exception("%s: the callback for unreadable objects failed", self._resource)

    def _log_bad_object(self, bad: BadObject) -> None:
        _log.warning("%s: left out, because it cannot be read: %s", self._resource, bad)

    def _note_trouble(self, error: KubeschedError) -> None:
        """Log each new error once, not each retry."""
        text = str(error)
        if self.failing_since is None:
            self.failing_since = self._clock.time()
        if text != self._trouble:
            self._trouble = text
            _log.error("cannot list and watch %s: %s; trying again", self._resource, text)

    async def _lacks_resource(self, error: KubeschedError) -> bool:
        """Whether the request failed because the API server does not have the resource."""
        if isinstance(error, NotFoundError):
            return True
        if not isinstance(error, ForbiddenError):
            return False
        try:
            return not await discovery.serves(self._client, self._resource)
        except ClientError:
            return False

    def _note_not_served(self) -> None:
        """Handle a resource that is not served: it has no objects."""
        if self._is_served:
            self._is_served = False
            _log.warning(
                "the API server does not serve %s in version %s; going on without, "
                "asking again every %.0f s",
                self._resource,
                self._resource.version,
                NOT_SERVED_PAUSE_S,
            )
        self._resource_version = self._trouble = ""
        self.failing_since = None
        self._unreadable = {}
        self._deliver(self._store.retain(set()))
        self.synced.set()

    def _note_success(self) -> None:
        self._backoff.reset()
        if self._trouble:
            self._trouble = ""
            _log.info("listing and watching %s works again", self._resource)
