"""Command lines: mistakes become exceptions, so that one place prints them and exits."""

from __future__ import annotations

import argparse
from typing import NoReturn

from kubesched.errors import UsageError


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError."""

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise UsageError(f"{message}; see '{self.prog} --help'")


def positive(text: str) -> int:
    """Read a number that must be at least 1."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is too small, it must be at least 1")
    return number
