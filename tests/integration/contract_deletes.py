"""The contract about deletion, of one object and of many."""

from __future__ import annotations

from typing import Any

import pytest

from .contract import (
    MERGE,
    Api,
    names,
    outline,
    plain,
    version,
)

JsonObject = dict[str, Any]


class DeleteContract:
    """DELETE, of one object and of many."""

    def test_the_answer_names_what_is_gone(self, api: Api) -> None:
        uid = api.config_map("a")["metadata"]["uid"]

        assert api.do("DELETE", api.path("configmaps", "a")) == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": uid},
        }
        assert outline(api.refused("DELETE", api.path("configmaps", "a"))) == (
            404,
            "NotFound",
            'configmaps "a" not found',
        )

    def test_some_kinds_answer_with_the_object(self, api: Api) -> None:
        path = api.path("serviceaccounts")
        created = api.do("POST", path, {"metadata": {"name": "a"}})

        deleted = api.do("DELETE", f"{path}/a")

        assert plain(deleted) == plain(created)
        assert version(deleted) > version(created)

    @pytest.mark.parametrize(
        ("condition", "message"),
        [
            (
                {"uid": "other"},
                (
                    'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition '
                    "(other) does not match the UID in record (<uid>). "
                    "The object might have been deleted and then recreated"
                ),
            ),
            (
                {"resourceVersion": "1"},
                (
                    'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the '
                    "precondition (1) does not match the ResourceVersion in record (<n>). "
                    "The object might have been modified"
                ),
            ),
        ],
    )
    def test_preconditions(self, api: Api, condition: dict[str, str], message: str) -> None:
        created = api.config_map("a")

        status = api.refused("DELETE", api.path("configmaps", "a"), {"preconditions": condition})

        own = created["metadata"]["resourceVersion"]
        assert outline(status) == (409, "Conflict", message.replace("<n>", own))
        assert status["details"] == {"name": "a", "kind": "ConfigMap"}

    def test_preconditions_that_hold(self, api: Api) -> None:
        meta = api.config_map("a")["metadata"]
        condition = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}

        deleted = api.do("DELETE", api.path("configmaps", "a"), {"preconditions": condition})

        assert deleted["status"] == "Success"

    def test_options_are_checked(self, api: Api) -> None:
        api.config_map("a")

        status = api.refused(
            "DELETE", api.path("configmaps", "a"), {"propagationPolicy": "Sideways"}
        )

        assert outline(status) == (
            422,
            "Invalid",
            (
                'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: '
                '"Sideways": supported values: "Foreground", "Background", "Orphan", "nil"'
            ),
        )

    def test_a_dry_run_deletes_nothing(self, api: Api) -> None:
        created = api.config_map("a")

        api.do("DELETE", f"{api.path('configmaps', 'a')}?dryRun=All")

        assert api.do("GET", api.path("configmaps", "a")) == created

    def test_finalizers_keep_an_object_until_the_last_is_gone(self, api: Api) -> None:
        path = api.path("configmaps", "a")
        api.config_map("a", finalizers=["example.com/hold"])

        marked = api.do("DELETE", path)
        again = api.do("DELETE", path)
        status = api.refused(
            "PATCH",
            path,
            {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}},
            content_type=MERGE,
        )
        api.patch(path, {"metadata": {"finalizers": None}})

        assert marked["metadata"]["deletionTimestamp"]
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
        assert again == marked
        assert outline(status) == (
            422,
            "Invalid",
            (
                'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can '
                "be added if the object is being deleted, found new finalizers "
                '[]string{"example.com/more"}'
            ),
        )
        assert api.refused("GET", path)["code"] == 404

    def test_a_collection_can_be_deleted_by_labels(self, api: Api) -> None:
        for name, colour in (("a", "red"), ("b", "blue"), ("c", "red")):
            api.config_map(name, labels={"colour": colour})

        deleted = api.do("DELETE", f"{api.path('configmaps')}?labelSelector=colour%3Dred")

        assert (deleted["kind"], names(deleted)) == ("ConfigMapList", ["a", "c"])
        assert names(api.do("GET", api.path("configmaps"))) == ["b"]
