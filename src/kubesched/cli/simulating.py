"""Common parts of all simulations: flags, and output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import TypeAlias

from kubesched.cli import cluster_source
from kubesched.cli.parsing import Parser, add_output, positive
from kubesched.errors import ObjectError

Kinds: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 (no public name)


def add_kind(
    kinds: Kinds,
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
    *,
    epilog: str = "",
    description: str = "",
    has_objects: bool = True,
) -> Parser:
    """Add a kind of simulation, with the common flags; `has_objects`: its result is about some."""
    parser = kinds.add_parser(
        name,
        help=text,
        description=description or f"{text[0].upper()}{text[1:]}.",
        epilog=epilog,
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="settles ties")
    parser.add_argument("--top", type=positive, default=10, metavar="N", help="rows to show")
    add_output(parser, "table", *(("wide", "name") if has_objects else ()), "json", "yaml")
    cluster_source.add_source(parser)
    cluster_source.add_configuration(parser)
    cluster_source.add_plugins(parser)
    parser.set_defaults(run=run)
    return parser


def tell(notes: Iterable[str]) -> None:
    """Print notes to stderr."""
    for note in notes:
        print(f"Note: {note}", file=sys.stderr)


def duration(text: str) -> float:
    """Parse a duration: seconds, or for example ``1h30m``."""
    from kubesched.simulate.forms import seconds  # noqa: PLC0415 (costs time to import)

    try:
        return seconds(text, "duration")
    except ObjectError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no length of time: write seconds, or for example 1h30m"
        ) from None
