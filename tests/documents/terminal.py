"""A reader's terminals: commands are run one after the other, as they are printed.

    Terminal ──> bash, in the reader's clone of the repository ──> kubesched, kube-scheduler, pytest
       └─ run_on ──> programs that do not end by themselves, each in a terminal of its own

Variables and the folder stay from command to command, as in any shell. The reader's home has the
kubeconfig of their cluster, and the clone has what `make` has installed: commands that run the tree
under test. Two things differ from a reader's machine: kube-scheduler listens on a free port of the
loopback interface unless it is told where, and nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self

from kubesched.bench.processes import launched

from .markdown import ROOT, Command
from .shown_output import MismatchError, compare

#: A command may take so long on a busy machine before something is wrong.
SECONDS: Final = 120.0
_END_SECONDS: Final = 15.0
#: For so long the reader looks again at a cluster that is not yet as shown.
_PATIENCE_SECONDS: Final = 20.0
#: As wide as the documents: tables are broken where theirs are.
_COLUMNS: Final = "104"
#: Ends what a command printed; no text has it.
_MARK: Final = "\x1e"

#: Folders of the repository that a document may write to or refer to as its own.
_COPIED: Final = ("deploy", "examples")

_KUBE_SCHEDULER: Final = """\
import socket, sys
from kubesched.cli.kube_scheduler import main
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
# What the reader says comes later, and the last one counts.
sys.exit(main(["--bind-address=127.0.0.1", f"--secure-port={port}", *sys.argv[1:]]))
"""
_PROGRAMS: Final = {
    "kubesched": "-m kubesched.cli.kubesched",
    "kube-scheduler": '"$(dirname "$0")/kube_scheduler.py"',
    "pytest": "-m pytest -p kubesched.testing.pytest_plugin -p no:cacheprovider",
    "python": "",
}


class CommandFailedError(AssertionError):
    """A command did not do what the document says."""


def make_clone(folder: Path) -> Path:
    """Lay out the repository as a reader has it after `make`; return the folder of its commands."""
    clone = folder / "kubesched"
    clone.mkdir()
    for each in ROOT.iterdir():
        if each.name in _COPIED:
            shutil.copytree(each, clone / each.name)
        elif not each.name.startswith("."):
            (clone / each.name).symlink_to(each)
    programs = clone / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "kube_scheduler.py").write_text(_KUBE_SCHEDULER)
    for name, arguments in _PROGRAMS.items():
        program = programs / name
        program.write_text(
            "#!/bin/sh\n"
            f'export PYTHONPATH="{ROOT / "src"}${{PYTHONPATH:+:$PYTHONPATH}}"\n'
            f'exec "{sys.executable}" {arguments} "$@"\n'
        )
        program.chmod(0o755)
    # What make takes for the sign that everything is installed.
    for done in (".runtime", ".dev"):
        (clone / ".venv" / done).touch()
    return programs


@dataclass
class _Program:
    """One that goes on until its terminal is closed."""

    command: Command
    process: subprocess.Popen[bytes]
    output: Path

    def printed(self) -> str:
        return self.output.read_text(errors="replace")

    def end(self) -> None:
        """Press Ctrl-C; it must end well."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)
        try:
            code = self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            raise self.failure("does not end on Ctrl-C") from None
        finally:
            _kill(self.process)
        if code not in (0, 130, -signal.SIGINT):
            raise self.failure(f"ended with code {code}")
        if "Traceback" in self.printed():
            raise self.failure("ended with a traceback")

    def failure(self, what: str) -> CommandFailedError:
        return _failure(self.command, what, self.printed())


class Terminal:
    """The terminals of a reader who follows one document; `with` closes them."""

    def __init__(self, folder: Path, *, assets: Path | None, kubeconfig: Path | None) -> None:
        self._folder = folder
        programs = make_clone(folder)
        home = folder / "home"
        (home / ".kube").mkdir(parents=True)
        if kubeconfig is not None:
            (home / ".kube" / "config").symlink_to(kubeconfig)
        path = [programs, *([assets] if assets else []), "/usr/local/bin", "/usr/bin", "/bin"]
        self._environment = {
            "HOME": str(home),
            "PATH": ":".join(map(str, path)),
            "COLUMNS": _COLUMNS,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        #: where the reader is, who begins in the clone
        self.folder = programs.parents[1]
        self._output: IO[bytes] = (folder / "terminal").open("wb")
        self._shell = self._start(["/bin/bash", "--noprofile", "--norc", "-s"], self._output)
        self._programs: list[_Program] = []
        #: what the document calls something -> what it is here
        self._names: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        try:
            while self._programs:
                program = self._programs.pop()
                with contextlib.ExitStack() as stack:
                    if error is not None:  # which says more than what follows from it
                        stack.enter_context(contextlib.suppress(CommandFailedError))
                    program.end()
        finally:
            for left in self._programs:
                _kill(left.process)
            _kill(self._shell)
            self._output.close()

    def save(self, name: str, text: str) -> Path:
        """Write a file as the reader would, in the folder where they are."""
        path = self.folder / name
        if not path.resolve().is_relative_to(self._folder.resolve()):
            raise CommandFailedError(f"{name} would be written into the repository itself")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._real(text))
        return path

    def run(self, command: Command, *, code: int = 0) -> None:
        """Run a command to its end; raise unless it does what is shown."""
        text = self._checked(command)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            printed, ended_with = self._execute(text)
            if ended_with != code:
                raise _failure(command, f"ended with code {ended_with}, not {code}", printed)
            if "Traceback (most recent call last)" in printed:
                raise _failure(command, "printed a traceback", printed)
            try:
                self._compare(command, printed, whole=True)
            except CommandFailedError:
                # Others are at work in a cluster: a reader would look again.
                if not text.startswith("kubectl get ") or time.monotonic() > deadline:
                    raise
            else:
                return

    def run_on(self, command: Command, *, until: str) -> None:
        """Start a command in a terminal of its own; return when it has printed what is shown."""
        text = self._checked(command)
        output = self._folder / f"terminal-{len(self._programs) + 2}"
        exported, _ = self._execute("export -p")
        with output.open("wb") as sink:
            process = self._start(
                ["/bin/bash", "--noprofile", "--norc", "-c", f"{exported}\n{text}"], sink
            )
        program = _Program(command, process, output)
        self._programs.append(program)

        deadline = time.monotonic() + SECONDS
        while until not in program.printed():
            if (ended := process.poll()) is not None:
                raise program.failure(f"ended with code {ended} before it said {until!r}")
            if time.monotonic() > deadline:
                raise program.failure(f"does not say {until!r}")
            time.sleep(0.02)
        self._compare(command, program.printed(), whole=False)

    def end(self, program: str) -> None:
        """Press Ctrl-C in the terminal of a program."""
        for each in self._programs:
            if each.command.text.startswith(program):
                self._programs.remove(each)
                each.end()
                return
        raise CommandFailedError(f"{program} does not run, so it cannot be ended")

    def _compare(self, command: Command, printed: str, *, whole: bool) -> None:
        if command.shown is None:
            return
        try:
            self._names |= compare(command.shown, printed, whole=whole)
        except MismatchError as differs:
            raise CommandFailedError(f"{command.where}: {command.text}\n{differs}") from None

    def _start(self, arguments: list[str], sink: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            launched(arguments),
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env=self._environment,
            start_new_session=True,
        )

    def _checked(self, command: Command) -> str:
        """The command with the real names in it; raises if bash could not read it."""
        text = self._real(command.text)
        if complaint := syntax_error(text):
            raise _failure(command, "is no command", complaint)
        if re.search(r"(?<![&>])&\s*(#.*)?$", text):
            raise _failure(command, "is put into the background: give it a terminal", "")
        return text

    def _real(self, text: str) -> str:
        for shown, real in self._names.items():
            text = text.replace(shown, real)
        return text

    def _execute(self, text: str) -> tuple[str, int]:
        """Run a command; return what it printed and its code."""
        output = self._folder / "terminal"
        begin = output.stat().st_size
        assert self._shell.stdin is not None
        ask = f"{{ {text}\n}} </dev/null\nprintf '{_MARK}%s {_MARK}%s{_MARK}' $? \"$PWD\"\n"
        self._shell.stdin.write(ask.encode())
        self._shell.stdin.flush()
        deadline = time.monotonic() + SECONDS
        while True:
            with output.open("rb") as file:
                file.seek(begin)
                printed, *marked = file.read().decode(errors="replace").split(_MARK)
            if len(marked) == 3:
                code, self.folder = int(marked[0]), Path(marked[1])
                return printed, code
            if self._shell.poll() is not None or time.monotonic() > deadline:
                raise CommandFailedError(f"{text}\ndoes not end; it printed\n{printed}")
            time.sleep(0.01)


def syntax_error(text: str) -> str:
    """What bash does not understand in a command, "" if it does."""
    done = subprocess.run(
        ["/bin/bash", "-n", "-c", text], capture_output=True, text=True, check=False
    )
    return done.stderr.strip()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started, by the id of their group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def _failure(command: Command, what: str, printed: str) -> CommandFailedError:
    return CommandFailedError(
        f"{command.where}: {command.text}\n{what}; it printed\n{printed[-4000:]}"
    )
