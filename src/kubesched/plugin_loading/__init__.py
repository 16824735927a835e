"""Loads out-of-tree plugins, decodes their arguments, and guards their calls.

    entry points ``kubesched.plugins`` ─┐
    ``--plugin FILE[:CLASS]`` ──────────┴─> finding ─> guarding ─> OpenRegistry ─> frameworks

An out-of-tree plugin is imported only if a flag or a profile names it.
"""

from __future__ import annotations

from kubesched.plugin_loading.arguments import Arguments, arguments_of, check_arguments
from kubesched.plugin_loading.guarding import guarded
from kubesched.plugin_loading.open_registry import ENTRY_POINTS, OpenRegistry, open_registry

__all__ = [
    "ENTRY_POINTS",
    "Arguments",
    "OpenRegistry",
    "arguments_of",
    "check_arguments",
    "guarded",
    "open_registry",
]
