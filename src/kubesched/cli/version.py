"""``kubesched version``: what is installed, and which Kubernetes it behaves as."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version

from msgspec import Struct

from kubesched import KUBERNETES_VERSION, __version__
from kubesched.cli.parsing import Parser, add_output
from kubesched.cli.printing import encoded


class Versions(Struct, rename="camel"):
    """The versions that a bug report needs."""

    kubesched: str
    kubernetes: str
    python: str
    numpy: str
    platform: str

    @classmethod
    def installed(cls) -> Versions:
        """Return those of this installation."""
        return cls(
            kubesched=__version__,
            kubernetes=KUBERNETES_VERSION,
            python=f"{platform.python_implementation()} {platform.python_version()}",
            numpy=version("numpy"),
            platform=f"{platform.system().lower()}/{platform.machine()}",
        )


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "version",
        help="print the version, and which Kubernetes it behaves as",
        description="Prints the versions of kubesched, of the kube-scheduler that it behaves as, "
        "of Python and of NumPy.",
    )
    add_output(parser, "text", "json", "yaml")
    parser.set_defaults(run=_run)


def _run(flags: argparse.Namespace) -> int:
    installed = Versions.installed()
    if flags.output != "text":
        print(encoded(installed, flags.output), end="")
        return 0
    print(f"kubesched   {installed.kubesched}")
    print(f"behaves as  kube-scheduler {installed.kubernetes}")
    print(f"runs on     {installed.python}, NumPy {installed.numpy}, {installed.platform}")
    return 0
