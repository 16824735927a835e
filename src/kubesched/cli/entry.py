"""The console scripts: signal handling during imports, and errors of standard output.

    script ──> this module: nothing is imported yet ──> the command's module ──> main()

Ctrl-C during the imports ends the process without a traceback. Afterwards it is a
KeyboardInterrupt; SIGTERM and SIGHUP also end a command, and let it remove its temporary files. A
failed write to standard output is reported in one line.
"""

# Built in, and imported first: nothing must be loaded before Ctrl-C is handled.
import _signal  # type: ignore[import-not-found]

_signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import io  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from importlib import import_module  # noqa: E402
from typing import Any  # noqa: E402

from kubesched import garbage  # noqa: E402


def kubesched() -> int:
    """Run the ``kubesched`` command; return its exit code."""
    return _run("kubesched.cli.kubesched")


def kube_scheduler() -> int:
    """Run the ``kube-scheduler`` command; return its exit code."""
    return _run("kubesched.cli.kube_scheduler")


def kubectl_kubesched() -> int:
    """Run ``kubectl kubesched``; return its exit code."""
    return _run("kubesched.cli.kubesched", "kubectl_plugin")


def kubectl_complete_kubesched() -> int:
    """Complete the words of ``kubectl kubesched``; return 0."""
    return _run("kubesched.cli.kubesched", "kubectl_completion")


def _run(module: str, function: str = "main") -> int:
    output = _StandardOutput.in_place_of_stdout()
    with garbage.importing():
        main = getattr(import_module(module), function)
    code = 0
    signals = _signals_heard()
    try:
        _end_on_signals()
        code = main()
        # A result that cannot be written is an error, also if its exit code is not 0.
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except (OSError, BaseExceptionGroup):
        if output is None or output.failure is None:
            raise
        from kubesched.cli import exit_codes  # noqa: PLC0415 (nothing is imported before)

        if code != exit_codes.TROUBLE:
            code = 0  # a result that cannot be written, and not an error that was reported
    except (ImportError, RuntimeError):
        # Of an interrupted import: NumPy's, and Python's about a class that is being made.
        if signal.SIGINT not in signals():
            raise
        code = 128 + signal.SIGINT
    # From here on there is nothing to clean up, and Python would only print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code if output is None else output.end(code)


def _signals_heard() -> Callable[[], bytes]:
    """Note signals until an event loop does; return a function that returns their numbers."""
    heard, noted = os.pipe()
    for each in (heard, noted):
        os.set_blocking(each, False)
    signal.set_wakeup_fd(noted, warn_on_full_buffer=False)

    def read() -> bytes:
        try:
            return os.read(heard, 1024)
        except BlockingIOError:
            return b""

    return read


def _end_on_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = _unraisable
    for number in (signal.SIGTERM, signal.SIGHUP):
        # An ignored signal stays ignored: that is how ``nohup`` works.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _frame: sys.exit(128 + number))


def _unraisable(what: "sys.UnraisableHookArgs") -> None:
    """Let an interrupt end the process also where Python would only print it."""
    if what.exc_type is KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    sys.__unraisablehook__(what)


class _StandardOutput(io.FileIO):
    """Standard output that records write errors, which some libraries swallow."""

    failure: OSError | None = None

    @classmethod
    def in_place_of_stdout(cls) -> "_StandardOutput | None":
        """Replace standard output, if there is one."""
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
        """Write, or record the error."""
        try:
            return super().write(data)
        except OSError as failed:
            self.failure = self.failure or failed
            raise

    def end(self, code: int) -> int:
        """Flush; return the exit code, which is another one if that fails."""
        try:
            sys.stdout.flush()
        except OSError as failed:
            self.failure = self.failure or failed
        if self.failure is None:
            return code
        # Do not retry the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        if isinstance(self.failure, BrokenPipeError):
            # The reader, such as ``head``, has closed the pipe.
            return 128 + signal.SIGPIPE
        if code:
            return code  # the command has already reported an error
        reason = self.failure.strerror
        print(f"Error: cannot write to standard output: {reason}", file=sys.stderr)
        return 1
