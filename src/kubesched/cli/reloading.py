"""Reloads the configuration while the scheduler runs.

    SIGHUP, or the file changed ──> plugin files and configuration are read and validated
                                        ├── App.reconfigure, between two cycles
                                        └── invalid: logged, and the previous one stays in use

A file counts as changed when the target of its symlinks does, so that updates of a ConfigMap volume
are noticed. Changes that need a restart are logged and ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from kubesched import logs
from kubesched.cli.found_plugins import plugins_read_again
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import KubeschedError

_log, _bugs = logs.get_logger(__name__), logging.getLogger(__name__)

PERIOD_S: Final = 2.0

#: Parts of the configuration that are used only at startup, with their names in the file.
_AT_START: Final = {
    "client_connection": "clientConnection",
    "leader_election": "leaderElection",
    "enable_profiling": "enableProfiling",
    "enable_contention_profiling": "enableContentionProfiling",
    "delay_cache_until_active": "delayCacheUntilActive",
}


class Reloader:
    """Keeps the configuration in use in sync with its file."""

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
        #: the configuration in use
        self.config = config
        self._seen = self._content()

    def reload(self) -> None:
        """Read the file and apply it, or log why not."""
        if not self._file:
            _log.warning("There is no configuration file to reload: start with --config")
            return
        self._seen = self._content()
        try:
            # Plugins first: their arguments are validated against the new classes.
            with plugins_read_again():
                read = self._read()
                config = replace(read, **{name: getattr(self.config, name) for name in _AT_START})
                self._apply(config)
        except KubeschedError as refused:
            _log.error(
                "Configuration rejected, the previous one stays in use", refused, file=self._file
            )
            return
        except Exception:  # noqa: BLE001 (a bug here must not end the scheduler)
            _bugs.exception("reloading the configuration failed unexpectedly")
            return
        self.config = config
        _log.info("Configuration in use", file=self._file, profiles=_names(config))
        late = [
            field
            for name, field in _AT_START.items()
            if getattr(config, name) != getattr(read, name)
        ]
        if late:
            _log.warning("Changes that need a restart were ignored", fields=late)

    async def watch(self) -> None:
        """Reload the file whenever it has changed, until cancelled."""
        while self._file:
            await asyncio.sleep(PERIOD_S)
            content = self._content()
            if content is not None and content != self._seen:
                self.reload()

    def _content(self) -> bytes | None:
        """Return the contents of the file; None while it cannot be read."""
        try:
            return Path(self._file).read_bytes() if self._file else None
        except OSError:
            return None


def _names(config: SchedulerConfiguration) -> list[str]:
    return [profile.scheduler_name for profile in config.profiles]
