"""The contract about collections: lists, pages, selectors."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from .contract import (
    Api,
    names,
    outline,
    version,
)

JsonObject = dict[str, Any]

FORBIDDEN = 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '


class ListContract:
    """GET of a collection."""

    def test_a_list_is_ordered_and_its_items_have_no_kind(self, api: Api) -> None:
        for name in ("b", "a", "a-1", "a.1"):
            api.config_map(name)

        found = api.do("GET", api.path("configmaps"))

        assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
        assert names(found) == ["a", "a-1", "a.1", "b"]
        assert "kind" not in found["items"][0]
        assert "apiVersion" not in found["items"][0]

    def test_a_list_is_as_new_as_its_newest_item(self, api: Api) -> None:
        created = api.config_map("a")

        found = api.do("GET", api.path("configmaps"))

        assert version(found) >= version(created)

    def test_a_list_over_all_namespaces(self, api: Api) -> None:
        api.config_map("a", labels={"only": api.namespace})

        found = api.do("GET", f"/api/v1/configmaps?labelSelector=only%3D{api.namespace}")

        assert names(found) == ["a"]

    def test_an_empty_list(self, api: Api) -> None:
        assert api.do("GET", api.path("secrets"))["items"] == []

    def test_a_list_of_an_earlier_state(self, api: Api) -> None:
        first = api.config_map("a")
        api.config_map("b")
        api.patch(api.path("configmaps", "a"), {"data": {"key": "changed"}})
        api.do("DELETE", api.path("configmaps", "b"))
        path = f"{api.path('configmaps')}?resourceVersionMatch=Exact&resourceVersion="

        found = api.do("GET", path + str(version(first)))

        assert version(found) == version(first)
        assert [item["data"] for item in found["items"]] == [{"key": "value"}]

    def test_a_list_not_older_than_a_version(self, api: Api) -> None:
        created = api.config_map("a")
        path = f"{api.path('configmaps')}?resourceVersionMatch=NotOlderThan&resourceVersion="

        found = api.do("GET", path + str(version(created)))

        assert names(found) == ["a"]

    def test_a_version_from_the_future_does_not_come(self, api: Api) -> None:
        current = version(api.do("GET", api.path("configmaps")))

        status = api.refused("GET", f"{api.path('configmaps')}?resourceVersion={current + 10000}")

        code, reason, message = outline(status)
        assert (code, reason) == (504, "Timeout")
        assert message.startswith(f"Timeout: Too large resource version: {current + 10000}, ")
        assert status["details"] == {
            "causes": [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ],
            "retryAfterSeconds": 1,
        }

    @pytest.mark.parametrize(
        ("query", "code", "message"),
        [
            (
                "resourceVersionMatch=Exact",
                422,
                f"{FORBIDDEN}resourceVersionMatch is forbidden unless resourceVersion is provided",
            ),
            (
                "resourceVersionMatch=Exact&resourceVersion=0",
                422,
                f'{FORBIDDEN}resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
            ),
            (
                "resourceVersionMatch=Near&resourceVersion=1",
                422,
                (
                    'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported '
                    'value: "Near": supported values: "Exact", "NotOlderThan", ""'
                ),
            ),
            (
                "resourceVersion=one",
                400,
                (
                    'invalid resource version: resourceVersion: Invalid value: "one": '
                    'strconv.ParseUint: parsing "one": invalid syntax'
                ),
            ),
            ("limit=many", 400, 'strconv.ParseInt: parsing "many": invalid syntax'),
            (
                "sendInitialEvents=true",
                422,
                (
                    'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: '
                    "sendInitialEvents is forbidden for list"
                ),
            ),
        ],
    )
    def test_options_are_checked(self, api: Api, query: str, code: int, message: str) -> None:
        status = api.refused("GET", f"{api.path('configmaps')}?{query}")

        assert (status["code"], status["message"]) == (code, message)


class PageContract:
    """A list in pages."""

    @pytest.fixture
    def five(self, api: Api) -> str:
        """The path of a collection of five."""
        for number in range(5):
            api.config_map(f"item-{number}", labels={"even": str(number % 2 == 0).lower()})
        return api.path("configmaps")

    def test_pages_show_one_state(self, api: Api, five: str) -> None:
        first = api.do("GET", f"{five}?limit=2")
        api.do("DELETE", f"{five}/item-3")
        api.config_map("item-2a")
        api.patch(f"{five}/item-4", {"data": {"key": "changed"}})
        second = api.do("GET", f"{five}?limit=2&continue={first['metadata']['continue']}")
        third = api.do("GET", f"{five}?limit=2&continue={second['metadata']['continue']}")

        assert names(first) + names(second) + names(third) == [f"item-{n}" for n in range(5)]
        assert version(first) == version(second) == version(third)
        assert third["items"][0]["data"] == {"key": "value"}
        remaining = [page["metadata"].get("remainingItemCount") for page in (first, second, third)]
        assert remaining == [3, 1, None]
        assert "continue" not in third["metadata"]

    def test_what_fits_needs_no_second_page(self, api: Api, five: str) -> None:
        found = api.do("GET", f"{five}?limit=5")

        assert len(found["items"]) == 5
        assert found["metadata"].keys() == {"resourceVersion"}

    def test_any_version_is_given_whole(self, api: Api, five: str) -> None:
        assert len(api.do("GET", f"{five}?limit=2&resourceVersion=0")["items"]) == 5

    def test_selected_items_fill_a_page(self, api: Api, five: str) -> None:
        first = api.do("GET", f"{five}?limit=2&labelSelector=even%3Dtrue")
        token = first["metadata"]["continue"]
        second = api.do("GET", f"{five}?limit=2&labelSelector=even%3Dtrue&continue={token}")

        assert names(first) + names(second) == ["item-0", "item-2", "item-4"]
        assert "remainingItemCount" not in first["metadata"]

    def test_a_token_goes_with_no_version(self, api: Api, five: str) -> None:
        token = api.do("GET", f"{five}?limit=2")["metadata"]["continue"]

        status = api.refused("GET", f"{five}?limit=2&continue={token}&resourceVersion=5")

        assert outline(status) == (
            400,
            "BadRequest",
            "specifying resource version is not allowed when using continue",
        )

    def test_a_token_must_be_one(self, api: Api, five: str) -> None:
        status = api.refused("GET", f"{five}?limit=2&continue=abc")

        assert (status["code"], status["reason"]) == (400, "BadRequest")
        assert status["message"].startswith("invalid continue token: continue key is not valid: ")


class SelectorContract:
    """Label and field selectors."""

    @pytest.mark.parametrize(
        ("selector", "expected"),
        [
            ("app=web", ["a", "b"]),
            ("app==web", ["a", "b"]),
            ("app!=web", ["c", "d"]),
            ("app in (web,db)", ["a", "b", "c"]),
            ("app notin (web)", ["c", "d"]),
            ("app", ["a", "b", "c"]),
            ("!app", ["d"]),
            ("app=web,tier=1", ["a"]),
            ("tier>1", ["b"]),
            ("tier<2", ["a"]),
            ("app in (web),tier notin (2)", ["a"]),
            ("empty=", ["d"]),
            ("empty in ()", ["d"]),
            ("empty in (,x)", ["d"]),
            ("app = web , tier", ["a", "b"]),
            ("in in (in)", ["c"]),
            ("", ["a", "b", "c", "d"]),
        ],
    )
    def test_labels(self, api: Api, selector: str, expected: list[str]) -> None:
        api.config_map("a", labels={"app": "web", "tier": "1"})
        api.config_map("b", labels={"app": "web", "tier": "2"})
        api.config_map("c", labels={"app": "db", "in": "in"})
        api.config_map("d", labels={"empty": ""})

        found = api.do("GET", f"{api.path('configmaps')}?labelSelector={quote(selector)}")

        assert names(found) == expected

    @pytest.mark.parametrize(
        ("selector", "message"),
        [
            (",", "found ',', expected: !, identifier, or 'end of string'"),
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("a in x", "unable to parse requirement: found 'x' expected: '('"),
            ("a,", "found '', expected: identifier after ','"),
            (
                "a ~ b",
                "unable to parse requirement: found '~', expected: in, notin, =, ==, !=, gt, lt",
            ),
            (
                "a>b",
                (
                    "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' "
                    "operators, the value must be an integer"
                ),
            ),
            ("!=a", "found '!=', expected: !, identifier, or 'end of string'"),
            (
                "a=b!",
                "found '!', expected: ',' or 'end of string'",
            ),
        ],
    )
    def test_labels_that_cannot_be_read(self, api: Api, selector: str, message: str) -> None:
        path = f"{api.path('configmaps')}?labelSelector={quote(selector)}"

        assert outline(api.refused("GET", path)) == (400, "BadRequest", message)

    def test_a_label_must_be_possible(self, api: Api) -> None:
        path = f"{api.path('configmaps')}?labelSelector={quote('a=b c/d')}"

        status = api.refused("GET", path)

        assert (status["code"], status["reason"]) == (400, "BadRequest")

    @pytest.mark.parametrize(
        ("selector", "expected"),
        [
            ("spec.nodeName=node-1", ["bound"]),
            ("spec.nodeName!=node-1", ["free", "other"]),
            ("spec.nodeName=", ["free", "other"]),
            ("spec.schedulerName=mine", ["other"]),
            ("metadata.name=free", ["free"]),
            ("status.phase=Pending,spec.nodeName=", ["free", "other"]),
            ("status.phase!=Pending", []),
            ("spec.hostNetwork=false,metadata.name!=other", ["bound", "free"]),
            ("status.nominatedNodeName=node-2", ["free"]),
            ("spec.restartPolicy=Never", ["other"]),
        ],
    )
    def test_fields_of_pods(self, api: Api, selector: str, expected: list[str]) -> None:
        api.pod("bound")
        assert api.bind("bound", "node-1").code == 201
        api.pod("free")
        api.patch(api.path("pods", "free/status"), {"status": {"nominatedNodeName": "node-2"}})
        api.pod("other", schedulerName="mine", restartPolicy="Never")

        found = api.do("GET", f"{api.path('pods')}?fieldSelector={quote(selector)}")

        assert names(found) == expected

    def test_fields_of_nodes(self, api: Api) -> None:
        name = api.unique("node")
        api.create_cluster_object(
            "/api/v1/nodes", {"metadata": {"name": name}, "spec": {"unschedulable": True}}
        )
        path = f"/api/v1/nodes?fieldSelector=metadata.name%3D{name},spec.unschedulable%3D"

        assert names(api.do("GET", f"{path}true")) == [name]
        assert names(api.do("GET", f"{path}false")) == []

    @pytest.mark.parametrize(
        ("plural", "selector", "message"),
        [
            ("pods", "spec.unknown=x", "field label not supported: spec.unknown"),
            (
                "pods",
                "spec.nodeName",
                "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'",
            ),
            ("events", "unknown=x", "field label not supported: unknown"),
            (
                "configmaps",
                "data=x",
                '"data" is not a known field selector: only "metadata.name", "metadata.namespace"',
            ),
        ],
    )
    def test_fields_that_cannot_be_selected_by(
        self, api: Api, plural: str, selector: str, message: str
    ) -> None:
        path = f"{api.path(plural)}?fieldSelector={quote(selector)}"

        assert outline(api.refused("GET", path)) == (400, "BadRequest", message)

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            (
                "/api/v1/nodes?fieldSelector=metadata.namespace%3Dx",
                "field label not supported: metadata.namespace",
            ),
            (
                "/apis/batch/v1/jobs?fieldSelector=x%3Dy",
                'field label "x" not supported for Job',
            ),
            (
                "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=x%3Dy",
                "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x",
            ),
        ],
    )
    def test_kinds_refuse_in_their_own_words(self, api: Api, path: str, message: str) -> None:
        assert outline(api.refused("GET", path)) == (400, "BadRequest", message)
