"""The contract about statuses, which have a path of their own, and about namespaces."""

from __future__ import annotations

from typing import Any

from .contract import (
    Api,
    names,
    outline,
)

JsonObject = dict[str, Any]


class StatusContract:
    """The status belongs to its subresource, the rest does not."""

    def test_a_status_in_an_object_is_ignored(self, api: Api) -> None:
        api.pod("a")

        patched = api.patch(api.path("pods", "a"), {"status": {"phase": "Running"}})

        assert patched["status"] == {"phase": "Pending", "qosClass": "BestEffort"}

    def test_a_spec_in_a_status_is_ignored(self, api: Api) -> None:
        api.pod("a")
        body = {"spec": {"schedulerName": "other"}, "status": {"message": "hello"}}

        patched = api.patch(api.path("pods", "a/status"), body)

        assert patched["spec"]["schedulerName"] == "default-scheduler"
        assert patched["status"]["message"] == "hello"
        assert patched["metadata"]["generation"] == 1

    def test_a_status_is_updated_as_a_whole(self, api: Api) -> None:
        name = api.unique("node")
        node = {"metadata": {"name": name}, "status": {"capacity": {"cpu": "1"}}}
        created = api.create_cluster_object("/api/v1/nodes", node)
        created["status"] = {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "2"}}
        created["spec"]["unschedulable"] = True

        updated = api.do("PUT", f"/api/v1/nodes/{name}/status", created)

        assert updated["status"]["capacity"] == {"cpu": "2"}
        assert "unschedulable" not in updated["spec"]

    def test_a_claim_keeps_its_labels_when_its_status_changes(self, api: Api) -> None:
        request = {"name": "r", "exactly": {"deviceClassName": "c"}}
        path = api.path("resourceclaims", group="resource.k8s.io")
        claim = {"metadata": {"name": "a"}, "spec": {"devices": {"requests": [request]}}}
        created = api.do("POST", path, claim)
        body = {"metadata": {"labels": {"x": "y"}}}

        patched = api.patch(f"{path}/a/status", body)

        assert created["spec"]["devices"]["requests"][0]["exactly"] == {
            "deviceClassName": "c",
            "allocationMode": "ExactCount",
            "count": 1,
        }
        assert "labels" not in patched["metadata"]

    def test_a_status_can_be_read(self, api: Api) -> None:
        created = api.pod("a")

        assert api.do("GET", api.path("pods", "a/status")) == created


class NamespaceContract:
    """Namespaces come and go with what is in them."""

    def test_a_namespace_is_labelled_with_its_name(self, api: Api) -> None:
        found = api.do("GET", f"/api/v1/namespaces/{api.namespace}")

        assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": api.namespace}
        assert found["spec"] == {"finalizers": ["kubernetes"]}
        assert found["status"] == {"phase": "Active"}

    def test_some_namespaces_are_always_there(self, api: Api) -> None:
        found = names(api.do("GET", "/api/v1/namespaces"))

        assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= set(found)

    def test_some_namespaces_cannot_be_deleted(self, api: Api) -> None:
        status = api.refused("DELETE", "/api/v1/namespaces/default")

        assert outline(status) == (
            403,
            "Forbidden",
            'namespaces "default" is forbidden: this namespace may not be deleted',
        )

    def test_a_terminating_namespace_takes_nothing_new(self, api: Api) -> None:
        api.config_map("held", finalizers=["example.com/hold"])

        deleted = api.do("DELETE", f"/api/v1/namespaces/{api.namespace}")
        status = api.refused("POST", api.path("configmaps"), {"metadata": {"name": "a"}})
        api.patch(api.path("configmaps", "held"), {"metadata": {"finalizers": None}})

        assert deleted["status"]["phase"] == "Terminating"
        assert deleted["metadata"]["deletionTimestamp"]
        assert outline(status) == (
            403,
            "Forbidden",
            (
                f'configmaps "a" is forbidden: unable to create new content in namespace '
                f"{api.namespace} because it is being terminated"
            ),
        )
        assert status["details"]["causes"] == [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {api.namespace} is being terminated",
                "field": "metadata.namespace",
            }
        ]
