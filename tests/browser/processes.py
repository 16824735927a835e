"""Commands that serve the page, as processes of their own.

serving("demo", "--keep", …) ──> Served: address of the page, API server behind it
                                  └── ends with Ctrl-C, in time and without a traceback
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

_COMMAND = (sys.executable, "-m", "kubesched.cli.kubesched")
_PAGE = re.compile(r"(http://127\.0\.0\.1:\d+/ui/)\?token=(\S+)")
_API = re.compile(r"API server at (http://127\.0\.0\.1:\d+)")
_KUBECONFIG = re.compile(r"KUBECONFIG=(\S+)")
START_S = 120.0
END_S = 15.0


class Served:
    """A page that is served, and what its command has printed."""

    def __init__(self, output: str) -> None:
        page = _PAGE.search(output)
        assert page, f"no address of a page in:\n{output}"
        self.page, self.token = page.group(1), page.group(2)
        api = _API.search(output)
        #: the API server that the command runs itself, "" if none
        self.api = api.group(1) if api else ""
        kubeconfig = _KUBECONFIG.search(output)
        self.kubeconfig = kubeconfig.group(1) if kubeconfig else ""

    @property
    def address(self) -> str:
        """The address that lets its owner in."""
        return f"{self.page}?token={self.token}"


class _Output:
    """What a process prints, read by a thread, so that it never waits for its reader."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.text = ""
        self._process = process
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.text += line

    def wait_for(self, wanted: str) -> None:
        """Wait until it has said something."""
        deadline = time.monotonic() + START_S
        while wanted not in self.text:
            if self._process.poll() is not None or time.monotonic() > deadline:
                message = f"the command ended or did not say {wanted!r} in time:\n{self.text}"
                raise AssertionError(message)
            time.sleep(0.02)

    def join(self) -> None:
        """Read to the end."""
        self._reader.join(END_S)


@contextlib.contextmanager
def serving(*arguments: str, until: str = "Ctrl-C") -> Iterator[Served]:
    """Run a command until the end of the block."""
    with subprocess.Popen(
        (*_COMMAND, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"},
    ) as process:
        output = _Output(process)
        try:
            output.wait_for(until)
            yield Served(output.text)
        finally:
            _end(process)
            output.join()
    assert "Traceback" not in output.text, output.text


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def printed(*arguments: str) -> str:
    """Run a command to its end and return what it printed."""
    return subprocess.run(
        (*_COMMAND, *arguments), capture_output=True, text=True, check=True, timeout=START_S
    ).stdout
