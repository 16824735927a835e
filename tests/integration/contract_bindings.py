"""The contract about binding pods to nodes, and about their end there."""

from __future__ import annotations

from typing import Any

import pytest

from .contract import (
    MERGE,
    STRATEGIC,
    Api,
    a_binding,
    a_pod,
    outline,
    version,
)

JsonObject = dict[str, Any]


class BindingContract:
    """Binding: a pod gets its node, once."""

    @pytest.fixture(params=["pods/a/binding", "bindings"])
    def binding_path(self, api: Api, request: pytest.FixtureRequest) -> str:
        """The two paths that bind."""
        return api.path(request.param)

    def test_a_pod_is_bound(self, api: Api, binding_path: str) -> None:
        created = api.pod("a")
        api.patch(api.path("pods", "a/status"), {"status": {"nominatedNodeName": "n2"}})

        answer = api.ask("POST", binding_path, a_binding("a", "n1"))
        bound = api.do("GET", api.path("pods", "a"))

        assert (answer.code, answer.body) == (
            201,
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "code": 201,
            },
        )
        assert bound["spec"] == {**created["spec"], "nodeName": "n1"}
        assert "nominatedNodeName" not in bound["status"]
        (condition,) = bound["status"]["conditions"]
        assert condition["lastTransitionTime"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
        assert bound["metadata"]["generation"] == 1

    def test_a_condition_that_it_could_not_be_scheduled_is_replaced(self, api: Api) -> None:
        api.pod("a")
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        body = {"status": {"conditions": [condition, {"type": "Other", "status": "True"}]}}
        api.patch(api.path("pods", "a/status"), body, kind=STRATEGIC)

        api.bind("a", "n1")

        found = api.do("GET", api.path("pods", "a"))["status"]["conditions"]
        assert [(each["type"], each["status"], each.get("reason")) for each in found] == [
            ("PodScheduled", "True", None),
            ("Other", "True", None),
        ]

    def test_a_second_binding_is_refused(self, api: Api, binding_path: str) -> None:
        api.pod("a")
        api.bind("a", "n1")

        status = api.refused("POST", binding_path, a_binding("a", "n2"))

        assert status == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'Operation cannot be fulfilled on pods/binding "a": '
            'pod a is already assigned to node "n1"',
            "reason": "Conflict",
            "details": {"name": "a", "kind": "pods/binding"},
            "code": 409,
        }

    def test_a_pod_that_does_not_exist(self, api: Api, binding_path: str) -> None:
        status = api.refused("POST", binding_path, a_binding("a", "n1"))

        assert outline(status) == (404, "NotFound", 'pods "a" not found')

    def test_a_pod_that_is_being_deleted(self, api: Api, binding_path: str) -> None:
        pod = a_pod("a")
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        api.do("POST", api.path("pods"), pod)
        api.do("DELETE", api.path("pods", "a"))

        status = api.refused("POST", binding_path, a_binding("a", "n1"))
        api.patch(api.path("pods", "a"), {"metadata": {"finalizers": None}})

        assert outline(status) == (
            409,
            "Conflict",
            (
                'Operation cannot be fulfilled on pods/binding "a": '
                "pod a is being deleted, cannot be assigned to a host"
            ),
        )

    def test_a_gated_pod(self, api: Api, binding_path: str) -> None:
        api.pod("a", schedulingGates=[{"name": "wait"}])

        status = api.refused("POST", binding_path, a_binding("a", "n1"))

        assert outline(status) == (
            409,
            "Conflict",
            (
                'Operation cannot be fulfilled on pods/binding "a": '
                "pod a has non-empty .spec.schedulingGates"
            ),
        )

    def test_another_pod_of_that_name(self, api: Api) -> None:
        pod = api.pod("a")

        status = api.bind("a", "n1", uid="other").body
        bound = api.bind("a", "n1", uid=pod["metadata"]["uid"])

        assert outline(status) == (
            409,
            "Conflict",
            (
                'Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, '
                f"Key: /registry/pods/{api.namespace}/a, ResourceVersion: 0, AdditionalErrorMsg: "
                "Precondition failed: UID in precondition: other, UID in object meta: <uid>"
            ),
        )
        assert bound.code == 201

    def test_another_version_of_the_pod(self, api: Api) -> None:
        pod = api.pod("a")

        status = api.bind("a", "n1", resourceVersion="1").body

        assert outline(status) == (
            409,
            "Conflict",
            (
                'Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, '
                f"Key: /registry/pods/{api.namespace}/a, ResourceVersion: 0, AdditionalErrorMsg: "
                "Precondition failed: ResourceVersion in precondition: 1, "
                f"ResourceVersion in object meta: {pod['metadata']['resourceVersion']}"
            ),
        )

    def test_the_name_must_be_the_one_in_the_path(self, api: Api) -> None:
        api.pod("a")

        status = api.refused("POST", api.path("pods/a/binding"), a_binding("b", "n1"))

        assert outline(status) == (
            400,
            "BadRequest",
            "name in URL does not match name in Binding object",
        )

    def test_a_target_must_be_a_node(self, api: Api, binding_path: str) -> None:
        api.pod("a")
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Moon", "name": ""}}

        status = api.refused("POST", binding_path, binding)

        assert outline(status) == (
            500,
            "",
            (
                '[target.kind: Unsupported value: "Moon": supported values: "Node", "<empty>", '
                "target.name: Required value]"
            ),
        )

    def test_a_dry_run_binds_nothing(self, api: Api) -> None:
        created = api.pod("a")

        answer = api.ask("POST", f"{api.path('pods/a/binding')}?dryRun=All", a_binding("a", "n1"))

        assert answer.code == 201
        assert api.do("GET", api.path("pods", "a")) == created

    def test_annotations_and_labels_come_with_a_binding(self, api: Api) -> None:
        api.pod("a")

        api.bind("a", "n1", annotations={"why": "x"}, labels={"where": "y"})

        meta = api.do("GET", api.path("pods", "a"))["metadata"]
        assert (meta["annotations"], meta["labels"]) == ({"why": "x"}, {"where": "y"})

    def test_a_bound_pod_says_where_it_is(self, api: Api) -> None:
        name = api.unique("node")
        zone = {
            "topology.kubernetes.io/zone": "z1",
            "topology.kubernetes.io/region": "r1",
        }
        node = {"metadata": {"name": name, "labels": {**zone, "other": "x"}}}
        api.create_cluster_object("/api/v1/nodes", node)
        labels: JsonObject = {}
        for number in range(50):  # admission hears of the node a little later
            api.pod(f"a{number}")
            api.bind(f"a{number}", name)
            found = api.do("GET", api.path("pods", f"a{number}"))
            labels = found["metadata"].get("labels", {})
            if labels:
                break

        assert labels == zone

    def test_a_bound_pod_has_no_nomination(self, api: Api) -> None:
        api.pod("a")
        api.bind("a", "n1")

        status = api.refused(
            "PATCH",
            api.path("pods", "a/status"),
            {"status": {"nominatedNodeName": "n2"}},
            content_type=MERGE,
        )

        assert outline(status) == (
            422,
            "Invalid",
            (
                'Pod "a" is invalid: status.nominatedNodeName: Forbidden: '
                "may not be set on pods that are already bound to a node"
            ),
        )


class PodDeletionContract:
    """A pod on a node is given time."""

    def bound(self, api: Api) -> str:
        """Create a bound pod; return its path."""
        api.pod("a")
        assert api.bind("a", "n1").code == 201
        return api.path("pods", "a")

    def grace(self, pod: JsonObject) -> int | None:
        return pod["metadata"].get("deletionGracePeriodSeconds")

    def test_a_pod_without_a_node_goes_at_once(self, api: Api) -> None:
        created = api.pod("a")

        deleted = api.do("DELETE", api.path("pods", "a"))

        assert self.grace(deleted) == 0
        assert deleted["metadata"]["deletionTimestamp"]
        assert version(deleted) > version(created)
        assert deleted["metadata"]["generation"] == 2
        assert api.refused("GET", api.path("pods", "a"))["code"] == 404

    def test_a_pod_on_a_node_is_marked(self, api: Api) -> None:
        path = self.bound(api)

        marked = api.do("DELETE", path)

        assert self.grace(marked) == 30
        assert marked["metadata"]["generation"] == 2
        assert api.do("GET", path) == marked

    def test_grace_becomes_only_shorter(self, api: Api) -> None:
        path = self.bound(api)

        grace = [
            self.grace(api.do("DELETE", path, {"gracePeriodSeconds": seconds}))
            for seconds in (20, 25, 10)
        ]

        assert grace == [20, 20, 10]

    def test_no_grace_deletes_at_once(self, api: Api) -> None:
        path = self.bound(api)
        api.do("DELETE", path)

        gone = api.do("DELETE", path, {"gracePeriodSeconds": 0})

        assert self.grace(gone) == 0
        assert api.refused("GET", path)["code"] == 404

    def test_a_pod_that_is_done_goes_at_once(self, api: Api) -> None:
        path = self.bound(api)
        api.patch(f"{path}/status", {"status": {"phase": "Succeeded"}})

        api.do("DELETE", path)

        assert api.refused("GET", path)["code"] == 404

    def test_grace_can_be_a_parameter(self, api: Api) -> None:
        path = self.bound(api)

        assert self.grace(api.do("DELETE", f"{path}?gracePeriodSeconds=7")) == 7

    def test_a_marked_pod_keeps_its_mark(self, api: Api) -> None:
        path = self.bound(api)
        marked = api.do("DELETE", path)

        patched = api.patch(path, {"metadata": {"deletionTimestamp": None, "labels": {"x": "y"}}})

        assert patched["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]

    def test_finalizers_outlast_the_grace(self, api: Api) -> None:
        pod = a_pod("a")
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        api.do("POST", api.path("pods"), pod)
        api.bind("a", "n1")
        path = api.path("pods", "a")

        api.do("DELETE", path, {"gracePeriodSeconds": 0})
        held = api.do("GET", path)
        api.patch(path, {"metadata": {"finalizers": []}})

        assert self.grace(held) == 0
        assert api.refused("GET", path)["code"] == 404
