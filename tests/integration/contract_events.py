"""The contract about events: two APIs, one set of objects."""

from __future__ import annotations

from typing import Any

import pytest

from .contract import STRATEGIC, Api, names, outline, plain

JsonObject = dict[str, Any]

GROUP = "events.k8s.io"


def new_style(api: Api, name: str, **fields: object) -> JsonObject:
    """Return an event as schedulers send it."""
    event = {
        "metadata": {"name": name},
        "eventTime": "2026-01-02T03:04:05.678901Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": api.namespace, "name": "web"},
        "note": "Successfully assigned",
        "type": "Normal",
    }
    return {k: v for k, v in {**event, **fields}.items() if v is not None}


class EventContract:
    """Events."""

    def test_an_event_of_the_older_api_seen_by_both(self, api: Api) -> None:
        sent = {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "namespace": api.namespace, "name": "web"},
            "reason": "Pulled",
            "message": "hello",
            "type": "Normal",
            "source": {"component": "kubelet", "host": "node-1"},
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:06Z",
            "count": 2,
        }

        created = api.do("POST", api.path("events"), sent)
        found = api.do("GET", api.path("events", "e", group=GROUP))

        assert plain(created)["reportingComponent"] == ""
        assert created["eventTime"] is None
        body = {k: v for k, v in plain(found).items() if k != "metadata"}
        assert body == {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "reason": "Pulled",
            "regarding": sent["involvedObject"],
            "note": "hello",
            "type": "Normal",
            "deprecatedSource": {"component": "kubelet", "host": "node-1"},
            "deprecatedFirstTimestamp": "2026-01-02T03:04:05Z",
            "deprecatedLastTimestamp": "2026-01-02T03:04:06Z",
            "deprecatedCount": 2,
        }

    def test_an_event_of_the_newer_api_seen_by_both(self, api: Api) -> None:
        created = api.do("POST", api.path("events", group=GROUP), new_style(api, "e"))
        found = api.do("GET", api.path("events", "e"))

        for name, value in new_style(api, "e").items():
            assert name == "metadata" or created[name] == value
        body = {k: v for k, v in plain(found).items() if k != "metadata"}
        assert body == {
            "kind": "Event",
            "apiVersion": "v1",
            "involvedObject": {"kind": "Pod", "namespace": api.namespace, "name": "web"},
            "reason": "Scheduled",
            "message": "Successfully assigned",
            "source": {},
            "type": "Normal",
            "eventTime": "2026-01-02T03:04:05.678901Z",
            "action": "Binding",
            "reportingComponent": "default-scheduler",
            "reportingInstance": "default-scheduler-host",
        }

    def test_a_series_is_patched(self, api: Api) -> None:
        path = api.path("events", group=GROUP)
        api.do("POST", path, new_style(api, "e"))
        series = {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.678901Z"}

        patched = api.patch(f"{path}/e", {"series": series}, kind=STRATEGIC)

        assert patched["series"] == series
        assert api.do("GET", api.path("events", "e"))["series"] == series

    def test_a_watch_of_one_api_sees_events_of_the_other(self, api: Api) -> None:
        with api.watch(api.path("events"), resourceVersion="") as watch:
            api.do("POST", api.path("events", group=GROUP), new_style(api, "e"))
            event = watch.next()

        assert (event["type"], event["object"]["apiVersion"]) == ("ADDED", "v1")
        assert event["object"]["message"] == "Successfully assigned"

    @pytest.mark.parametrize(
        ("group", "selector"),
        [
            ("", "involvedObject.name=web,reason=Scheduled"),
            ("", "involvedObject.kind=Pod,involvedObject.name=web,type=Normal"),
            ("", "reportingComponent=default-scheduler"),
            (GROUP, "regarding.name=web,reason=Scheduled"),
            (GROUP, "reportingController=default-scheduler"),
        ],
    )
    def test_selecting_events(self, api: Api, group: str, selector: str) -> None:
        api.do("POST", api.path("events", group=GROUP), new_style(api, "e"))
        other = {"kind": "Pod", "namespace": api.namespace, "name": "db"}
        event = new_style(api, "other", regarding=other, reportingController="x", reason="No")
        api.do("POST", api.path("events", group=GROUP), event)

        found = api.do("GET", f"{api.path('events', group=group)}?fieldSelector={selector}")

        assert names(found) == ["e"]

    def test_each_api_has_its_own_fields(self, api: Api) -> None:
        path = f"{api.path('events', group=GROUP)}?fieldSelector=involvedObject.name%3Dweb"

        assert outline(api.refused("GET", path)) == (
            400,
            "BadRequest",
            "field label not supported: involvedObject.name",
        )

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            (
                {"reportingController": None},
                (
                    "[reportingController: Required value, reportingController: Invalid value: "
                    '"": name part must be non-empty, reportingController: Invalid value: "": name '
                    "part must consist of alphanumeric characters, '-', '_' or '.', and must start "
                    "and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                    "'123-abc', regex used for validation is "
                    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')]"
                ),
            ),
            ({"action": None}, "action: Required value"),
            ({"reason": None}, "reason: Required value"),
            ({"type": "Odd"}, 'type: Invalid value: "": has invalid value: Odd'),
            (
                {"note": "x" * 1025},
                'message: Invalid value: "": can have at most 1024 characters',
            ),
            ({"deprecatedCount": 1}, 'count: Invalid value: "": needs to be unset'),
        ],
    )
    def test_the_newer_api_is_strict(
        self, api: Api, fields: dict[str, object], message: str
    ) -> None:
        path = api.path("events", group=GROUP)

        status = api.refused("POST", path, new_style(api, "e", **fields))

        assert outline(status) == (422, "Invalid", f'Event "e" is invalid: {message}')

    def test_only_the_series_may_change(self, api: Api) -> None:
        path = api.path("events", group=GROUP)
        api.do("POST", path, new_style(api, "e"))

        status = api.refused("PATCH", f"{path}/e", {"note": "x"}, content_type=STRATEGIC)

        assert outline(status) == (
            422,
            "Invalid",
            'Event "e" is invalid: message: Invalid value: "x": field is immutable',
        )

    def test_an_event_is_in_the_namespace_of_what_it_is_about(self, api: Api) -> None:
        about = {"kind": "Pod", "namespace": "elsewhere", "name": "web"}

        status = api.refused(
            "POST", api.path("events"), {"metadata": {"name": "e"}, "involvedObject": about}
        )

        assert outline(status) == (
            422,
            "Invalid",
            (
                'Event "e" is invalid: involvedObject.namespace: Invalid value: "elsewhere": '
                "does not match event.namespace"
            ),
        )
