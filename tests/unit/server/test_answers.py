"""Failures as Kubernetes writes them; the texts were taken from kube-scheduler."""

from __future__ import annotations

import yaml

from kubesched.server import answers
from tests.support.serving import request

FORBIDDEN = 'forbidden: User "eve" cannot get path "/metrics"'


def test_unauthorized() -> None:
    answer = answers.unauthorized(request())

    assert answer.code == 401
    assert answer.content_type == "application/json"
    assert answer.headers == ()
    assert answer.body == (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
        b'"message":"Unauthorized","reason":"Unauthorized","code":401}\n'
    )


def test_forbidden() -> None:
    answer = answers.forbidden(request(), FORBIDDEN)

    assert answer.code == 403
    assert answer.headers == (("x-content-type-options", "nosniff"),)
    assert answer.body == (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
        b'"message":"forbidden: User \\"eve\\" cannot get path \\"/metrics\\"",'
        b'"reason":"Forbidden","details":{},"code":403}\n'
    )


def test_people_get_it_indented() -> None:
    for target, agent, lines in (
        ("/", "curl/8.0", 10),
        ("/?pretty=true", "", 10),
        ("/?pretty=0", "curl/8.0", 1),
        ("/", "kube-probe/1.36", 1),
    ):
        answer = answers.forbidden(request(target, headers={"user-agent": agent}), FORBIDDEN)
        assert len(answer.body.splitlines()) == lines, (target, agent)


def test_yaml_if_asked_for() -> None:
    asked = request(headers={"accept": "application/yaml"})
    answer = answers.forbidden(asked, FORBIDDEN)

    assert answer.content_type == "application/yaml"
    assert yaml.safe_load(answer.body)["message"] == FORBIDDEN


def test_a_failure_is_told_even_if_no_form_is_acceptable() -> None:
    answer = answers.forbidden(request(headers={"accept": "text/html"}), FORBIDDEN)

    assert answer.code == 403
    assert answer.content_type == "application/json"
    assert answer.body.startswith(b'{\n  "kind": "Status",\n')


def test_nothing_looks_like_html() -> None:
    answer = answers.forbidden(request(), answers.harmless("<b>&"))

    assert b"\\u0026lt;b\\u0026gt;\\u0026amp;" in answer.body
