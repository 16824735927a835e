"""/flagz and /statusz: text for people, objects for programs."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable

import msgspec
import pytest
import yaml

from kubesched.clock import VirtualClock
from kubesched.server import cbor
from kubesched.server.answers import ServerAnswer
from kubesched.server.request import ServerRequest
from kubesched.server.sources import StatusFinding, StatusPage
from kubesched.server.zpages import Flagz, Statusz, first_segments
from tests.support.serving import request

STARTED = 1_794_782_855.7  # 2026-11-15T22:47:35Z
RUNTIME = f"{platform.python_implementation()} {platform.python_version()}"
WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility "
    "guarantees and is for debugging purposes only."
)


def statusz(
    emulation_version: str = "1.37", *, findings: tuple[StatusFinding, ...] = (), cbor: bool = False
) -> Statusz:
    return Statusz(
        "kube-scheduler",
        StatusPage("1.37.1", emulation_version, findings),
        paths=lambda: ["/metrics", "/metrics/slis", "/healthz", "/healthz/ping"],
        started=STARTED,
        clock=VirtualClock(STARTED + 3661),
        cbor=cbor,
    )


FLAGS = {"v": "2", "config": "", "leader-elect": "true"}
PAGES: dict[str, Callable[[ServerRequest], ServerAnswer]] = {
    "Flagz": Flagz("kube-scheduler", lambda: FLAGS),
    "Statusz": statusz(),
}


def asked(kind: str, accept: str) -> ServerAnswer:
    return PAGES[kind](request(headers={"accept": accept}))


def test_flags_as_text() -> None:
    lines = asked("Flagz", "").body.decode().split("\n")

    assert lines[:3] == ["", "kube-scheduler flagz", WARNING]
    pattern = re.compile(r"config(:|: |=| )")
    match = pattern.fullmatch(lines[3])
    assert match is not None
    assert lines[4:] == [f"leader-elect{match[1]}true", f"v{match[1]}2", ""]


def test_status_as_text() -> None:
    lines = asked("Statusz", "text/plain").body.decode().split("\n")

    assert lines[:4] == ["", "kube-scheduler statusz", WARNING, ""]
    shown = [re.sub(r"^([A-Z][a-z ]*[a-z])(: |:|=| ) ", r"\1|", line) for line in lines[4:]]
    assert re.fullmatch(r"Started\|\w{3} Nov 1\d \d\d:47:35 \S+ 2026", shown[0]), shown[0]
    assert shown[1:] == [
        "Up|1 hr 01 min 01 sec",
        f"Go version|{RUNTIME}",
        "Binary version|1.37.1",
        "Emulation version|1.37",
        "Paths|/healthz /metrics",
        "",
    ]


def test_status_without_an_emulated_version() -> None:
    answer = statusz(emulation_version="")(request())

    assert "Emulation" not in answer.body.decode()


@pytest.mark.parametrize("kind", ["Flagz", "Statusz"])
@pytest.mark.parametrize("accept", ["", "*/*", "text/*", "application/json, text/plain;q=0.5"])
def test_text_is_what_everybody_else_gets(kind: str, accept: str) -> None:
    answer = asked(kind, accept)

    assert answer.code == 200
    assert answer.content_type == "text/plain; charset=utf-8"


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_an_object_if_one_is_asked_for(version: str, form: str) -> None:
    accept = f"application/{form};v={version};g=config.k8s.io;as=Statusz"
    answer = asked("Statusz", accept)

    decode = msgspec.json.decode if form == "json" else yaml.safe_load
    assert decode(answer.body) == {
        "kind": "Statusz",
        "apiVersion": f"config.k8s.io/{version}",
        "metadata": {"name": "kube-scheduler"},
        "startTime": "2026-11-15T22:47:35Z",
        "uptimeSeconds": 3661,
        "goVersion": RUNTIME,
        "binaryVersion": "1.37.1",
        "emulationVersion": "1.37",
        "paths": ["/healthz", "/metrics"],
    }
    assert answer.content_type == f"application/{form};g=config.k8s.io;v={version};as=Statusz"
    deprecated = (
        '299 - "This version of the statusz endpoint is deprecated. Please use a newer version."'
    )
    assert answer.headers == ((("warning", deprecated),) if version == "v1alpha1" else ())


def test_the_object_of_flags() -> None:
    answer = asked("Flagz", "application/json;v=v1beta1;g=config.k8s.io;as=Flagz")

    assert answer.body == (
        b'{"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":'
        b'"kube-scheduler"},"flags":{"config":"","leader-elect":"true","v":"2"}}\n'
    )


@pytest.mark.parametrize("kind", ["Flagz", "Statusz"])
@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "text/html",
        "application/json;v=v1;g=config.k8s.io;as=Statusz",
        "application/cbor;v=v1beta1;g=config.k8s.io;as=Statusz",
        "application/json;v=v1beta1;g=config.k8s.io;as=Podz",
    ],
)
def test_there_is_no_other_form(kind: str, accept: str) -> None:
    answer = asked(kind, accept)

    assert answer.code == 406
    assert msgspec.json.decode(answer.body)["message"] == (
        "only the following media types are accepted: "
        "application/json, application/yaml, text/plain"
    )


@pytest.mark.parametrize("kind", ["Flagz", "Statusz"])
def test_cbor_if_that_is_switched_on(kind: str) -> None:
    pages: dict[str, Callable[[ServerRequest], ServerAnswer]] = {
        "Flagz": Flagz("kube-scheduler", lambda: FLAGS, cbor=True),
        "Statusz": statusz(cbor=True),
    }
    accept = f"application/cbor;v=v1beta1;g=config.k8s.io;as={kind}"
    answer = pages[kind](request(headers={"accept": accept}))
    as_json = asked(kind, accept.replace("cbor", "json"))

    assert answer.content_type == f"application/cbor;g=config.k8s.io;v=v1beta1;as={kind}"
    assert answer.body == cbor.encode(msgspec.json.decode(as_json.body))

    refused = pages[kind](request(headers={"accept": "application/cbor"}))
    assert (refused.code, refused.content_type) == (406, "application/cbor")
    assert b"application/yaml, text/plain, application/cbor" in refused.body


def test_what_an_operator_should_know_stands_at_the_end() -> None:
    lines = {"wrong": ["CSINode n1: <why>", "and 3 more"], "quiet": []}
    page = statusz(
        findings=(
            StatusFinding("What is wrong", "wrong", lambda: lines["wrong"]),
            StatusFinding("What is not", "quiet", lambda: lines["quiet"]),
        )
    )
    text = page(request()).body.decode()
    assert text.endswith("\n\nWhat is wrong\n  CSINode n1: &lt;why&gt;\n  and 3 more\n")

    accept = {"accept": "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"}
    found = msgspec.json.decode(page(request(headers=accept)).body)
    assert found["kubesched"] == {"wrong": lines["wrong"]}

    lines["wrong"] = []
    assert "kubesched" not in msgspec.json.decode(page(request(headers=accept)).body)
    assert page(request()).body.decode().endswith("/healthz /metrics\n")


def test_paths_are_listed_by_their_first_segment() -> None:
    assert first_segments(["/", "/b/c", "/a", "/b"]) == ["/a", "/b"]
