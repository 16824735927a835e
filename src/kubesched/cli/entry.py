"""The console scripts: what signals do while modules are imported, and what output comes to.

    script ──> here: nothing is imported yet ──> the command's module ──> main()

Ctrl-C during the imports ends the process like any other program, without a traceback. Afterwards
it is a KeyboardInterrupt; SIGTERM and SIGHUP end a command too, and let it remove its temporary
files first. What cannot be written to standard output is one line.
"""

# Built in, and the very first: nothing has to be found and read before Ctrl-C is seen to.
import _signal  # type: ignore[import-not-found]

_signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import io  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from importlib import import_module  # noqa: E402
from typing import Any  # noqa: E402


def kubesched() -> int:
    """Run the ``kubesched`` command; return its exit code."""
    return _run("kubesched.cli.kubesched")


def kube_scheduler() -> int:
    """Run the ``kube-scheduler`` command; return its exit code."""
    return _run("kubesched.cli.kube_scheduler")


def _run(module: str) -> int:
    output = _Output.in_place_of_stdout()
    main = import_module(module).main
    code: int
    try:
        _end_on_signals()
        code = main()
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except (OSError, BaseExceptionGroup):
        if output is None or output.failure is None:
            raise
        code = 0  # as far as the command is concerned
    # From here on there is nothing to undo, and Python would only show where it was.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code if output is None else output.end(code)


def _end_on_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = _unraisable
    for number in (signal.SIGTERM, signal.SIGHUP):
        # What is ignored stays so: that is how ``nohup`` works.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))


def _unraisable(what: "sys.UnraisableHookArgs") -> None:
    """Let an interrupt end the process also where Python would only show and forget it."""
    if what.exc_type is KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    sys.__unraisablehook__(what)


class _Output(io.FileIO):
    """Standard output that remembers what went wrong: not all who print let that be known."""

    failure: OSError | None = None

    @classmethod
    def in_place_of_stdout(cls) -> "_Output | None":
        """Take the place of standard output, if there is one."""
        before = sys.stdout
        if not isinstance(before, io.TextIOWrapper):
            return None
        output = cls(before.fileno(), "wb", closefd=False)
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(output),
            encoding=before.encoding,
            errors=before.errors,
            line_buffering=before.line_buffering,
        )
        return output

    def write(self, data: Any, /) -> int:  # noqa: ANN401 (any buffer)
        """Write, or remember why that is not possible."""
        try:
            return super().write(data)
        except OSError as failed:
            self.failure = self.failure or failed
            raise

    def end(self, code: int) -> int:
        """Write what is left; return the exit code, which is another one if that cannot be done."""
        try:
            sys.stdout.flush()
        except OSError as failed:
            self.failure = self.failure or failed
        if self.failure is None:
            return code
        # What could not be written must not be tried again at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        if isinstance(self.failure, BrokenPipeError):
            # The reader, such as ``head``, has seen enough.
            return 128 + signal.SIGPIPE
        if code:
            return code  # the command has said what is wrong
        reason = self.failure.strerror
        print(f"Error: cannot write to standard output: {reason}", file=sys.stderr)
        return 1
