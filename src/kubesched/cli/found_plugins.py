"""The registry of the command: plugins in the tree, in files that flags name, in packages."""

from __future__ import annotations

from functools import cache

from kubesched.framework.registry import Registry
from kubesched.plugin_loading import open_registry
from kubesched.plugins.in_tree import IN_TREE


@cache
def found_plugins(files: tuple[str, ...]) -> Registry:
    """Return it; who checks a configuration and who runs it get the same one, loaded once.

    Raises ConfigError if a file cannot be used.
    """
    return open_registry(IN_TREE, files)
