"""Output of results: tables, names, JSON and YAML."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console

#: Prints a result: to which console, how many rows of a table, whether everything in full.
Show: TypeAlias = "Callable[[Console, int, bool], None]"


def show(flags: argparse.Namespace, said: object, as_table: Show, names: Iterable[str] = ()) -> int:
    """Print the result in the requested format; return the exit code.

    `names` are the objects that it is about, as ``pod/NAME`` or ``node/NAME``.
    """
    if flags.output == "name":
        sys.stdout.writelines(f"{name}\n" for name in dict.fromkeys(names))
        return 0
    if flags.output in ("json", "yaml"):
        sys.stdout.write(encoded(said, flags.output))
        return 0
    from kubesched.cli.console import stdout_console  # noqa: PLC0415 (costs time to import)

    is_wide = flags.output == "wide"
    as_table(stdout_console(wide=is_wide), sys.maxsize if is_wide else flags.top, is_wide)
    return 0


def pod_names(pods: Iterable[str]) -> list[str]:
    """Return pods, given with their namespaces, as kubectl names them."""
    return [f"pod/{each.rpartition('/')[2]}" for each in pods]


def node_names(nodes: Iterable[str]) -> list[str]:
    """Return nodes as kubectl names them."""
    return [f"node/{each}" for each in nodes]


def encoded(said: object, output: str) -> str:
    """Return structs as JSON or YAML."""
    import msgspec  # noqa: PLC0415

    if output == "json":
        return msgspec.json.format(msgspec.json.encode(said), indent=2).decode() + "\n"
    return msgspec.yaml.encode(said).decode()
