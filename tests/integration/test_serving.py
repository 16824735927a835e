"""The HTTPS endpoints with a real API server behind them: every sort of caller on every path.

TokenReview and SubjectAccessReview are made by kube-apiserver, and what must come out is what the
real kube-scheduler, with the same flags and asked the same, answers at the same time.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import pytest
import trustme
from msgspec.structs import replace

from kubesched.bench.processes import free_ports
from kubesched.server.sources import HealthCheck, MetricsPage, Sources, StatusPage
from tests.support.waiting import until

from .control_plane import ControlPlane
from .serving_callers import LOOPBACK, Callers, Reply, serve_endpoints

SOURCES = Sources(
    readyz=(
        HealthCheck("shutdown", lambda: None),
        HealthCheck("sched-handler-sync", lambda: None),
    ),
    metrics=MetricsPage(lambda: b"up 1\n", lambda: None),
    resource_metrics=MetricsPage(lambda: b""),
    sli_metrics=MetricsPage(lambda: b"", lambda: None),
    configuration=lambda: b'{"kind":"KubeSchedulerConfiguration"}',
    flags=lambda: {"v": "0"},
    status=StatusPage("1.37.1", "1.37"),
    set_verbosity=lambda _level: None,
    profiling=True,
)

#: What everybody may see who is not refused for who they are.
OPEN = ("/healthz", "/livez", "/readyz", "/healthz?verbose", "/readyz?verbose&exclude=shutdown")
#: What Kubernetes' own role for monitoring lets one see.
MONITORED = (
    "/healthz/ping",
    "/livez/ping",
    "/readyz/shutdown",
    "/readyz/sched-handler-sync",
    "/metrics",
    "/metrics/slis",
    "/flagz",
    "/statusz",
)
#: The rest, with what somebody who may everything gets.
PRIVILEGED = {
    "/metrics/resources": 200,
    "/configz": 200,
    "/debug/pprof": 302,
    "/debug/pprof/": 200,
    "/debug/pprof/goroutine": 200,
    "/debug/pprof/heap": 200,
    "/debug/pprof/profile?seconds=1": 200,
    "/debug/pprof/nothing": 404,
    "/debug/flags": 200,
    "/debug/flags/": 200,
    "/debug/flags/v": 406,
    "/metrics/": 404,
    "/nothing": 404,
    "/": 404,
    "/debug": 404,
}

REFUSED = ("wrong token", "proxy for nobody", "unknown proxy")
POWERLESS = (
    "anonymous",
    "token without rights",
    "certificate without rights",
    "proxy without rights",
    "headers without a proxy",
)
MONITORS = ("monitoring token", "monitoring certificate", "monitoring proxy")
MASTERS = ("admin token", "masters' certificate", "masters' proxy")

EVERY_PATH = (*OPEN, *MONITORED, *PRIVILEGED)


def expected(caller: str, path: str) -> int:
    """What a caller gets on a path."""
    if caller in REFUSED:
        return 401
    if path in OPEN:
        return 200
    if caller in MASTERS:
        return PRIVILEGED.get(path, 200)
    return 200 if caller in MONITORS and path in MONITORED else 403


@pytest.fixture
def callers(control_plane: ControlPlane, namespace: str) -> Iterator[Callers]:
    with Callers(control_plane, namespace) as all_of_them:
        yield all_of_them


@pytest.fixture
def port(control_plane: ControlPlane, callers: Callers) -> Iterator[int]:
    with serve_endpoints(control_plane, SOURCES) as ours:
        yield ours


@pytest.fixture
def real_port(control_plane: ControlPlane, callers: Callers) -> Iterator[int]:
    """The port of a real kube-scheduler."""
    with serve_real_endpoints(control_plane, callers) as port:
        yield port


@contextlib.contextmanager
def serve_real_endpoints(
    control_plane: ControlPlane, callers: Callers, *more_flags: str
) -> Iterator[int]:
    """Run a real kube-scheduler; yields its port."""
    (port,) = free_ports(1)
    kubeconfig = control_plane.scheduler_kubeconfig
    flags = (
        f"--secure-port={port}",
        f"--bind-address={LOOPBACK}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        *more_flags,
    )

    def ready() -> bool:
        callers.hang_up()
        try:
            known = callers.ask(port, "masters' certificate", "/readyz/shutdown").code == 200
            return known and callers.ask(port, "anonymous", "/readyz").code == 200
        except OSError:
            return False

    with control_plane.run_kube_scheduler(None, *flags):
        until(ready)
        yield port


def test_the_table_has_every_caller(callers: Callers) -> None:
    assert {*REFUSED, *POWERLESS, *MONITORS, *MASTERS} == set(callers.by_name)


def test_every_caller_on_every_path(callers: Callers, port: int, real_port: int) -> None:
    for who in callers.by_name:
        wanted = {path: expected(who, path) for path in EVERY_PATH}
        ours = {path: callers.ask(port, who, path).code for path in EVERY_PATH}
        theirs = {path: callers.ask(real_port, who, path).code for path in EVERY_PATH}
        assert ours == wanted, who
        assert theirs == wanted, who


#: (caller, method, path, Accept) whose whole answers must be the same.
WORD_FOR_WORD = [
    ("anonymous", "GET", "/healthz", ""),
    ("anonymous", "GET", "/healthz?verbose", ""),
    ("anonymous", "GET", '/livez?verbose&exclude=a"b&exclude=%3C', ""),
    ("anonymous", "GET", "/readyz?verbose&exclude=shutdown", ""),
    ("anonymous", "HEAD", "/readyz", ""),
    ("anonymous", "POST", "/livez", ""),
    ("anonymous", "GET", "/metrics", ""),
    ("anonymous", "GET", "/metrics", "application/yaml"),
    ("anonymous", "GET", "/metrics", "text/html"),
    ("anonymous", "GET", "/metrics", "application/openmetrics-text;version=1.0.0,*/*;q=0.1"),
    ("anonymous", "GET", "/metrics?pretty=true", ""),
    ("anonymous", "PUT", "/debug/flags/v", ""),
    ("anonymous", "GET", "/a%3Cb%3E%26%22%20%01%C3%A9?x=y", ""),
    ("wrong token", "GET", "/metrics", ""),
    ("wrong token", "GET", "/metrics", "application/yaml"),
    ("proxy without rights", "GET", "/configz", ""),
    ("admin token", "GET", "/healthz/ping", ""),
    ("admin token", "GET", "/readyz/sched-handler-sync", ""),
    ("admin token", "DELETE", "/metrics", ""),
    ("admin token", "DELETE", "/metrics/slis", ""),
    ("admin token", "GET", "/nothing", ""),
    ("admin token", "GET", "/debug/pprof", ""),
    ("admin token", "GET", "/debug/flags/", ""),
    ("admin token", "GET", "/debug/flags/v", ""),
    ("admin token", "PUT", "/debug/flags/v", ""),
    ("admin token", "GET", "/flagz", "application/json"),
    ("admin token", "GET", "/statusz", "image/png"),
    ("admin token", "GET", "/statusz", "application/cbor"),
    ("admin token", "GET", "/flagz", "application/cbor;v=v1beta1;g=config.k8s.io;as=Flagz"),
]


def test_kube_scheduler_answers_word_for_word(callers: Callers, port: int, real_port: int) -> None:
    for who, method, path, accept in WORD_FOR_WORD:
        ours, theirs = (
            callers.ask(each, who, path, method, accept=accept) for each in (port, real_port)
        )
        shown = (who, method, path, accept)
        assert (ours.code, ours.body) == (theirs.code, theirs.body), shown
        for name in ("content-type", "cache-control", "x-content-type-options", "location"):
            assert ours.headers.get(name) == theirs.headers.get(name), (shown, name)


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize("kind", ["Flagz", "Statusz"])
def test_kube_scheduler_describes_itself_in_the_same_form(
    callers: Callers, port: int, real_port: int, kind: str, version: str
) -> None:
    path = f"/{kind.lower()}"
    for form in ("json", "yaml"):
        accept = f"application/{form};v={version};g=config.k8s.io;as={kind}"
        ours, theirs = (
            callers.ask(each, "admin token", path, accept=accept) for each in (port, real_port)
        )
        for name in ("content-type", "warning"):
            assert ours.headers.get(name) == theirs.headers.get(name)
    assert _keys(ours.body) == _keys(theirs.body)


def _keys(document: str) -> list[str]:
    """The top-level keys of a YAML document."""
    return [line.partition(":")[0] for line in document.splitlines() if line[:1].isalpha()]


#: (path, Accept) of which one or the other answers differ with CBOR
IN_CBOR = [
    ("/flagz", "application/cbor;v=v1beta1;g=config.k8s.io;as=Flagz"),
    ("/statusz", "application/cbor;v=v1beta1;g=config.k8s.io;as=Statusz"),
    ("/statusz", "application/cbor;v=v1alpha1;g=config.k8s.io;as=Statusz"),
    ("/statusz", "application/cbor"),
    ("/statusz", "image/png"),
    ("/flagz", "application/json"),
    ("/flagz", "application/*;v=v1beta1;g=config.k8s.io;as=Flagz"),
]


def test_with_its_gate_kube_scheduler_speaks_the_same_cbor(
    callers: Callers, control_plane: ControlPlane
) -> None:
    gate = "--feature-gates=CBORServingAndStorage=true"
    with (
        serve_endpoints(control_plane, replace(SOURCES, cbor=True)) as port,
        serve_real_endpoints(control_plane, callers, gate) as real,
    ):
        for path, accept in IN_CBOR:
            ours, theirs = (
                callers.ask(each, "admin token", path, accept=accept) for each in (port, real)
            )
            assert ours.code == theirs.code, (path, accept)
            for name in ("content-type", "warning", "x-content-type-options"):
                assert ours.headers.get(name) == theirs.headers.get(name), (path, accept, name)
            if "cbor" in theirs.headers["content-type"]:
                assert_same_form(ours, theirs)


def assert_same_form(ours: Reply, theirs: Reply) -> None:
    """Compare documents in CBOR."""
    # Go shuffles the keys, and what they hold is each program's own.
    said, wanted = decode_cbor(ours.content), decode_cbor(theirs.content)
    assert {key: type(value) for key, value in said.items()} == {
        key: type(value) for key, value in wanted.items()
    }
    for key in (b"kind", b"apiVersion", b"metadata", b"message", b"reason", b"code"):
        assert said.get(key) == wanted.get(key), key


def decode_cbor(document: bytes) -> Any:
    """Decode a document of Kubernetes; text is bytes, as it stands there."""
    stream = io.BytesIO(document)
    assert stream.read(3) == b"\xd9\xd9\xf7"

    def item() -> Any:
        (first,) = stream.read(1)
        major, number = first >> 5, first & 31
        if major == 7:
            return {20: False, 21: True, 22: None}[number]
        if number > 23:
            number = int.from_bytes(stream.read(1 << (number - 24)))
        match major:
            case 0:
                return number
            case 1:
                return -1 - number
            case 2:
                return stream.read(number)
            case 4:
                return [item() for _ in range(number)]
            case 5:
                return {item(): item() for _ in range(number)}
        raise AssertionError(f"major type {major}")

    decoded = item()
    assert stream.read() == b""
    return decoded


def test_authorities_that_are_replaced_are_followed(callers: Callers, port: int) -> None:
    def code() -> int:
        callers.hang_up()
        try:
            return callers.ask(port, "masters' certificate", "/metrics").code
        except OSError:  # TLS does not let it in at all
            return 0

    assert code() == 200

    callers.publish(trustme.CA(), callers.proxy_authority)
    until(lambda: code() == 0, seconds=10)

    callers.publish(callers.client_authority, callers.proxy_authority)
    until(lambda: code() == 200, seconds=10)


def test_a_connection_ends_to_count_with_its_authority(callers: Callers, port: int) -> None:
    """Even one that was there before."""

    def code() -> int:
        return callers.ask(port, "masters' certificate", "/metrics").code

    assert code() == 200

    callers.publish(trustme.CA(), callers.proxy_authority)
    until(lambda: code() == 401, seconds=10)
