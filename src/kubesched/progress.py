"""Whether the scheduling loop still turns.

    scheduling loop ──beat() at every turn──> Progress ──is_progressing()──> leader election, /livez

A process can answer requests and renew its lease for ever while its one important task waits for
something that never comes. So leadership and health hang on the loop's own word: it beats at every
turn, and it turns at least once a second even when there is nothing to do. Whoever asks has to
live with two ways of being stuck:

- The loop's task waits for ever and the event loop goes on. Then this says so, after the limit.
- Synchronous code blocks the event loop. Then nobody can ask until it is over; what must not
  happen after that is for ``LeaderElector.may_act`` to say.
"""

from __future__ import annotations

from kubesched.clock import Clock


class Progress:
    """The time of the last turn, and how long a turn may take."""

    __slots__ = ("_clock", "_last_beat", "_limit_s")

    def __init__(self, clock: Clock, limit_s: float) -> None:
        if limit_s <= 0:
            raise ValueError(f"a loop needs time for a turn, not {limit_s} s")
        self._clock = clock
        self._limit_s = limit_s
        #: None: the loop does not run, and nothing is expected of it
        self._last_beat: float | None = None

    def allow(self, limit_s: float) -> None:
        """Let turns take that long from now on."""
        self._limit_s = limit_s

    def beat(self) -> None:
        """Say that the loop has come round; the first time, that it runs."""
        self._last_beat = self._clock.monotonic()

    def rest(self) -> None:
        """Say that the loop has ended: from now on silence means nothing."""
        self._last_beat = None

    @property
    def silent_s(self) -> float:
        """How long ago the loop last came round; 0 if it does not run."""
        return 0.0 if self._last_beat is None else self._clock.monotonic() - self._last_beat

    def is_progressing(self) -> bool:
        """Whether the loop came round within the limit, or is not expected to."""
        return self.silent_s <= self._limit_s
