"""Patches: reading them, and the kinds that are not strategic."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.embedded.patches import (
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    configuration,
    decoded_yaml,
    merge,
    patched,
)
from kubesched.embedded.refusals import StatusError

JsonObject = dict[str, Any]


@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
    ],
)
def test_the_examples_of_the_standard(
    original: JsonObject, patch: JsonObject, result: JsonObject
) -> None:
    assert merge(original, patch) == result


def test_what_a_patch_does_not_touch_is_shared() -> None:
    original: JsonObject = {"a": {"b": 1}, "c": {"d": 1}}

    result = merge(original, {"a": {"b": 2}})

    assert result["c"] is original["c"]
    assert original["a"] == {"b": 1}


def test_operations_are_applied_in_order() -> None:
    body = b'[{"op":"add","path":"/a/-","value":2},{"op":"move","from":"/a","path":"/b"}]'
    original: JsonObject = {"a": [1]}

    assert patched(original, JSON_PATCH, body) == {"b": [1, 2]}
    assert original == {"a": [1]}


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        (JSON_PATCH, b"{}", 400),
        (JSON_PATCH, b"[1]", 400),
        (JSON_PATCH, b'[{"op":"remove","path":"/x"}]', 422),
        (JSON_PATCH, b'[{"op":"fly","path":"/x"}]', 422),
        (JSON_PATCH, b'[{"op":"replace","path":"","value":1}]', 422),
        (MERGE, b"[]", 400),
        (MERGE, b"{", 400),
        (STRATEGIC, b"1", 400),
    ],
)
def test_patches_that_are_refused(kind: str, body: bytes, code: int) -> None:
    with pytest.raises(StatusError) as caught:
        patched({"a": 1}, kind, body)

    assert caught.value.code == code


def test_the_selector_of_a_disruption_budget_is_replaced() -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}}
    body = b'{"spec":{"selector":{"matchLabels":{"c":"d"}}}}'

    budget = patched({"kind": "PodDisruptionBudget", "spec": spec}, STRATEGIC, body)
    other = patched({"kind": "ReplicaSet", "spec": spec}, STRATEGIC, body)

    assert budget["spec"]["selector"] == {"matchLabels": {"c": "d"}}
    assert other["spec"]["selector"] == {"matchLabels": {"a": "b", "c": "d"}}


def test_yaml_leaves_timestamps_alone() -> None:
    assert decoded_yaml(b"when: 2020-01-01T00:00:00Z\nday: 2020-01-01") == {
        "when": "2020-01-01T00:00:00Z",
        "day": "2020-01-01",
    }


@pytest.mark.parametrize("body", [b"a: [", b"- a", b"text", b""])
def test_a_configuration_is_an_object(body: bytes) -> None:
    with pytest.raises(StatusError) as caught:
        configuration(body)

    assert caught.value.code == 400
    assert "\n" not in str(caught.value)
