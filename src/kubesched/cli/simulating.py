"""Common parts of all simulations: flags, and output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from kubesched.cli import cluster_source
from kubesched.cli.explain import encoded
from kubesched.cli.parsing import Parser, positive
from kubesched.errors import ObjectError

if TYPE_CHECKING:
    from rich.console import Console

Kinds: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 (no public name)


def add_kind(
    kinds: Kinds,
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
    *,
    epilog: str = "",
) -> Parser:
    """Add a kind of simulation, with the common flags."""
    parser = kinds.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="settles ties (0)")
    parser.add_argument("--top", type=positive, default=10, metavar="N", help="rows to show (10)")
    parser.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table")
    cluster_source.add_source(parser)
    cluster_source.add_configuration(parser)
    cluster_source.add_plugins(parser)
    parser.set_defaults(run=run)
    return parser


def show(flags: argparse.Namespace, said: object, as_table: Callable[[Console], None]) -> int:
    """Print the result in the requested format; return the exit code."""
    if flags.output != "table":
        sys.stdout.write(encoded(said, flags.output))
        return 0
    from rich.console import Console  # noqa: PLC0415 (costs time to import)

    as_table(Console(highlight=False))
    return 0


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
