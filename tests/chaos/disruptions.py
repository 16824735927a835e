"""What happens to processes meanwhile: they are killed, stopped and started again, by seed."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from .faults import FaultyProxy
from .plane import ChaosPlane
from .schedulers import Replica

#: Between two disruptions.
PAUSE_SECONDS: Final = (2.0, 8.0)
#: A clock is off by up to a minute, an hour or a day, either way.
CLOCK_JUMPS_S: Final = (60.0, 3600.0, 86_400.0)


class Disruptions:
    """Disrupts a control plane and its schedulers."""

    def __init__(
        self, plane: ChaosPlane, proxies: list[FaultyProxy], replicas: list[Replica], seed: int
    ) -> None:
        self._plane = plane
        self._proxies = proxies
        self._replicas = replicas
        self._rng = random.Random(seed)
        self._next = time.monotonic() + self._rng.uniform(*PAUSE_SECONDS)
        #: what was done to be undone, and when
        self._later: list[tuple[float, Callable[[], None]]] = []
        #: disruption → how often
        self.made: Counter[str] = Counter()
        self._kinds: dict[str, Callable[[], None]] = {
            "scheduler killed": self._kill_scheduler,
            "scheduler stopped": self._stop_scheduler,
            "API server killed": self._kill_apiserver,
            "etcd killed": self._kill_etcd,
            "certificate swapped": self._swap_certificate,
            "connections broken": self._break_connections,
            "memory short": self._starve,
        }
        if all(each.has_clock for each in replicas):
            self._kinds["clock set"] = self._set_clock
        if all(each.records for each in replicas):
            self._kinds["disk full"] = self._fill_disk

    def step(self) -> None:
        """Disrupt something if it is time, and undo what was long enough."""
        now = time.monotonic()
        due = [undo for at, undo in self._later if at <= now]
        self._later = [each for each in self._later if each[0] > now]
        for undo in due:
            undo()
        if now >= self._next:
            kind = self._rng.choice(list(self._kinds))
            self._kinds[kind]()
            self.made[kind] += 1
            self._next = time.monotonic() + self._rng.uniform(*PAUSE_SECONDS)

    def end(self) -> None:
        """Undo everything at once."""
        for _, undo in self._later:
            undo()
        self._later = []
        for each in self._replicas:
            each.set_clock(0.0)

    def _undo_after(self, least_s: float, most_s: float, undo: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + self._rng.uniform(least_s, most_s), undo))

    def _kill_scheduler(self) -> None:
        self._rng.choice(self._replicas).restart()

    def _stop_scheduler(self) -> None:
        replica = self._rng.choice(self._replicas)
        replica.send(signal.SIGSTOP)
        self._undo_after(1.0, 15.0, lambda: replica.send(signal.SIGCONT))

    def _starve(self) -> None:
        # Not while it starts: that would only show that Python cannot load its libraries then.
        replica = self._rng.choice(self._replicas)
        if not replica.has_begun:
            return
        replica.starve()
        self._undo_after(1.0, 10.0, replica.feed)

    def _set_clock(self) -> None:
        off_s = self._rng.choice(CLOCK_JUMPS_S) * self._rng.uniform(-1.0, 1.0)
        self._rng.choice(self._replicas).set_clock(off_s)

    def _fill_disk(self) -> None:
        self._rng.choice(self._replicas).fill_disk()

    def _kill_apiserver(self) -> None:
        self._plane.kill_apiserver()
        time.sleep(self._rng.uniform(0.0, 2.0))
        self._plane.start_apiserver()

    def _kill_etcd(self) -> None:
        self._plane.kill_etcd()
        time.sleep(self._rng.uniform(0.0, 2.0))
        self._plane.start_etcd()

    def _swap_certificate(self) -> None:
        proxy = self._rng.choice(self._proxies)
        proxy.swap_certificate(trusted=False)
        self._undo_after(1.0, 6.0, lambda: proxy.swap_certificate(trusted=True))

    def _break_connections(self) -> None:
        self._rng.choice(self._proxies).break_connections()
