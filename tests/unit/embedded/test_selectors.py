"""Label and field selectors: what they select, and what they refuse.

The refusals' words are compared with kube-apiserver's by the contract tests.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.embedded.resources import EVENTS, NEW_EVENTS, NODES, PODS
from kubesched.embedded.selectors import parse_fields, parse_labels
from kubesched.errors import SelectorError

LABELS = {"app": "web", "tier": "2", "empty": ""}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "app",
        "app=web",
        "app==web",
        "app!=db",
        "missing!=x",
        "app in (web, db)",
        "app notin (db)",
        "missing notin (x)",
        "!missing",
        "tier>1",
        "tier<3",
        "empty=",
        "empty in ()",
        "empty in (,)",
        "app=web,tier=2,!missing",
        " app = web , tier ",
    ],
)
def test_selected(text: str) -> None:
    assert parse_labels(text).matches(LABELS)


@pytest.mark.parametrize(
    "text",
    [
        "missing",
        "!app",
        "app=db",
        "app!=web",
        "app in (db)",
        "app notin (web)",
        "missing in (x)",
        "tier>2",
        "tier<2",
        "app>1",
        "missing>1",
        "app=web,missing",
    ],
)
def test_not_selected(text: str) -> None:
    assert not parse_labels(text).matches(LABELS)


@pytest.mark.parametrize(
    "text",
    [
        ",",
        "a,",
        "a=b=c",
        "a in",
        "a in b",
        "a in (",
        "a in (b",
        "a in (b c)",
        "a in (=)",
        "=a",
        "!",
        "!=a",
        "a!b",
        "a b",
        "a>b",
        "a=b c",
        "-a",
        "a/b/c",
        "a=-",
        "a<9223372036854775808",
        "\xa0",
        "app=web\x0b",
        f"tier>{'9' * 5000}",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_labels(text)


@given(st.text(alphabet="ab=!<>(),in \t/", max_size=12))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    refusal = ""
    try:
        parse_labels(text).matches({"a": "b"})
    except SelectorError as error:
        refusal = str(error)

    assert "\n" not in refusal


def fields(text: str, **values: str) -> bool:
    known = {name.replace("_", "."): value for name, value in values.items()}
    return parse_fields(text, lambda name: name).matches(lambda name: known.get(name, ""))


def test_fields_are_compared() -> None:
    assert fields("a.b=x", a_b="x")
    assert fields("a.b==x", a_b="x")
    assert fields("a.b!=y,c=z", a_b="x", c="z")
    assert fields("a.b=")
    assert not fields("a.b!=x", a_b="x")
    assert not fields("a.b=x,c=y", a_b="x", c="z")


def test_a_value_can_be_escaped() -> None:
    assert fields(r"a=x\,y\=z\\", a="x,y=z\\")


@pytest.mark.parametrize("text", ["a", "a=b=c", r"a=\x", "a=b\\"])
def test_fields_that_cannot_be_read(text: str) -> None:
    with pytest.raises(SelectorError):
        fields(text)


def test_the_one_value_a_field_must_have() -> None:
    selector = parse_fields("metadata.name=x,spec.nodeName!=y", PODS.field_name)

    assert selector.exact("metadata.name") == "x"
    assert selector.exact("spec.nodeName") is None


def test_fields_have_other_names_in_other_apis() -> None:
    assert PODS.field_name("spec.host") == "spec.nodeName"
    assert NEW_EVENTS.field_name("regarding.name") == "involvedObject.name"
    with pytest.raises(SelectorError, match=r"field label not supported: regarding\.name"):
        EVENTS.field_name("regarding.name")


def test_fields_are_read_with_their_defaults() -> None:
    pod = {"metadata": {"name": "x"}, "spec": {}, "status": {"podIPs": [{"ip": "10.0.0.1"}]}}

    assert PODS.field_reader("spec.hostNetwork")(pod) == "false"
    assert PODS.field_reader("status.podIP")(pod) == "10.0.0.1"
    assert PODS.field_reader("spec.nodeName")(pod) == ""
    assert NODES.field_reader("spec.unschedulable")({"spec": {"unschedulable": True}}) == "true"
