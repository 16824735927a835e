"""The same command line for kube-scheduler and for kubesched, and what each of them says to it."""

from __future__ import annotations

import contextlib
import logging
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from kubesched import logs
from kubesched.cli import kube_scheduler, running

from .configurations.asking import KUBECONFIG, failure


class Said(Struct, frozen=True):
    """What a run printed, and its exit code."""

    code: int
    out: str
    err: str


class Both:
    """Runs both commands in the same folder."""

    def __init__(self, binary: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._binary = binary
        self._folder = folder
        self._capsys = capsys
        (folder / "kubeconfig.yaml").write_text(KUBECONFIG)

    def real(self, *flags: str) -> Said:
        """Run kube-scheduler."""
        done = subprocess.run(
            [str(self._binary), *flags],
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def ours(self, *flags: str) -> Said:
        """Run kubesched, in this process."""
        self._capsys.readouterr()
        code = kube_scheduler.main(flags)
        said = self._capsys.readouterr()
        return Said(code, said.out, said.err)

    def real_complaint(self, *flags: str) -> str:
        """Return why kube-scheduler refuses these flags, on one line."""
        said = self.real(*flags)
        assert said.code == 1
        if found := re.search(r"^Error: (.*)\Z", said.err, re.MULTILINE | re.DOTALL):
            return found[1].strip()
        return failure(said.err) or said.err.strip()

    def our_complaint(self, *flags: str) -> str:
        """Return why kubesched refuses these flags."""
        said = self.ours(*flags)
        assert (said.code, said.out) == (1, "")
        return said.err.strip().rpartition("\n")[2].removeprefix("Error: ")


@contextlib.contextmanager
def side_by_side(
    binary: Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Both]:
    """Offer both commands; ours does not get as far as to schedule."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(running, "run", lambda _main: pytest.fail("the flags were not refused"))
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield Both(binary, folder, capsys)
    logs.shutdown()
    root.handlers = handlers
    root.setLevel(level)
