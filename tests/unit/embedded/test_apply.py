"""Server-side apply: sets of fields, and what follows from them."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.embedded.apply import Manager, apply, fields_of
from kubesched.embedded.refusals import StatusError

JsonObject = dict[str, Any]

ME, YOU = Manager("me", "v1"), Manager("you", "v1")


def applied(live: JsonObject, by: Manager, *, force: bool = False, **fields: Any) -> JsonObject:
    return apply(live, {"metadata": {"name": "x"}, **fields}, by, force=force, now="now")


def owners(obj: JsonObject) -> dict[str, JsonObject]:
    return {e["manager"]: e["fieldsV1"] for e in obj["metadata"]["managedFields"]}


def test_the_fields_of_a_configuration() -> None:
    spec = {
        "replicas": 2,
        "nothing": None,
        "containers": [{"name": "c", "args": ["a"], "ports": [{"containerPort": 80}]}],
    }
    meta = {"name": "x", "uid": "u", "labels": {"a": "b"}, "finalizers": ["f"]}

    assert fields_of({"metadata": meta, "spec": spec}) == {
        "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {'v:"f"': {}}},
        "f:spec": {
            "f:replicas": {},
            "f:containers": {
                'k:{"name":"c"}': {
                    ".": {},
                    "f:name": {},
                    "f:args": {},
                    "f:ports": {
                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                    },
                }
            },
        },
    }


def test_system_fields_belong_to_nobody() -> None:
    assert fields_of({"metadata": {"name": "x", "resourceVersion": "1"}}) == {}


def test_an_entry_is_kept_for_each_manager() -> None:
    live = applied(applied({}, ME, data={"a": "1"}), YOU, data={"b": "2"})

    assert live["data"] == {"a": "1", "b": "2"}
    assert owners(live) == {
        "me": {"f:data": {"f:a": {}}},
        "you": {"f:data": {"f:b": {}}},
    }


def test_what_is_applied_no_more_is_removed() -> None:
    live = applied({}, ME, data={"a": "1", "b": "1"}, extra={"deep": {"er": 1}})

    live = applied(live, ME, data={"b": "1"})

    assert live["data"] == {"b": "1"}
    assert "extra" not in live


def test_what_another_applies_too_stays() -> None:
    live = applied(applied({}, ME, data={"a": "1"}), YOU, data={"a": "1"})

    live = applied(live, ME)

    assert live["data"] == {"a": "1"}
    assert owners(live).keys() == {"you"}


def test_an_item_that_is_applied_no_more_goes_with_its_defaults() -> None:
    live = applied({}, ME, containers=[{"name": "a"}, {"name": "b"}])
    live["containers"] = [{**each, "defaulted": True} for each in live["containers"]]

    live = applied(live, ME, containers=[{"name": "a"}])

    assert live["containers"] == [{"name": "a", "defaulted": True}]


def test_an_item_of_another_loses_only_own_fields() -> None:
    live = applied({}, ME, containers=[{"name": "a", "image": "1", "tty": True}])
    live = applied(live, YOU, containers=[{"name": "a", "stdin": True}])

    live = applied(live, ME, containers=[])

    assert live["containers"] == [{"name": "a", "stdin": True}]


def test_members_of_a_set() -> None:
    def meta(*finalizers: str) -> JsonObject:
        return {"metadata": {"name": "x", "finalizers": list(finalizers)}}

    live = apply({}, meta("a", "b"), ME, force=False, now="now")
    live = apply(live, meta("c"), YOU, force=False, now="now")
    live = apply(live, meta("b"), ME, force=False, now="now")

    assert live["metadata"]["finalizers"] == ["b", "c"]


def test_another_value_is_a_conflict() -> None:
    live = applied({}, ME, spec={"containers": [{"name": "a", "image": "1"}], "replicas": 1})

    with pytest.raises(StatusError) as caught:
        applied(live, YOU, spec={"containers": [{"name": "a", "image": "2"}], "replicas": 2})

    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert str(caught.value) == (
        'Apply failed with 2 conflicts: conflict with "me":\n'
        '- .spec.containers[name="a"].image\n'
        "- .spec.replicas"
    )
    assert caught.value.details is not None
    assert caught.value.details["causes"][1] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "me"',
        "field": ".spec.replicas",
    }


def test_force_changes_the_owner() -> None:
    live = applied({}, ME, data={"a": "1", "b": "1"})

    live = applied(live, YOU, force=True, data={"a": "2"})

    assert live["data"] == {"a": "2", "b": "1"}
    assert owners(live) == {"me": {"f:data": {"f:b": {}}}, "you": {"f:data": {"f:a": {}}}}


def test_the_status_has_managers_of_its_own() -> None:
    live = applied({}, ME, spec={"a": 1})

    live = apply(live, {"status": {"b": 1}}, Manager("me", "v1", "status"), force=False, now="now")

    entries = live["metadata"]["managedFields"]
    assert [(e.get("subresource", ""), e["fieldsV1"]) for e in entries] == [
        ("status", {"f:status": {"f:b": {}}}),
        ("", {"f:spec": {"f:a": {}}}),
    ]


def test_nothing_is_modified_in_place() -> None:
    live = applied({}, ME, data={"a": "1", "b": "1"}, list=[1])
    before = repr(live)

    applied(live, ME, data={"a": "2"})

    assert repr(live) == before
