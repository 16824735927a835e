"""argparse parsers that raise UsageError, so that one place prints errors and exits."""

from __future__ import annotations

import argparse
from typing import NoReturn

from kubesched.errors import UsageError


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message}; see '{self.prog} --help'")


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
