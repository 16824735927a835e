"""Reading the configuration again while the scheduler runs.

    SIGHUP, or the file changed ──> read, check ──> App.reconfigure, between two cycles
                                        └── refused: logged, and the one before stays in use

A file counts as changed when what it leads to does, so that the links by which a ConfigMap volume
is swapped are followed. What only a start can change is named in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kubesched import logs
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import KubeschedError

_log = logs.get_logger(__name__)

PERIOD_S: Final = 2.0

#: Parts of the configuration that are used once, when the process starts.
_AT_START: Final = (
    "client_connection",
    "leader_election",
    "enable_profiling",
    "enable_contention_profiling",
    "delay_cache_until_active",
)


class Reloader:
    """Keeps the configuration in use up to date with its file."""

    def __init__(
        self,
        file: str,
        read: Callable[[], SchedulerConfiguration],
        config: SchedulerConfiguration,
        *,
        apply: Callable[[SchedulerConfiguration], None],
    ) -> None:
        #: "" if there is none
        self._file = file
        self._read = read
        self._apply = apply
        #: what is in use
        self.config = config
        self._seen = self._content()

    def reload(self) -> None:
        """Read the file and use what it says, or say why not."""
        if not self._file:
            _log.warning("There is no configuration file to read again: start with --config")
            return
        self._seen = self._content()
        try:
            config = self._read()
            self._apply(config)
        except KubeschedError as refused:
            _log.error(
                "Configuration refused, the one before stays in use", refused, file=self._file
            )
            return
        late = [name for name in _AT_START if getattr(config, name) != getattr(self.config, name)]
        self.config = config
        _log.info("Configuration in use", file=self._file, profiles=_names(config))
        if late:
            _log.warning("Changes that need a restart were left out", fields=late)

    async def watch(self) -> None:
        """Read the file again whenever it has changed, for ever."""
        while self._file:
            await asyncio.sleep(PERIOD_S)
            content = self._content()
            if content is not None and content != self._seen:
                self.reload()

    def _content(self) -> bytes | None:
        """Return what the file says; None while it cannot be read."""
        try:
            return Path(self._file).read_bytes() if self._file else None
        except OSError:
            return None


def _names(config: SchedulerConfiguration) -> list[str]:
    return [profile.scheduler_name for profile in config.profiles]
