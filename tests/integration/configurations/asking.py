"""Asking both schedulers about a configuration: what they would run with, or why they would not."""

from __future__ import annotations

import errno
import json
import re
import subprocess
from pathlib import Path

from msgspec import Struct

from kubesched.cli.options import make_options
from kubesched.config import encoding
from kubesched.config.building import as_built
from kubesched.errors import KubeschedError
from tests.support.configuration_tables import IN_TREE_POINTS

from .case import Case, Words

#: A server that is never asked anything: without one, kube-scheduler does not build profiles.
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: none, context: {cluster: none}}]
current-context: none
"""

_FLAGS = ("--secure-port=0", "--config=config.yaml", "--write-config-to=out.yaml")
_ON_A_LINE = re.compile(r'"command failed" err=("(?:[^"\\]|\\.)*")$', re.MULTILINE)
_ON_SEVERAL = re.compile(r'"command failed" err=<\n(.*?)\n >', re.DOTALL)


class Answer(Struct, frozen=True):
    """What is written with --write-config-to, or else the reason why nothing is."""

    written: str = ""
    error: str = ""

    def compared(self, words: Words) -> tuple[str, object]:
        """Return what of the answer is compared."""
        match words:
            case Words.SAME:
                return self.written, self.error
            case Words.ANY_ORDER:
                return self.written, sorted(self.error.strip("[]").split(", "))
            case Words.ANY:
                return self.written, bool(self.error)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command; virtual machines that are short of memory need a second try now and then."""
    for tries_left in (2, 1, 0):
        try:
            return subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
            )
        except OSError as failed:
            if failed.errno != errno.EFAULT or not tries_left:
                raise
    raise AssertionError("unreachable")


def kube_scheduler_says(binary: Path, folder: Path, asked: Case) -> Answer:
    """Ask kube-scheduler."""
    (folder / "kubeconfig.yaml").write_text(KUBECONFIG)
    (folder / "config.yaml").write_text(asked.text)
    done = _run([str(binary), *_FLAGS, *asked.flags], folder)
    out = folder / "out.yaml"
    if out.exists():
        return Answer(written=out.read_text())
    error = failure(done.stderr)
    assert error, f"kube-scheduler neither wrote nor refused it:\n{done.stderr}"
    return Answer(error=error)


def kubesched_says(folder: Path, asked: Case) -> Answer:
    """Ask kubesched, with all plugins that kube-scheduler has."""
    file = folder / "config.yaml"
    file.write_text(asked.text)
    try:
        options = make_options([*_FLAGS, f"--config={file}", *asked.flags])
        return Answer(written=encoding.to_yaml(as_built(options.config, IN_TREE_POINTS)))
    except KubeschedError as refused:
        # What kubesched adds is advice, and not part of the answer.
        said = str(refused).partition("; 'kubesched config convert ")[0]
        return Answer(error=said.removeprefix(f"{file}: "))


def failure(log: str) -> str:
    """Find in a log of kube-scheduler what made it give up, and put that on one line."""
    if found := _ON_A_LINE.search(log):
        return str(json.loads(found[1].replace("\\x", "\\u00")))
    several = _ON_SEVERAL.search(log)
    return " ".join(line.strip() for line in several[1].split("\n")) if several else ""
