"""Tracks whether the scheduling loop makes progress.

    scheduling loop ──beat()──> LoopProgress ──is_progressing()──> leader election, /livez

A process can answer requests and renew its lease forever while its one important task is stuck. So
leadership and health depend on the loop itself: it calls `beat` at every turn, and it turns at
least once a second even when idle. There are two ways of being stuck:

- The loop's task waits forever and the event loop goes on. This reports it, after the limit.
- Synchronous code blocks the event loop. Nothing can be reported until it is over;
  ``LeaderElector.may_act`` prevents writes after that.
"""

from __future__ import annotations

from kubesched.clock import Clock


class LoopProgress:
    """The time of the last turn, and how long a turn may take."""

    __slots__ = ("_clock", "_last_beat", "_limit_s")

    def __init__(self, clock: Clock, limit_s: float) -> None:
        if limit_s <= 0:
            raise ValueError(f"a loop needs time for a turn, not {limit_s} s")
        self._clock = clock
        self._limit_s = limit_s
        #: None: the loop does not run, and is not expected to
        self._last_beat: float | None = None

    def allow(self, limit_s: float) -> None:
        """Set how long a turn may take."""
        self._limit_s = limit_s

    def beat(self) -> None:
        """Record a turn of the loop; the first call starts it."""
        self._last_beat = self._clock.monotonic()

    def rest(self) -> None:
        """Record the end of the loop: silence is expected from now on."""
        self._last_beat = None

    @property
    def silent_s(self) -> float:
        """Seconds since the loop's last turn; 0 if it does not run."""
        return 0.0 if self._last_beat is None else self._clock.monotonic() - self._last_beat

    def is_progressing(self) -> bool:
        """Whether the loop made a turn within the limit, or does not run."""
        return self.silent_s <= self._limit_s
