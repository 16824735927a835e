"""Finds plugin classes in files and in installed packages.

FILE            all plugins that the file defines
FILE:CLASS      one of them
entry point     the class that an installed package registers under the plugin's name
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from kubesched.errors import ConfigError
from kubesched.framework.plugin import Plugin, extension_points
from kubesched.plugin_loading.watching import what, where

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def plugins_in(reference: str) -> list[type[Plugin]]:
    """Return the plugin classes that ``FILE`` or ``FILE:CLASS`` names; raises ConfigError."""
    file, wanted = _split(reference)
    module = _imported(file)
    if wanted:
        found = getattr(module, wanted, None)
        if found is None:
            raise ConfigError(f"plugin file {file} has no class {wanted}{_having(module)}")
        return [_plugin_class(found, f"{file}:{wanted}")]
    classes = _defined_in(module)
    if not classes:
        raise ConfigError(
            f"plugin file {file} defines no plugin: derive a class from an extension point"
        )
    return classes


def plugin_of(entry_point: EntryPoint) -> type[Plugin]:
    """Return the class of an entry point; raises ConfigError if it cannot be loaded."""
    source = f"entry point {entry_point.name} = {entry_point.value}"
    try:
        found = entry_point.load()
    except Exception as bug:  # noqa: BLE001 (any bug of the plugin)
        raise ConfigError(f"{source} cannot be imported: {where(bug, '')}: {what(bug)}") from None
    plugin = _plugin_class(found, source)
    name = getattr(plugin, "name", plugin.__name__)
    if name != entry_point.name:
        raise ConfigError(f"{source} leads to the plugin {name}: both must have the same name")
    return plugin


def _split(reference: str) -> tuple[str, str]:
    file, colon, wanted = reference.rpartition(":")
    # A colon may be part of the path.
    return (file, wanted) if colon and wanted.isidentifier() else (reference, "")


def _imported(file: str) -> ModuleType:
    path = Path(file).absolute()
    # Files of the same name in different folders are different modules.
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    name = f"kubesched_plugin_{path.stem}_{digest}"
    try:
        source = path.read_bytes()
    except OSError as failed:
        raise ConfigError(f"open {file}: {(failed.strerror or '').lower()}") from None
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise ConfigError(f"plugin file {file} is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    # Types in annotations are looked up there.
    sys.modules[name] = module
    try:
        # Not through a .pyc file: it counts as current if the file changed within a second.
        exec(spec.loader.source_to_code(source, str(path)), vars(module))  # noqa: S102 (a plugin)
    except Exception as bug:  # noqa: BLE001 (any bug of the plugin)
        del sys.modules[name]
        if before is not None:  # the previous one stays in use
            sys.modules[name] = before
        raise ConfigError(f"plugin file {file}: {where(bug, str(path))}: {what(bug)}") from None
    return module


def _defined_in(module: ModuleType) -> list[type[Plugin]]:
    """Return the plugins that a module defines, without abstract or nameless bases."""
    return [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Plugin)
        and each.__module__ == module.__name__
        and ("name" in vars(each) or not getattr(each, "__abstractmethods__", None))
    ]


def _plugin_class(found: object, source: str) -> type[Plugin]:
    if not isinstance(found, type) or not issubclass(found, Plugin):
        raise ConfigError(f"{source} is no plugin: it must be a class derived from one of them")
    if not extension_points(found):
        raise ConfigError(f"{source} implements no extension point")
    return found


def _having(module: ModuleType) -> str:
    names = [each.__name__ for each in _defined_in(module)]
    return f"; its plugins are {', '.join(names)}" if names else ""
