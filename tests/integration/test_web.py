"""The web page with a real API server behind it: who may see it, and what they see.

TokenReview and SubjectAccessReview are made by kube-apiserver, for a scheduler that schedules what
kube-apiserver holds; changes that the page suggests are applied with kubectl.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from kubesched.bench.processes import LAUNCHER, free_ports
from tests.support.waiting import until

from .audited_plane import AuditedPlane
from .control_plane import ControlPlane, JsonObject, Process
from .scheduler_process import environment, node, node_of, pod, pods_path, run_scheduler
from .serving_callers import LOOPBACK, Caller, Callers, Reply, connect
from .shadow_process import RULES, only_looking

RBAC = "/apis/rbac.authorization.k8s.io/v1"
WHAT_IF = "/ui/api/what-if"

#: Everything that the page can be asked for.
PATHS = (
    "/ui",
    "/ui/",
    "/ui/index.html",
    "/ui/nothing.js",
    "/ui/api/overview",
    "/ui/api/nodes",
    "/ui/api/nodes/secret-node",
    "/ui/api/queue",
    "/ui/api/pods?search=secret",
    "/ui/api/pods/{namespace}/secret-pod/explanation",
    "/ui/api/stream",
    "/ui/api/nothing",
    "/ui/%2e%2e/metrics",
)
TAINT = {"key": "example.com/reserved", "value": "yes", "effect": "NoSchedule"}
REFUSED = ("wrong token", "proxy for nobody", "unknown proxy")
POWERLESS = (
    "anonymous",
    "token without rights",
    "certificate without rights",
    "proxy without rights",
    "headers without a proxy",
    "monitoring token",
    "monitoring certificate",
)


@pytest.fixture
def callers(control_plane: ControlPlane, namespace: str) -> Iterator[Callers]:
    with Callers(control_plane, namespace) as all_of_them:
        yield all_of_them


@pytest.fixture
def port(
    control_plane: ControlPlane, namespace: str, callers: Callers, clean_cluster: None
) -> Iterator[int]:
    """The port of a scheduler with a page, in a cluster with a secret."""
    control_plane.request("POST", "/api/v1/nodes", node("secret-node", taints=[TAINT]))
    waiting = pod("secret-pod", requests={"cpu": "1"})
    control_plane.request("POST", pods_path(namespace), waiting)
    with serving(control_plane, "--web-ui") as chosen:
        until(lambda: ask(chosen, callers, "admin token", "/ui/api/queue").code == 200)
        yield chosen


@contextlib.contextmanager
def serving(plane: ControlPlane, *flags: str) -> Iterator[int]:
    """Run a scheduler whose port is served; yields the port."""
    (port,) = free_ports(1)
    with run_scheduler(
        plane,
        None,
        f"--secure-port={port}",
        f"--bind-address={LOOPBACK}",
        f"--authentication-kubeconfig={plane.scheduler_kubeconfig}",
        f"--authorization-kubeconfig={plane.scheduler_kubeconfig}",
        *flags,
    ) as scheduler:
        scheduler.wait_until_scheduling()
        yield port


def ask(
    port: int,
    callers: Callers,
    caller: str,
    path: str,
    *,
    question: JsonObject | None = None,
) -> Reply:
    """Get something as somebody, or post a question; of a stream only its beginning is read."""
    who = callers.by_name[caller]
    headers = {**who.headers, "Connection": "close"}
    if who.token:
        headers["Authorization"] = f"Bearer {who.token}"
    data = None
    if question is not None:
        headers["Content-Type"], data = "application/json", json.dumps(question)
    connection = connect(port, who.certificate)
    try:
        method = "GET" if question is None else "POST"
        connection.request(method, path, body=data, headers=headers)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        endless = found.get("content-type") == "text/event-stream"
        text = answer.read1(2000) if endless else answer.read()
        return Reply(answer.status, found, text.decode(errors="replace"))
    finally:
        connection.close()


@pytest.fixture
def viewers(control_plane: ControlPlane, namespace: str, callers: Callers) -> Iterator[None]:
    """Two more callers: one who may look, and one who may also ask what if."""
    created = []
    for name, verbs in (("looks", ["get"]), ("asks", ["get", "post"])):
        role = f"page-{name}-{secrets.token_hex(3)}"
        rules = [{"nonResourceURLs": ["/ui", "/ui/*"], "verbs": verbs}]
        metadata = {"metadata": {"name": role}}
        control_plane.request("POST", f"{RBAC}/clusterroles", {**metadata, "rules": rules})
        callers.by_name[name] = Caller(token=callers._service_account(name))
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        binding = {**metadata, "subjects": [subject], "roleRef": reference}
        control_plane.request("POST", f"{RBAC}/clusterrolebindings", binding)
        created.append(role)
    yield
    for role in created:
        for kind in ("clusterrolebindings", "clusterroles"):
            control_plane.request("DELETE", f"{RBAC}/{kind}/{role}")


def test_who_may_not_sees_nothing(callers: Callers, port: int, namespace: str) -> None:
    for who in (*REFUSED, *POWERLESS):
        wanted = 401 if who in REFUSED else 403
        for path in PATHS:
            reply = ask(port, callers, who, path.format(namespace=namespace))
            assert reply.code == wanted, (who, path)
            for secret in ("secret-node", "secret-pod", "<html", "example.com/reserved"):
                named = path.format(namespace=namespace)
                assert secret not in reply.body.replace(named, ""), (who, path)
        body = {"kind": "loss", "node": "secret-node"}
        assert ask(port, callers, who, WHAT_IF, question=body).code == wanted, who


@pytest.mark.usefixtures("viewers")
def test_who_may_sees_what_they_may(callers: Callers, port: int, namespace: str) -> None:
    until(lambda: ask(port, callers, "asks", "/ui/api/overview").code == 200)
    until(lambda: ask(port, callers, "looks", "/ui/api/overview").code == 200)
    for who in ("looks", "asks", "admin token", "masters' certificate"):
        codes = {path: ask(port, callers, who, path.format(namespace=namespace)) for path in PATHS}
        assert {path: reply.code for path, reply in codes.items()} == {
            **dict.fromkeys(PATHS, 200),
            "/ui": 308,
            "/ui/nothing.js": 404,
            "/ui/api/nothing": 404,
            "/ui/%2e%2e/metrics": 404,
        }, who
        for path, reply in codes.items():
            assert "default-src 'none'" in reply.headers["content-security-policy"], path
            assert reply.headers["cache-control"] == "no-store", path
        assert codes["/ui/api/stream"].headers["content-type"] == "text/event-stream"
    body = {"kind": "loss", "node": "secret-node"}
    assert ask(port, callers, "looks", WHAT_IF, question=body).code == 403
    reply = ask(port, callers, "asks", WHAT_IF, question=body)
    assert (reply.code, json.loads(reply.body)["displaced"]) == (200, 0)


def test_rights_to_the_page_are_rights_to_nothing_else(
    callers: Callers, port: int, viewers: None
) -> None:
    until(lambda: ask(port, callers, "asks", "/ui/api/overview").code == 200)

    for path in ("/metrics", "/configz", "/flagz", "/debug/pprof/"):
        assert ask(port, callers, "asks", path).code == 403


def test_the_suggested_change_applied_with_kubectl_places_the_pod(
    control_plane: ControlPlane, callers: Callers, port: int, namespace: str
) -> None:
    def told(path: str) -> Any:
        return json.loads(ask(port, callers, "admin token", path).body)

    until(lambda: told("/ui/api/overview")["pods"]["unschedulable"] == 1)
    (waiting,) = told("/ui/api/queue")["pods"]
    assert waiting["plugins"] == ["TaintToleration"]
    until(lambda: "untolerated taint" in told("/ui/api/queue")["pods"][0]["message"])
    explained = told(f"/ui/api/pods/{namespace}/secret-pod/explanation")
    change = next(each for each in explained["changes"] if each["kind"] == "tolerate")

    [command] = change["commands"]
    control_plane.kubectl(*shlex.split(command)[1:])

    until(lambda: node_of(control_plane, namespace, "secret-pod") == "secret-node")
    until(lambda: told("/ui/api/overview")["pods"]["placed"] == 1)
    assert told("/ui/api/nodes")["pods"] == [1]
    assert told("/ui/api/queue")["pods"] == []


def test_without_the_flag_there_is_no_page(
    control_plane: ControlPlane, callers: Callers, clean_cluster: None
) -> None:
    with serving(control_plane) as port:
        for path in ("/ui", "/ui/", "/ui/api/overview"):
            assert ask(port, callers, "admin token", path).code == 404


def test_a_page_that_watches_does_not_keep_the_scheduler_from_ending(
    control_plane: ControlPlane, callers: Callers, clean_cluster: None
) -> None:
    with contextlib.ExitStack() as afterwards:
        with serving(control_plane, "--web-ui") as port:
            token = callers.by_name["admin token"].token
            connection = connect(port)
            afterwards.callback(connection.close)
            headers = {"Authorization": f"Bearer {token}"}
            connection.request("GET", "/ui/api/stream", headers=headers)
            answer = afterwards.enter_context(connection.getresponse())
            assert b"retry" in answer.read1(100)
            began = time.monotonic()
        # That it ended with code 0, `serving` has seen to.
        assert time.monotonic() - began < 4


# --- kubesched ui -----------------------------------------------------------------------------


@contextlib.contextmanager
def run_command(folder: Path, *arguments: str, seconds: float = 60) -> Iterator[str]:
    """Run ``kubesched`` until the test is done; yields what it printed up to its last line."""
    log = folder / f"kubesched-{secrets.token_hex(3)}.log"
    launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid())]
    command = [sys.executable, "-W", "error", "-m", "kubesched.cli.kubesched", *arguments]
    with log.open("wb") as sink:
        popen = subprocess.Popen(
            [*launch, *command],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env=environment(),
        )
    process = Process("kubesched", popen, log)
    try:
        until(lambda: "Ctrl-C" in log.read_text() or popen.poll() is not None, seconds=seconds)
        assert "token=" in log.read_text(), log.read_text()
        yield log.read_text()
        popen.terminate()
        assert popen.wait(15) == 0
        assert "Traceback" not in log.read_text()
    finally:
        process.end()


@contextlib.contextmanager
def run_ui(folder: Path, *flags: str) -> Iterator[str]:
    """Run ``kubesched ui``; yields the printed address."""
    with run_command(folder, "ui", "--no-browser", *flags) as printed:
        yield address(printed)


def address(printed: str) -> str:
    """The address that was printed."""
    return next(line.strip() for line in printed.splitlines() if "token=" in line)


def get(url: str, path: str) -> Any:
    """Ask a page on loopback, with its token."""
    base, _, token = url.partition("/ui/?token=")
    host = base.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=20)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_a_live_cluster_is_shown_and_never_written_to(assets: Path) -> None:
    with AuditedPlane(assets) as plane:
        plane.request("POST", "/api/v1/nodes", node("n1", allocatable={"cpu": "2"}))
        for name, cpu in (("small", "1"), ("large", "9")):
            plane.request("POST", pods_path("default"), pod(name, requests={"cpu": cpu}))
        kubeconfig = only_looking(plane, "page", RULES)
        with plane.run_kube_scheduler(), run_ui(plane.folder, f"--kubeconfig={kubeconfig}") as url:
            until(lambda: get(url, "/ui/api/overview")["pods"]["placed"] == 1)
            until(lambda: get(url, "/ui/api/overview")["pods"]["unschedulable"] == 1)
            (large,) = get(url, "/ui/api/queue")["pods"]
            assert large["plugins"] == ["NodeResourcesFit"]
            told = get(url, "/ui/api/pods/default/large/explanation")
            # Ours, and the real one's: the same words.
            assert told["message"] == large["message"]
            assert get(url, "/ui/api/nodes/n1")["pods"][0]["name"] == "small"

        asked = plane.requests_of("system:serviceaccount:default:page")
        assert {"list", "watch"} <= {each.verb for each in asked}
        assert {each.verb for each in asked} <= {"get", "list", "watch"}


def test_a_new_user_sees_why_a_pod_waits_and_makes_it_run(assets: Path, tmp_path: Path) -> None:
    """Demo, page, suggested change, kubectl, and the page shows that it runs."""
    with run_command(tmp_path, "demo", "--nodes=30", "--pods=300", "--keep") as printed:
        url = address(printed)
        kubeconfig = next(
            line.rpartition("=")[2] for line in printed.splitlines() if "export KUBECONFIG" in line
        )

        def kubectl(*arguments: str, given: str = "") -> str:
            command = [str(assets / "kubectl"), f"--kubeconfig={kubeconfig}", *arguments]
            environ = {**os.environ, "HOME": str(tmp_path)}
            return subprocess.run(
                command, input=given, capture_output=True, text=True, check=True, env=environ
            ).stdout

        assert get(url, "/ui/api/overview")["title"] == "demo, 30 nodes"
        waiting = get(url, "/ui/api/queue")["pods"]
        name = next(each["name"] for each in waiting if each["name"].startswith("oversized"))
        told = get(url, f"/ui/api/pods/default/{name}/explanation")
        assert "Insufficient cpu" in told["message"]
        change = next(each for each in told["changes"] if each["kind"] == "request")

        # What a pod requests cannot be changed while it waits: it is replaced.
        manifest = json.loads(kubectl("get", "pod", name, "-o=json"))
        changed = jsonpatch.apply_patch(manifest, change["patch"])
        kubectl("replace", "--force", "-f=-", given=json.dumps(changed))

        def is_placed() -> bool:
            (found,) = get(url, f"/ui/api/pods?search=default/{name}")["pods"] or [{"node": ""}]
            return found["node"] in change["examples"]

        until(is_placed)
        until(lambda: "Running" in kubectl("get", "pod", name))
        assert name not in {each["name"] for each in get(url, "/ui/api/queue")["pods"]}
