"""argparse parsers that raise UsageError, so that one place prints errors and exits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from kubesched.errors import UsageError


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError."""

    #: what the command ends with if its command line is refused
    failure_code = UsageError.exit_code

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        refused = UsageError(f"{message}; see '{self.prog} --help'")
        refused.exit_code = self.failure_code
        raise refused

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, and refuse what is left here if the caller would end with another code."""
        parsed, left = super().parse_known_args(args, namespace)
        if left and self.failure_code != UsageError.exit_code:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return parsed, left


def positive(text: str) -> int:
    """Parse a number of at least 1."""
    return _at_least(1, text)


def not_negative(text: str) -> int:
    """Parse a number of at least 0."""
    return _at_least(0, text)


def port(text: str) -> int:
    """Parse a port number, 0 for any free one."""
    number = _at_least(0, text)
    if number > 65535:
        raise argparse.ArgumentTypeError(f"{number}: a port is a number from 0 to 65535")
    return number


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if number < least:
        raise argparse.ArgumentTypeError(f"{number} is too small, it must be at least {least}")
    return number
