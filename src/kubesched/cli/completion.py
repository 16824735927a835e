"""``kubesched completion``: flags and commands completed by the shell.

    shell ──TAB──> kubesched, with the line in the environment ──> argcomplete ──> words

kubectl completes a plugin's words itself: it calls ``kubectl_complete-kubesched`` with them, and
reads one word a line, then the directive of its own completion.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Final

from kubesched.cli.parsing import Parser

SHELLS: Final = ("bash", "zsh", "fish")
#: Set by the shell code while it asks for words.
_ASKED: Final = "_ARGCOMPLETE"
#: cobra's ShellCompDirectiveNoFileComp
_NO_FILES: Final = ":4"

_EXAMPLES = """\
examples:
  source <(kubesched completion bash)                            this bash; or in ~/.bashrc
  source <(kubesched completion zsh)                             this zsh; or in ~/.zshrc
  kubesched completion fish | source                             this fish
  kubesched completion fish > ~/.config/fish/completions/kubesched.fish
"""


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "completion",
        help="print shell code that completes commands and flags",
        description="Prints code for the shell to source. For kubectl kubesched, kubectl's own "
        "completion is enough.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    parser.set_defaults(run=_run)


def _run(flags: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode  # noqa: PLC0415 (costs time to import)

    print(shellcode(["kubesched"], shell=flags.shell))
    return 0


def complete(parser: Parser) -> None:
    """Print words and exit, if the shell asks for them."""
    if _ASKED in os.environ:
        from argcomplete import autocomplete  # noqa: PLC0415

        autocomplete(parser)


def complete_for_kubectl(parser: Parser, words: Sequence[str]) -> None:
    """Print the words that may follow; the last one given is incomplete, perhaps empty."""
    from argcomplete import autocomplete  # noqa: PLC0415

    line = shlex.join([parser.prog, *words[:-1]]) + " " + (words[-1] if words else "")
    os.environ.update(
        {
            _ASKED: "1",
            f"{_ASKED}_IFS": "\n",
            f"{_ASKED}_SUPPRESS_SPACE": "1",
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        }
    )
    found = io.StringIO()
    with contextlib.suppress(SystemExit):
        autocomplete(parser, output_stream=found, exit_method=sys.exit)
    sys.stdout.write(found.getvalue())
    print(f"\n{_NO_FILES}")
