"""Sources of the page: a live state, a snapshot, or a recording.

Source.state(at) ──> PageState ──> overview · nodes · queue · pods · questions
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable

from kubesched.clock import Clock
from kubesched.errors import UsageError
from kubesched.web.rates import Rates
from kubesched.web.report import Latency, Rate, RecordingTold, Stale
from kubesched.web.state import PageState
from kubesched.web.times import rfc3339


class Source(ABC):
    """A cluster, now or at any recorded entry."""

    #: scheduler, cluster, recording or snapshot
    kind: str
    #: whether it changes by itself
    live: bool

    @property
    @abstractmethod
    def title(self) -> str:
        """Its title for users."""

    @property
    @abstractmethod
    def scheduler_names(self) -> tuple[str, ...]:
        """The profiles of the scheduler."""

    @abstractmethod
    async def state(self, at: int | None) -> PageState:
        """Return the state at an entry of a recording, or now; raises UsageError."""

    @abstractmethod
    def time(self, state: PageState) -> str:
        """Return the time of the state."""

    async def run(self) -> None:
        """Background work while the page is served; none by default."""
        return

    async def aclose(self) -> None:
        """Release resources; none by default."""
        return

    def rate(self, state: PageState) -> Rate:  # noqa: ARG002 (for overrides)
        """Return the rate of placements."""
        return Rate()

    def latency(self, state: PageState) -> Latency:  # noqa: ARG002
        """Return the durations of attempts."""
        return Latency()

    def recording(self, state: PageState) -> RecordingTold | None:  # noqa: ARG002
        """Return the recording, None if it is none."""
        return None

    def stale(self) -> Stale | None:
        """Return since when and why the data is stale, None if it is current."""
        return None

    def notes(self) -> tuple[str, ...]:
        """Return notes, one line each."""
        return ()


def refuse_time_travel(at: int | None) -> None:
    """Raise UsageError for an entry number if the source is not a recording."""
    if at is not None:
        raise UsageError("'at' is an entry of a recording, and this is none")


class LiveSource(Source):
    """A live cluster."""

    live = True

    def __init__(
        self,
        kind: str,
        state: PageState,
        rates: Rates,
        *,
        clock: Clock,
        title: Callable[[], str],
        scheduler_names: Callable[[], Iterable[str]],
        stale: Callable[[], Stale | None],
        probe: Callable[[], Coroutine[object, object, None]] | None = None,
        notes: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """`probe` checks, while it runs, whether the API server responds."""
        self.kind = kind
        self._state = state
        self._rates = rates
        self._clock = clock
        self._title = title
        self._scheduler_names = scheduler_names
        self._stale = stale
        self._probe = probe
        self._notes = notes

    @property
    def title(self) -> str:
        """Its title for users."""
        return self._title()

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """The profiles of the scheduler."""
        return tuple(self._scheduler_names())

    async def state(self, at: int | None) -> PageState:
        """Return the current state."""
        refuse_time_travel(at)
        return self._state

    def time(self, state: PageState) -> str:  # noqa: ARG002 (always now)
        """Return the current time."""
        return rfc3339(self._clock.time())

    async def run(self) -> None:
        """Sample rates, and probe the API server."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._rates.run())
            if self._probe is not None:
                tasks.create_task(self._probe())

    def rate(self, state: PageState) -> Rate:  # noqa: ARG002
        """Return the rate of placements."""
        return self._rates.rate()

    def latency(self, state: PageState) -> Latency:  # noqa: ARG002
        """Return the durations of attempts."""
        return self._rates.latency()

    def stale(self) -> Stale | None:
        """Return since when the API server does not respond, None if it does."""
        return self._stale()

    def notes(self) -> tuple[str, ...]:
        """Return notes, one line each."""
        return tuple(self._notes())


class SnapshotSource(Source):
    """A cluster from a snapshot or from manifests."""

    kind = "snapshot"
    live = False

    def __init__(
        self, state: PageState, *, title: str, taken_at: float, scheduler_names: Iterable[str]
    ) -> None:
        """`taken_at` is the time of the snapshot, in seconds since the epoch."""
        self._state = state
        self._title = title
        self._taken_at = taken_at
        self._scheduler_names = tuple(scheduler_names)

    @property
    def title(self) -> str:
        """Its title for users."""
        return self._title

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """The profiles of the scheduler."""
        return self._scheduler_names

    async def state(self, at: int | None) -> PageState:
        """Return the state."""
        refuse_time_travel(at)
        return self._state

    def time(self, state: PageState) -> str:  # noqa: ARG002
        """Return the time of the snapshot."""
        return rfc3339(self._taken_at)
