"""Strategic merge patches, beyond what the contract tests send."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubesched.embedded.refusals import StatusError
from kubesched.embedded.strategic import MERGE_KEYS, strategic_merge

JsonObject = dict[str, Any]


def named(*names: str, **fields: object) -> list[JsonObject]:
    return [{"name": name, **fields} for name in names]


def merged(original: JsonObject, patch: JsonObject) -> JsonObject:
    """Apply a patch, and see to it that nothing was modified in place."""
    before = copy.deepcopy((original, patch))
    result = strategic_merge(original, patch)
    assert (original, patch) == before
    return result


def test_maps_are_merged_and_null_removes() -> None:
    result = merged({"a": {"x": 1, "y": 2}, "b": 3}, {"a": {"y": None, "z": 4}, "b": 5})

    assert result == {"a": {"x": 1, "z": 4}, "b": 5}


def test_nulls_in_what_is_new_are_dropped() -> None:
    assert merged({}, {"a": {"b": None, "c": 1}}) == {"a": {"c": 1}}


def test_lists_of_named_things_are_merged() -> None:
    original = {"containers": named("a", "b", image="1")}

    result = merged(original, {"containers": [{"name": "b", "image": "2"}]})

    assert result == {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}


def test_what_is_new_comes_first_and_the_rest_keeps_its_place() -> None:
    original = {"containers": named("a", "b", "c")}

    result = merged(original, {"containers": named("x", "b")})

    assert [each["name"] for each in result["containers"]] == ["x", "a", "b", "c"]


def test_an_item_can_be_deleted_or_all_replaced() -> None:
    original = {"volumes": named("a", "b")}

    fewer = merged(original, {"volumes": [{"name": "a", "$patch": "delete"}]})
    other = merged(original, {"volumes": [{"$patch": "replace"}, {"name": "c"}]})

    assert fewer == {"volumes": named("b")}
    assert other == {"volumes": named("c")}


def test_a_map_can_be_replaced_or_emptied() -> None:
    original = {"strategy": {"type": "A", "more": 1}}

    assert merged(original, {"strategy": {"$patch": "replace", "type": "B"}}) == {
        "strategy": {"type": "B"}
    }
    assert merged(original, {"strategy": {"$patch": "delete"}}) == {"strategy": {}}


def test_keys_can_be_retained() -> None:
    original = {"volumes": [{"name": "a", "emptyDir": {}, "x": 1}]}
    patch = {"volumes": [{"name": "a", "$retainKeys": ["name", "hostPath"], "hostPath": {}}]}

    assert merged(original, patch) == {"volumes": [{"name": "a", "hostPath": {}}]}


def test_an_order_without_changes() -> None:
    patch = {"$setElementOrder/env": [{"name": "b"}, {"name": "a"}]}

    assert merged({"env": named("a", "b", "c")}, patch) == {"env": named("b", "a", "c")}


def test_sets_of_plain_values() -> None:
    original = {"finalizers": ["a", "b"], "args": ["a", "b"]}

    result = merged(original, {"finalizers": ["c"], "args": ["c"]})
    fewer = merged(original, {"$deleteFromPrimitiveList/finalizers": ["a"]})

    assert sorted(result["finalizers"]) == ["a", "b", "c"]
    assert result["args"] == ["c"]
    assert fewer["finalizers"] == ["b"]


def test_ports_of_containers_and_of_services() -> None:
    container = merged(
        {"ports": [{"containerPort": 80, "name": "http"}]},
        {"ports": [{"containerPort": 80, "name": "web"}]},
    )
    service = merged({"ports": [{"port": 80}]}, {"ports": [{"port": 80, "targetPort": 8080}]})

    assert container == {"ports": [{"containerPort": 80, "name": "web"}]}
    assert service == {"ports": [{"port": 80, "targetPort": 8080}]}


def test_other_lists_are_replaced() -> None:
    assert "taints" not in MERGE_KEYS
    assert merged({"taints": [{"key": "a"}]}, {"taints": [{"key": "b"}]}) == {
        "taints": [{"key": "b"}]
    }


def test_directives_about_what_is_not_there_leave_nothing() -> None:
    patch = {
        "map": {"$patch": "replace", "a": 1},
        "volumes": [{"name": "a", "$patch": "delete"}],
        "deep": {"gone": {"$patch": "delete"}, "kept": 1, "$retainKeys": ["kept"]},
    }

    assert merged({}, patch) == {"volumes": [], "deep": {"kept": 1}}


def test_an_order_must_be_that_of_the_patch() -> None:
    patch = {
        "$setElementOrder/containers": named("a", "b"),
        "containers": named("b", "a"),
    }

    with pytest.raises(StatusError, match="The order in patch list doesn't match") as caught:
        strategic_merge({"containers": named("a")}, patch)

    assert caught.value.code == 500


@pytest.mark.parametrize(
    "patch",
    [
        {"containers": [{"image": "x"}]},
        {"$patch": "sideways"},
        {"$retainKeys": "all"},
        {"$retainKeys": ["a"], "b": 1},
        {"$deleteFromPrimitiveList/finalizers": "a"},
        {"$setElementOrder/containers": "a", "containers": named("a")},
    ],
)
def test_patches_that_make_no_sense(patch: JsonObject) -> None:
    with pytest.raises(StatusError) as caught:
        strategic_merge({"containers": named("a"), "finalizers": ["a"]}, patch)

    assert caught.value.code == 400
