"""The registry of a scheduler with out-of-tree plugins.

Plugins in files are loaded immediately. Those of installed packages are loaded when a profile names
them: an unused package is not imported, and cannot break anything. Nor are packages searched before
a profile names a plugin that is neither in the tree nor in a file: most never do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kubesched.clock import Clock, RealClock
from kubesched.errors import ConfigError, PluginError
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import Registry
from kubesched.plugin_loading.finding import plugin_of, plugins_in
from kubesched.plugin_loading.guarding import guarded

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS: Final = "kubesched.plugins"


class OpenRegistry(Registry):
    """Plugin classes by name, including those that can be loaded by name."""

    def __init__(
        self,
        plugins: Iterable[type[Plugin]],
        clock: Clock,
        *,
        base: Registry,
        files: Sequence[str] = (),
        entry_points: Iterable[EntryPoint] | None = None,
    ) -> None:
        super().__init__(plugins)
        self._entry_points = entry_points
        self._clock = clock
        self._base = base
        self._files = files
        #: names of the plugins that were loaded from packages
        self._of_packages: set[str] = set()

    @contextmanager
    def read_again(self) -> Iterator[None]:
        """Reload the plugins of all files; keep them if the block succeeds.

        Raises ConfigError if a file cannot be used. Then, and if the block raises, the previous
        plugins stay. Plugins of packages always stay: they change by installation.
        """
        before = self._classes
        made = _with_files(self._base, self._files, self._clock)
        of_packages = {name: before[name] for name in self._of_packages if name in before}
        self._classes = {**of_packages, **made}
        try:
            yield
        except BaseException:
            self._classes = before
            raise

    def __getitem__(self, name: str) -> type[Plugin]:
        self._load(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        return name in self._classes or name in self._offered

    def points_of(self, name: str) -> frozenset[str] | None:
        """Return the extension points that a plugin implements, None if it does not exist.

        Raises ConfigError if it cannot be loaded.
        """
        self._load(name)
        return super().points_of(name)

    @cached_property
    def _offered(self) -> Mapping[str, Sequence[EntryPoint]]:
        """Plugins of installed packages by name."""
        found = self._entry_points
        if found is None:
            from importlib import metadata  # noqa: PLC0415 (seldom needed, and slow to import)

            found = metadata.entry_points(group=ENTRY_POINTS)
        offered: dict[str, list[EntryPoint]] = defaultdict(list)
        for entry_point in found:
            # A file overrides a package, to try changes; nothing overrides the tree.
            if entry_point.name not in self._classes:
                offered[entry_point.name].append(entry_point)
        return dict(offered)

    def _load(self, name: str) -> None:
        if name in self._classes or name not in self._offered:
            return
        found = self._offered[name]
        if len(found) > 1:
            values = ", ".join(sorted(each.value for each in found))
            raise ConfigError(f"plugin {name} is offered by several packages: {values}")
        self._classes[name] = _guarded(plugin_of(found[0]), found[0].value, self._clock)
        self._of_packages.add(name)


def open_registry(
    base: Registry,
    files: Sequence[str] = (),
    *,
    clock: Clock | None = None,
    entry_points: Iterable[EntryPoint] | None = None,
) -> OpenRegistry:
    """Return a registry with the plugins of `files` and those of installed packages.

    `files` are ``FILE`` or ``FILE:CLASS``. Raises ConfigError if one of them cannot be used.
    """
    clock = clock or RealClock()
    classes = _with_files(base, files, clock)
    return OpenRegistry(
        classes.values(), clock, base=base, files=tuple(files), entry_points=entry_points
    )


def _with_files(base: Registry, files: Sequence[str], clock: Clock) -> dict[str, type[Plugin]]:
    classes = dict(base)
    for reference in dict.fromkeys(files):
        for plugin in plugins_in(reference):
            made = _guarded(plugin, reference, clock)
            if made.name in classes:
                raise ConfigError(f"{reference}: a plugin named {made.name} already exists")
            classes[made.name] = made
    return classes


def _guarded(plugin: type[Plugin], source: str, clock: Clock) -> type[Plugin]:
    try:
        return guarded(plugin, clock)
    except PluginError as refused:
        raise ConfigError(f"{source}: {refused}") from None
