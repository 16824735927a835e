"""``kubesched shadow`` as a process of its own, as a user that may do nothing but look.

service account with get, list and watch ──> kubeconfig ──> run_shadow ──> findings, one a line
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubesched.bench.processes import LAUNCHER
from kubesched.kinds import watched
from tests.support.waiting import until

from .control_plane import ControlPlane, JsonObject, Process
from .scheduler_process import environment

USER = "system:serviceaccount:default:shadow"

#: What docs/shadow.md says that shadow needs.
RULES: list[JsonObject] = [
    {
        "apiGroups": [group],
        "resources": [kind.path.plural for kind in watched() if kind.path.group == group],
        "verbs": ["get", "list", "watch"],
    }
    for group in {kind.path.group: None for kind in watched()}
]


def only_looking(
    plane: ControlPlane, name: str = "shadow", rules: list[JsonObject] = RULES
) -> Path:
    """Make a user that may only look; return its kubeconfig."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    plane.request("POST", "/api/v1/namespaces/default/serviceaccounts", _named(name))
    plane.request("POST", f"{rbac}/clusterroles", {**_named(name), "rules": rules})
    binding = {
        **_named(name),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": name,
        },
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    plane.request("POST", f"{rbac}/clusterrolebindings", binding)
    path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
    token = plane.request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    config = json.loads(plane.scheduler_kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    file = plane.folder / f"{name}.kubeconfig"
    file.write_text(json.dumps(config))
    return file


def _named(name: str) -> JsonObject:
    return {"metadata": {"name": name}}


class ShadowProcess:
    """A shadow that runs, or ran, and what it wrote."""

    def __init__(self, process: Process, out: Path) -> None:
        self._process = process
        self._out = out

    @property
    def lines(self) -> list[dict[str, Any]]:
        """All that it wrote until now."""
        text = self._out.read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Its findings until now."""
        return [line for line in self.lines if line["kind"] != "Summary"]

    def wait_for(self, pods: set[str], *, seconds: float = 30) -> None:
        """Wait until it has said something about all of these pods."""
        try:
            until(
                lambda: pods <= {each["pod"] for each in self.findings}, seconds=seconds, every=0.1
            )
        except AssertionError as late:
            late.add_note(f"{len(self.findings)} findings, last: {self.lines[-1:]}")
            raise

    @property
    def pid(self) -> int:
        """The process, to be stopped and continued."""
        return self._process.popen.pid

    def text(self) -> str:
        """All that it wrote to stdout."""
        return self._out.read_text()

    def wait(self) -> int:
        """Wait until it ends by itself; return its exit code."""
        return self._process.popen.wait(30)

    def log(self) -> str:
        """All that it wrote to stderr."""
        return self._process.log.read_text(errors="replace")

    def interrupt(self) -> dict[str, Any]:
        """Press Ctrl-C; return the final summary."""
        popen = self._process.popen
        popen.send_signal(2)
        assert popen.wait(15) == 0, self._process.describe()
        final = self.lines[-1]
        assert (final["kind"], final["final"]) == ("Summary", True)
        return final


@contextlib.contextmanager
def run_shadow(plane: ControlPlane, kubeconfig: Path, *flags: str) -> Iterator[ShadowProcess]:
    """Run shadow; return once it watches."""
    name = f"shadow-{os.urandom(3).hex()}"
    out, log = plane.folder / f"{name}.out", plane.folder / f"{name}.log"
    launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid())]
    command = [sys.executable, "-W", "error", "-m", "kubesched.cli.kubesched", "shadow"]
    with out.open("wb") as sink, log.open("wb") as errors:
        popen = subprocess.Popen(
            [*launch, *command, f"--kubeconfig={kubeconfig}", "-o", "json", *flags],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=errors,
            env=environment(),
        )
    process = Process("shadow", popen, log)
    shadow = ShadowProcess(process, out)

    def watches() -> bool:
        assert popen.poll() is None, process.describe()
        return "watching https://" in shadow.log()

    try:
        until(watches, every=0.05)
        yield shadow
        assert "Traceback" not in shadow.log(), shadow.log()
    except BaseException as error:
        error.add_note(process.describe())
        raise
    finally:
        process.end(grace=5)
