"""The contract about patches of all four kinds."""

from __future__ import annotations

from typing import Any

import pytest

from .contract import (
    APPLY,
    JSON,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Api,
    a_pod,
    outline,
    version,
)

JsonObject = dict[str, Any]

MODIFIED = (
    'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply '
    "your changes to the latest version and try again"
)


class PatchContract:
    """PATCH, of all four kinds."""

    def test_a_merge_patch_sets_and_removes_fields(self, api: Api) -> None:
        created = api.config_map("a")

        patched = api.patch(api.path("configmaps", "a"), {"data": {"key": None, "new": "x"}})

        assert patched["data"] == {"new": "x"}
        assert version(patched) > version(created)

    def test_a_patch_with_an_old_version_is_a_conflict(self, api: Api) -> None:
        api.config_map("a")
        body = {"metadata": {"resourceVersion": "1"}, "data": {"k": "w"}}

        status = api.refused("PATCH", api.path("configmaps", "a"), body, content_type=MERGE)

        assert outline(status) == (409, "Conflict", MODIFIED)

    def test_a_patch_does_not_rename(self, api: Api) -> None:
        api.config_map("a")

        status = api.refused(
            "PATCH",
            api.path("configmaps", "a"),
            {"metadata": {"name": "b"}},
            content_type=MERGE,
        )

        assert outline(status) == (
            400,
            "BadRequest",
            "the name of the object (b) does not match the name on the URL (a)",
        )

    def test_a_json_patch(self, api: Api) -> None:
        api.config_map("a")
        operations = [
            {"op": "test", "path": "/data/key", "value": "value"},
            {"op": "add", "path": "/data/more", "value": "x"},
            {"op": "remove", "path": "/data/key"},
        ]

        patched = api.patch(api.path("configmaps", "a"), operations, kind=JSON_PATCH)

        assert patched["data"] == {"more": "x"}

    @pytest.mark.parametrize(
        "operation",
        [
            {"op": "test", "path": "/data/key", "value": "other"},
            {"op": "remove", "path": "/data/missing"},
        ],
    )
    def test_a_json_patch_that_does_not_fit(self, api: Api, operation: dict[str, str]) -> None:
        created = api.config_map("a")

        status = api.refused(
            "PATCH", api.path("configmaps", "a"), [operation], content_type=JSON_PATCH
        )

        assert outline(status) == (
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        assert api.do("GET", api.path("configmaps", "a")) == created

    @pytest.mark.parametrize("kind", [MERGE, STRATEGIC, JSON_PATCH])
    def test_a_patch_must_be_readable(self, api: Api, kind: str) -> None:
        api.config_map("a")

        status = api.refused("PATCH", api.path("configmaps", "a"), "{broken", content_type=kind)

        assert (status["code"], status["reason"]) == (400, "BadRequest")

    def test_a_patch_needs_a_kind(self, api: Api) -> None:
        api.config_map("a")

        status = api.refused("PATCH", api.path("configmaps", "a"), {}, content_type=JSON)

        assert outline(status) == (415, "UnsupportedMediaType", "415: Unsupported Media Type")

    def test_a_patch_of_nothing(self, api: Api) -> None:
        status = api.refused("PATCH", api.path("configmaps", "a"), {}, content_type=MERGE)

        assert outline(status) == (404, "NotFound", 'configmaps "a" not found')

    def test_a_strategic_patch_merges_conditions_by_type(self, api: Api) -> None:
        api.pod("a")
        path = api.path("pods", "a/status")

        def conditions(*patch: dict[str, str]) -> list[str]:
            body = {"status": {"conditions": list(patch)}}
            found = api.patch(path, body, kind=STRATEGIC)["status"].get("conditions", [])
            return [f"{each['type']}={each['status']}" for each in found]

        assert conditions({"type": "First", "status": "True"}) == ["First=True"]
        assert conditions({"type": "Second", "status": "True"}) == ["Second=True", "First=True"]
        assert conditions({"type": "First", "status": "False"}) == ["Second=True", "First=False"]
        assert conditions({"type": "First", "$patch": "delete"}) == ["Second=True"]

    def test_a_strategic_patch_can_set_the_order(self, api: Api) -> None:
        api.pod("a")
        path = api.path("pods", "a/status")
        condition = {"status": "True"}
        both = [{"type": "First", **condition}, {"type": "Second", **condition}]
        api.patch(path, {"status": {"conditions": both}}, kind=STRATEGIC)
        order = [{"type": "Second"}, {"type": "Third"}, {"type": "First"}]
        body = {
            "$setElementOrder/conditions": order,
            "conditions": [{"type": "Third", **condition}],
        }

        patched = api.patch(path, {"status": body}, kind=STRATEGIC)

        found = [each["type"] for each in patched["status"]["conditions"]]
        assert found == ["Second", "Third", "First"]

    def test_a_strategic_patch_keeps_what_it_is_told_to(self, api: Api) -> None:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": a_pod("x")["spec"]}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        path = api.path("deployments", group="apps")
        api.do("POST", path, {"metadata": {"name": "a"}, "spec": spec})
        body = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}

        patched = api.patch(f"{path}/a", body, kind=STRATEGIC)

        assert patched["spec"]["strategy"] == {"type": "Recreate"}

    def test_a_strategic_patch_treats_finalizers_as_a_set(self, api: Api) -> None:
        api.config_map("a", finalizers=["example.com/a", "example.com/b"])
        path = api.path("configmaps", "a")

        added = api.patch(path, {"metadata": {"finalizers": ["example.com/c"]}}, kind=STRATEGIC)
        body = {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}
        removed = api.patch(path, {"metadata": body}, kind=STRATEGIC)
        api.patch(path, {"metadata": {"finalizers": None}})

        assert sorted(added["metadata"]["finalizers"]) == [
            "example.com/a",
            "example.com/b",
            "example.com/c",
        ]
        assert sorted(removed["metadata"]["finalizers"]) == ["example.com/b", "example.com/c"]

    def test_a_strategic_patch_replaces_other_lists(self, api: Api) -> None:
        name = api.unique("node")
        taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]
        node = {"metadata": {"name": name}, "spec": {"taints": taints}}
        api.create_cluster_object("/api/v1/nodes", node)
        body = {"spec": {"taints": [{"key": "c", "effect": "NoExecute"}]}}

        patched = api.patch(f"/api/v1/nodes/{name}", body, kind=STRATEGIC)

        assert [taint["key"] for taint in patched["spec"]["taints"]] == ["c"]


class ApplyContract:
    """PATCH that states what is wanted, and by whom."""

    def apply(self, api: Api, manager: str, data: dict[str, str], query: str = "") -> object:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a"},
            "data": data,
        }
        path = f"{api.path('configmaps', 'a')}?fieldManager={manager}{query}"
        answer = api.ask("PATCH", path, body, content_type=APPLY)
        return answer.code, answer.body.get("data", answer.body.get("message"))

    def test_apply_creates_and_updates(self, api: Api) -> None:
        assert self.apply(api, "me", {"x": "1"}) == (201, {"x": "1"})
        assert self.apply(api, "me", {"x": "2"}) == (200, {"x": "2"})

    def test_a_field_that_is_applied_no_more_goes(self, api: Api) -> None:
        self.apply(api, "me", {"x": "1", "y": "1"})

        assert self.apply(api, "me", {"y": "1"}) == (200, {"y": "1"})

    def test_the_fields_of_others_stay(self, api: Api) -> None:
        self.apply(api, "me", {"x": "1"})
        self.apply(api, "you", {"y": "1"})

        assert self.apply(api, "me", {}) == (200, {"y": "1"})

    def test_the_entry_says_who_applied_what(self, api: Api) -> None:
        self.apply(api, "me", {"x": "1"})

        found = api.do("GET", api.path("configmaps", "a"))["metadata"]["managedFields"]

        assert [(each["manager"], each["operation"], each["fieldsV1"]) for each in found] == [
            ("me", "Apply", {"f:data": {"f:x": {}}})
        ]

    def test_a_field_of_another_manager_is_a_conflict(self, api: Api) -> None:
        self.apply(api, "me", {"x": "1"})

        assert self.apply(api, "you", {"x": "2"}) == (
            409,
            'Apply failed with 1 conflict: conflict with "me": .data.x',
        )
        assert self.apply(api, "you", {"x": "1"}) == (200, {"x": "1"})

    def test_force_takes_a_field_over(self, api: Api) -> None:
        self.apply(api, "me", {"x": "1"})

        assert self.apply(api, "you", {"x": "2"}, "&force=true") == (200, {"x": "2"})
        assert self.apply(api, "me", {}) == (200, {"x": "2"})

    def test_applying_the_same_again_makes_no_version(self, api: Api) -> None:
        self.apply(api, "me", {"x": "1"})
        before = api.do("GET", api.path("configmaps", "a"))
        self.apply(api, "me", {"x": "1"})

        assert version(api.do("GET", api.path("configmaps", "a"))) == version(before)

    def test_a_manager_is_needed(self, api: Api) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

        status = api.refused("PATCH", api.path("configmaps", "a"), body, content_type=APPLY)

        assert outline(status) == (
            422,
            "Invalid",
            (
                'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: '
                "is required for apply patch"
            ),
        )

    def test_a_list_of_containers_is_merged_by_name(self, api: Api) -> None:
        path = f"{api.path('deployments', 'a', group='apps')}?fieldManager="

        def apply(manager: str, *containers: dict[str, object]) -> list[str]:
            template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
            body = {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "a"},
                "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
            }
            found = api.do("PATCH", path + manager, body, content_type=APPLY)
            spec = found["spec"]["template"]["spec"]
            return [f"{each['name']}={each['image']}" for each in spec["containers"]]

        assert apply("me", {"name": "c", "image": "x"}, {"name": "e", "image": "x"}) == [
            "c=x",
            "e=x",
        ]
        assert apply("you", {"name": "d", "image": "y"}) == ["c=x", "e=x", "d=y"]
        assert apply("me", {"name": "c", "image": "z"}) == ["c=z", "d=y"]
