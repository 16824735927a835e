"""The command's registry: plugins in the tree, in files given by flags, in packages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from kubesched.framework.registry import Registry
from kubesched.plugin_loading import OpenRegistry, open_registry
from kubesched.plugins.in_tree import IN_TREE

_found: dict[tuple[str, ...], OpenRegistry] = {}


def found_plugins(files: tuple[str, ...]) -> Registry:
    """Return the registry; loaded once, and shared by validation and scheduling.

    Raises ConfigError if a file cannot be used.
    """
    if files not in _found:
        _found[files] = open_registry(IN_TREE, files)
    return _found[files]


@contextmanager
def plugins_read_again() -> Iterator[None]:
    """Reload the files; undone if one cannot be used, or if the block raises.

    Raises ConfigError for a file that cannot be used.
    """
    with ExitStack() as undo:
        for registry in _found.values():
            undo.enter_context(registry.read_again())
        yield
