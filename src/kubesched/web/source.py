"""Where the page has its cluster from: one state that lives, one that does not, or many.

Source.state(at) ──> State ──> overview · nodes · queue · pods · questions
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable

from kubesched.clock import Clock
from kubesched.errors import UsageError
from kubesched.web.rates import Rates
from kubesched.web.report import Latency, Rate, RecordingTold, Stale
from kubesched.web.state import State
from kubesched.web.times import rfc3339


class Source(ABC):
    """A cluster, now or at any time that was recorded."""

    #: scheduler, cluster, recording or snapshot
    kind: str
    #: whether it changes by itself
    live: bool

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is, for people."""

    @property
    @abstractmethod
    def scheduler_names(self) -> tuple[str, ...]:
        """The profiles of the scheduler."""

    @abstractmethod
    async def state(self, at: int | None) -> State:
        """Return the state at an entry of a recording, or now; UsageError if there is none."""

    @abstractmethod
    def time(self, state: State) -> str:
        """Return what time it is there."""

    async def run(self) -> None:
        """Do what has to be done as long as the page is served; by default nothing."""
        return

    async def aclose(self) -> None:
        """End what is under way; by default nothing is."""
        return

    def rate(self, state: State) -> Rate:  # noqa: ARG002 (not all have one)
        """Return how many pods are placed."""
        return Rate()

    def latency(self, state: State) -> Latency:  # noqa: ARG002
        """Return how long attempts take."""
        return Latency()

    def recording(self, state: State) -> RecordingTold | None:  # noqa: ARG002
        """Return what recording this is, None if it is none."""
        return None

    def stale(self) -> Stale | None:
        """Return since when what is shown is old and why, None if it is not."""
        return None

    def notes(self) -> tuple[str, ...]:
        """Return what else there is to know, one line each."""
        return ()


def refuse_time_travel(at: int | None) -> None:
    """Raise UsageError if somebody asks for an entry of what is no recording."""
    if at is not None:
        raise UsageError("'at' is an entry of a recording, and this is none")


class LiveSource(Source):
    """A cluster as it is now."""

    live = True

    def __init__(
        self,
        kind: str,
        state: State,
        rates: Rates,
        *,
        clock: Clock,
        title: Callable[[], str],
        scheduler_names: Callable[[], Iterable[str]],
        stale: Callable[[], Stale | None],
        probe: Callable[[], Coroutine[object, object, None]] | None = None,
        notes: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """`probe` finds out, as long as it runs, whether the API server is there."""
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
        """What it is, for people."""
        return self._title()

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """The profiles of the scheduler."""
        return tuple(self._scheduler_names())

    async def state(self, at: int | None) -> State:
        """Return how things are."""
        refuse_time_travel(at)
        return self._state

    def time(self, state: State) -> str:  # noqa: ARG002 (always now)
        """Return what time it is."""
        return rfc3339(self._clock.time())

    async def run(self) -> None:
        """Sample how fast it goes, and whether anything comes."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._rates.run())
            if self._probe is not None:
                tasks.create_task(self._probe())

    def rate(self, state: State) -> Rate:  # noqa: ARG002
        """Return how many pods are placed."""
        return self._rates.rate()

    def latency(self, state: State) -> Latency:  # noqa: ARG002
        """Return how long attempts take."""
        return self._rates.latency()

    def stale(self) -> Stale | None:
        """Return since when the API server was not heard of, None if it is."""
        return self._stale()

    def notes(self) -> tuple[str, ...]:
        """Return what else there is to know, one line each."""
        return tuple(self._notes())


class SnapshotSource(Source):
    """A cluster as it was, or as files say it is."""

    kind = "snapshot"
    live = False

    def __init__(
        self, state: State, *, title: str, taken_at: float, scheduler_names: Iterable[str]
    ) -> None:
        """`taken_at` is when it was so, in seconds since the epoch."""
        self._state = state
        self._title = title
        self._taken_at = taken_at
        self._scheduler_names = tuple(scheduler_names)

    @property
    def title(self) -> str:
        """What it is, for people."""
        return self._title

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """The profiles of the scheduler."""
        return self._scheduler_names

    async def state(self, at: int | None) -> State:
        """Return how things were."""
        refuse_time_travel(at)
        return self._state

    def time(self, state: State) -> str:  # noqa: ARG002
        """Return when that was."""
        return rfc3339(self._taken_at)
