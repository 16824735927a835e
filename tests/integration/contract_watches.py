"""The contract about watches, and about what is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from .contract import (
    MERGE,
    Api,
    names,
    outline,
    version,
)

JsonObject = dict[str, Any]

FORBIDDEN = 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '


class WatchContract:
    """GET of a collection that goes on."""

    def test_changes_come_as_they_happen(self, api: Api) -> None:
        path = api.path("configmaps")
        start = version(api.do("GET", path))
        with api.watch(path, resourceVersion=start) as watch:
            created = api.config_map("a")
            added = watch.next()
            changed = api.patch(f"{path}/a", {"data": {"key": "new"}})
            modified = watch.next()
            api.do("DELETE", f"{path}/a")
            deleted = watch.next()

        assert added == {"type": "ADDED", "object": created}
        assert modified == {"type": "MODIFIED", "object": changed}
        assert deleted["type"] == "DELETED"
        assert deleted["object"]["data"] == {"key": "new"}
        assert version(deleted["object"]) > version(changed)

    def test_a_watch_can_be_resumed(self, api: Api) -> None:
        path = api.path("configmaps")
        first = api.config_map("a")
        api.config_map("b")
        api.do("DELETE", f"{path}/a")

        with api.watch(path, resourceVersion=version(first)) as watch:
            seen = [
                (event["type"], event["object"]["metadata"]["name"])
                for event in (watch.next(), watch.next())
            ]

        assert seen == [("ADDED", "b"), ("DELETED", "a")]

    @pytest.mark.parametrize("parameters", [{}, {"resourceVersion": "0"}])
    def test_without_a_version_it_begins_with_what_is_there(
        self, api: Api, parameters: dict[str, str]
    ) -> None:
        first, second = api.config_map("a"), api.config_map("b")

        with api.watch(api.path("configmaps"), **parameters) as watch:
            events = [watch.next(), watch.next()]

        assert events == [
            {"type": "ADDED", "object": first},
            {"type": "ADDED", "object": second},
        ]

    def test_a_watch_ends_in_time(self, api: Api) -> None:
        start = version(api.config_map("a"))

        with api.watch(api.path("configmaps"), resourceVersion=start, timeoutSeconds=1) as watch:
            assert watch.rest() == []

    def test_bookmarks_tell_how_far_it_is(self, api: Api) -> None:
        start = version(api.config_map("a"))

        with api.watch(
            api.path("configmaps"),
            resourceVersion=start,
            allowWatchBookmarks="true",
            timeoutSeconds=4,
        ) as watch:
            elsewhere = api.create_cluster_object(
                "/api/v1/namespaces/default/configmaps",
                {"metadata": {"name": api.unique("elsewhere")}},
            )
            events = watch.rest()

        assert events
        assert {event["type"] for event in events} == {"BOOKMARK"}
        assert version(events[-1]["object"]) >= version(elsewhere)
        assert events[-1]["object"].keys() == {"kind", "apiVersion", "metadata"}

    def test_a_bookmark_ends_the_initial_events(self, api: Api) -> None:
        created = api.config_map("a")

        with api.watch(
            api.path("configmaps"),
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
            allowWatchBookmarks="true",
        ) as watch:
            first, second = watch.next(), watch.next()

        assert first == {"type": "ADDED", "object": created}
        assert second["type"] == "BOOKMARK"
        meta = second["object"]["metadata"]
        assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(meta["resourceVersion"]) >= version(created)

    def test_initial_events_can_be_left_out(self, api: Api) -> None:
        api.config_map("a")

        with api.watch(
            api.path("configmaps"),
            sendInitialEvents="false",
            resourceVersionMatch="NotOlderThan",
        ) as watch:
            created = api.config_map("b")
            assert watch.next() == {"type": "ADDED", "object": created}

    def test_objects_come_and_go_with_their_labels(self, api: Api) -> None:
        path = api.path("configmaps")
        start = version(api.do("GET", path))
        with api.watch(path, resourceVersion=start, labelSelector="seen=true") as watch:
            api.config_map("a")
            patch = {"metadata": {"labels": {"seen": "true"}}}
            shown = api.patch(f"{path}/a", patch)
            changed = api.patch(f"{path}/a", {"data": {"key": "x"}})
            hidden = api.patch(f"{path}/a", {"metadata": {"labels": {"seen": "false"}}})
            api.do("DELETE", f"{path}/a")
            last = api.config_map("b", labels={"seen": "true"})
            events = [watch.next() for _ in range(4)]

        assert events[0] == {"type": "ADDED", "object": shown}
        assert events[1] == {"type": "MODIFIED", "object": changed}
        # What stops matching is shown as it was, with the version in which it stopped.
        assert events[2]["type"] == "DELETED"
        assert events[2]["object"]["metadata"]["labels"] == {"seen": "true"}
        assert version(events[2]["object"]) == version(hidden)
        assert events[3] == {"type": "ADDED", "object": last}

    def test_pods_come_and_go_with_their_node(self, api: Api) -> None:
        path = api.path("pods")
        start = version(api.do("GET", path))
        with api.watch(path, resourceVersion=start, fieldSelector="spec.nodeName=") as watch:
            api.pod("a")
            api.bind("a", "node-1")
            events = [watch.next(), watch.next()]

        assert [event["type"] for event in events] == ["ADDED", "DELETED"]
        assert "nodeName" not in events[1]["object"]["spec"]

    def test_one_object_can_be_watched(self, api: Api) -> None:
        path = api.path("configmaps")
        start = version(api.do("GET", path))
        with api.watch(path, resourceVersion=start, fieldSelector="metadata.name=b") as watch:
            api.config_map("a")
            second = api.config_map("b")

            assert watch.next() == {"type": "ADDED", "object": second}

    def test_other_namespaces_are_not_seen(self, api: Api) -> None:
        path = api.path("configmaps")
        start = version(api.do("GET", path))
        other = "/api/v1/namespaces/default/configmaps"
        name = api.unique("elsewhere")
        with api.watch(path, resourceVersion=start) as watch:
            api.create_cluster_object(other, {"metadata": {"name": name}})
            created = api.config_map("a")

            assert watch.next() == {"type": "ADDED", "object": created}

    def test_a_pod_that_is_deleted_at_once_changes_first(self, api: Api) -> None:
        path = api.path("pods")
        start = version(api.pod("a"))
        with api.watch(path, resourceVersion=start) as watch:
            deleted = api.do("DELETE", f"{path}/a")
            events = [watch.next(), watch.next()]

        assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
        assert events[0]["object"]["metadata"]["deletionGracePeriodSeconds"] == 0
        assert events[1]["object"] == deleted

    @pytest.mark.parametrize(
        ("query", "code", "message"),
        [
            (
                "sendInitialEvents=true",
                422,
                (
                    f"{FORBIDDEN}sendInitialEvents requires setting resourceVersionMatch to "
                    "NotOlderThan"
                ),
            ),
            (
                "resourceVersionMatch=NotOlderThan",
                422,
                (
                    f"{FORBIDDEN}resourceVersionMatch is forbidden for watch unless "
                    "sendInitialEvents is provided"
                ),
            ),
            (
                "resourceVersion=one",
                500,
                (
                    'resourceVersion: Invalid value: "one": strconv.ParseUint: parsing "one": '
                    "invalid syntax"
                ),
            ),
            ("labelSelector=,", 400, "found ',', expected: !, identifier, or 'end of string'"),
        ],
    )
    def test_options_are_checked(self, api: Api, query: str, code: int, message: str) -> None:
        status = api.refused("GET", f"{api.path('configmaps')}?watch=true&{query}")

        assert (status["code"], status["message"]) == (code, message)


class ForgettingContract:
    """Old versions are forgotten, and clients are told so."""

    def test_what_is_forgotten_has_expired(self, api: Api) -> None:
        path = api.path("configmaps")
        for number in range(4):
            api.config_map(f"item-{number}")
        page = api.do("GET", f"{path}?limit=2")
        old, token = version(page), page["metadata"]["continue"]
        api.patch(f"{path}/item-3", {"data": {"key": "new"}})
        api.do("PATCH", f"{path}/item-0", {"data": {"key": "new"}}, content_type=MERGE)
        api.forget_history()

        exact = api.refused("GET", f"{path}?resourceVersionMatch=Exact&resourceVersion={old}")
        expired = api.refused("GET", f"{path}?limit=2&continue={token}")
        fresh = expired["metadata"]["continue"]
        rest = api.do("GET", f"{path}?limit=2&continue={fresh}")
        with api.watch(path, resourceVersion=old, timeoutSeconds=5) as watch:
            events = watch.rest()

        assert outline(exact) == (
            410,
            "Expired",
            "The resourceVersion for the provided list is too old.",
        )
        code, reason, message = outline(expired)
        assert (code, reason) == (410, "Expired")
        assert message.startswith("The provided continue parameter is too old to display a ")
        assert names(rest) == ["item-2", "item-3"]
        assert rest["items"][1]["data"] == {"key": "new"}
        assert [event["type"] for event in events] == ["ERROR"]
        status = events[0]["object"]
        assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
        assert status["message"].startswith(f"too old resource version: {old} (")
