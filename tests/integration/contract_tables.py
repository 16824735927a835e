"""The contract about what people see: tables and discovery."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.embedded.resources import RESOURCES, ServedResource

from .contract import TABLE, Api, a_pod, names, version

JsonObject = dict[str, Any]

COLUMNS = {
    "pods": "Name Ready Status Restarts Age IP* Node* Nominated-Node* Readiness-Gates*",
    "nodes": "Name Status Roles Age Version Internal-IP* External-IP* OS-Image* Kernel-Version* "
    "Container-Runtime*",
    "namespaces": "Name Status Age",
    "events": "Last-Seen Type Reason Object Subobject* Source* Message First-Seen* Count* Name*",
    "jobs": "Name Status Completions Duration Age Containers* Images* Selector*",
    "services": "Name Type Cluster-IP External-IP Port(s) Age Selector*",
    "configmaps": "Name Data Age",
    "secrets": "Name Type Data Age",
    "serviceaccounts": "Name Age",
    "deployments": "Name Ready Up-to-date Available Age Containers* Images* Selector*",
    "replicasets": "Name Desired Current Ready Age Containers* Images* Selector*",
    "persistentvolumes": "Name Capacity Access-Modes Reclaim-Policy Status Claim StorageClass "
    "VolumeAttributesClass Reason Age VolumeMode*",
    "persistentvolumeclaims": "Name Status Volume Capacity Access-Modes StorageClass "
    "VolumeAttributesClass Age VolumeMode*",
    "storageclasses": "Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age",
    "poddisruptionbudgets": "Name Min-Available Max-Unavailable Allowed-Disruptions Age",
    "priorityclasses": "Name Value Global-Default Age PreemptionPolicy",
    "leases": "Name Holder Age",
    "resourceclaims": "Name State Age",
    "resourceslices": "Name Node Driver Pool Age",
}


def cells(table: JsonObject) -> dict[str, Any]:
    """Return the cells of a table's only row by the names of their columns."""
    (row,) = table["rows"]
    columns = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(columns, row["cells"], strict=True))


def by_plural(plural: str) -> ServedResource:
    """Return a resource."""
    return next(resource for resource in RESOURCES if resource.plural == plural)


class TableContract:
    """Lists as tables."""

    @pytest.mark.parametrize("plural", COLUMNS)
    def test_the_columns(self, api: Api, plural: str) -> None:
        table = api.do("GET", f"{by_plural(plural).prefix}/{plural}?limit=1", accept=TABLE)

        assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        found = [
            column["name"].replace(" ", "-") + "*" * column["priority"]
            for column in table["columnDefinitions"]
        ]
        assert found == COLUMNS[plural].split()
        assert [c["format"] for c in table["columnDefinitions"] if c["name"] == "Name"] == ["name"]

    def test_types_of_columns(self, api: Api) -> None:
        table = api.do("GET", "/apis/scheduling.k8s.io/v1/priorityclasses", accept=TABLE)

        types = [column["type"] for column in table["columnDefinitions"]]
        assert types == ["string", "integer", "boolean", "string", "string"]

    def test_a_row_carries_the_metadata(self, api: Api) -> None:
        created = api.config_map("a")

        table = api.do("GET", api.path("configmaps"), accept=TABLE)

        assert table["rows"][0]["object"] == {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": created["metadata"],
        }

    def test_a_row_can_carry_everything_or_nothing(self, api: Api) -> None:
        created = api.config_map("a")
        path = api.path("configmaps", "a")

        whole = api.do("GET", f"{path}?includeObject=Object", accept=TABLE)
        nothing = api.do("GET", f"{path}?includeObject=None", accept=TABLE)

        assert whole["rows"][0]["object"] == created
        assert nothing["rows"][0]["object"] is None
        assert version(whole) == version(created)

    def test_a_table_in_pages(self, api: Api) -> None:
        for name in ("a", "b"):
            api.config_map(name)

        table = api.do("GET", f"{api.path('configmaps')}?limit=1", accept=TABLE)

        assert table["metadata"]["remainingItemCount"] == 1
        assert table["metadata"]["continue"]

    def test_a_table_is_watched(self, api: Api) -> None:
        start = version(api.do("GET", api.path("configmaps")))
        with api.watch(api.path("configmaps"), accept=TABLE, resourceVersion=start) as watch:
            api.config_map("a")
            api.config_map("b")
            first, second = watch.next(), watch.next()

        assert first["object"]["columnDefinitions"][0]["name"] == "Name"
        assert second["object"]["columnDefinitions"] is None
        assert second["object"]["rows"][0]["cells"][:2] == ["b", 1]

    def test_a_refusal_is_no_table(self, api: Api) -> None:
        answer = api.ask("GET", api.path("pods", "a"), accept=TABLE)

        assert (answer.code, answer.body["kind"]) == (404, "Status")

    def test_a_pending_pod(self, api: Api) -> None:
        api.pod("a")

        row = cells(api.do("GET", api.path("pods", "a"), accept=TABLE))

        assert row.pop("Age").endswith("s")
        assert row == {
            "Name": "a",
            "Ready": "0/1",
            "Status": "Pending",
            "Restarts": "0",
            "IP": "<none>",
            "Node": "<none>",
            "Nominated Node": "<none>",
            "Readiness Gates": "<none>",
        }

    @pytest.mark.parametrize(
        ("status", "shown"),
        [
            (
                {
                    "phase": "Running",
                    "containerStatuses": [{"name": "c", "ready": True, "state": {"running": {}}}],
                },
                ("1/1", "Running", "0"),
            ),
            (
                {
                    "phase": "Pending",
                    "containerStatuses": [
                        {"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
                    ],
                },
                ("0/1", "ImagePullBackOff", "0"),
            ),
            (
                {
                    "phase": "Failed",
                    "containerStatuses": [
                        {"name": "c", "state": {"terminated": {"exitCode": 3}}, "restartCount": 2}
                    ],
                },
                ("0/1", "ExitCode:3", "2"),
            ),
            (
                {
                    "phase": "Succeeded",
                    "containerStatuses": [
                        {
                            "name": "c",
                            "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
                        }
                    ],
                },
                ("0/1", "Completed", "0"),
            ),
            (
                {
                    "phase": "Pending",
                    "initContainerStatuses": [{"name": "i", "state": {"running": {}}}],
                },
                ("0/1", "Init:0/1", "0"),
            ),
            (
                {
                    "phase": "Pending",
                    "initContainerStatuses": [
                        {"name": "i", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
                    ],
                },
                ("0/1", "Init:Error", "0"),
            ),
            ({"phase": "Failed", "reason": "Evicted"}, ("0/1", "Evicted", "0")),
        ],
    )
    def test_the_state_of_a_pod(
        self, api: Api, status: JsonObject, shown: tuple[str, str, str]
    ) -> None:
        init = [{"name": "i", "image": "registry.example/init:1"}]
        api.pod("a", initContainers=init if "initContainerStatuses" in status else [])
        for group in ("containerStatuses", "initContainerStatuses"):
            for each in status.get(group, []):
                each.update(
                    {"image": "x", "imageID": "", "restartCount": each.get("restartCount", 0)}
                )
                each.setdefault("ready", False)
        api.patch(api.path("pods", "a/status"), {"status": status})

        row = cells(api.do("GET", api.path("pods", "a"), accept=TABLE))

        assert (row["Ready"], row["Status"], row["Restarts"]) == shown

    def test_a_pod_that_is_done_is_marked(self, api: Api) -> None:
        api.pod("a")
        api.patch(api.path("pods", "a/status"), {"status": {"phase": "Succeeded"}})

        (row,) = api.do("GET", api.path("pods"), accept=TABLE)["rows"]

        assert row["conditions"] == [
            {
                "type": "Completed",
                "status": "True",
                "reason": "Succeeded",
                "message": "The pod has completed successfully.",
            }
        ]

    def test_a_gated_and_a_terminating_pod(self, api: Api) -> None:
        api.pod("gated", schedulingGates=[{"name": "wait"}])
        api.pod("leaving")
        api.bind("leaving", "n1")
        api.do("DELETE", api.path("pods", "leaving"))

        rows = api.do("GET", api.path("pods"), accept=TABLE)["rows"]

        assert [row["cells"][2] for row in rows] == ["SchedulingGated", "Terminating"]

    def test_a_node(self, api: Api) -> None:
        name = api.unique("node")
        node = {
            "metadata": {
                "name": name,
                "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"},
            },
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
                "nodeInfo": {
                    "machineID": "",
                    "systemUUID": "",
                    "bootID": "",
                    "kernelVersion": "6.1",
                    "osImage": "Linux",
                    "containerRuntimeVersion": "cri://1",
                    "kubeletVersion": "v1.37.1",
                    "kubeProxyVersion": "",
                    "operatingSystem": "linux",
                    "architecture": "amd64",
                },
            },
        }
        api.create_cluster_object("/api/v1/nodes", node)

        row = cells(api.do("GET", f"/api/v1/nodes/{name}", accept=TABLE))

        row.pop("Age")
        assert row == {
            "Name": name,
            "Status": "Ready,SchedulingDisabled",
            "Roles": "edge,worker",
            "Version": "v1.37.1",
            "Internal-IP": "10.1.2.3",
            "External-IP": "<none>",
            "OS-Image": "Linux",
            "Kernel-Version": "6.1 (amd64)",
            "Container-Runtime": "cri://1",
        }

    def test_an_event(self, api: Api) -> None:
        event = {
            "metadata": {"name": "e"},
            "involvedObject": {
                "kind": "Pod",
                "namespace": api.namespace,
                "name": "web",
                "fieldPath": "spec.x",
            },
            "reason": "Pulled",
            "message": " hello \n",
            "type": "Normal",
            "source": {"component": "kubelet", "host": "n1"},
            "firstTimestamp": "2020-01-01T00:00:00Z",
            "lastTimestamp": "2020-01-01T00:00:00Z",
            "count": 3,
        }
        api.do("POST", api.path("events"), event)

        row = cells(api.do("GET", api.path("events", "e"), accept=TABLE))

        assert row.pop("Last Seen") == row.pop("First Seen")
        assert row == {
            "Type": "Normal",
            "Reason": "Pulled",
            "Object": "pod/web",
            "Subobject": "spec.x",
            "Source": "kubelet, n1",
            "Message": "hello",
            "Count": 3,
            "Name": "e",
        }

    def test_a_job(self, api: Api) -> None:
        template = {"spec": {**a_pod("x")["spec"], "restartPolicy": "Never"}}
        path = api.path("jobs", group="batch")
        api.do(
            "POST",
            path,
            {"metadata": {"name": "j"}, "spec": {"completions": 3, "template": template}},
        )

        row = cells(api.do("GET", f"{path}/j", accept=TABLE))

        assert (row["Status"], row["Completions"], row["Duration"]) == ("Running", "0/3", "")
        assert (row["Containers"], row["Images"]) == ("c", "registry.example/app:1")
        assert row["Selector"].startswith("batch.kubernetes.io/controller-uid=")

    def test_a_deployment_and_a_claim(self, api: Api) -> None:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": a_pod("x")["spec"]}
        spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        path = api.path("deployments", group="apps")
        api.do("POST", path, {"metadata": {"name": "d"}, "spec": spec})
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claims = api.path("persistentvolumeclaims")
        api.do("POST", claims, {"metadata": {"name": "c"}, "spec": claim})

        row = cells(api.do("GET", f"{path}/d", accept=TABLE))
        other = cells(api.do("GET", f"{claims}/c", accept=TABLE))

        assert (row["Ready"], row["Available"], row["Selector"]) == ("0/2", 0, "a=b")
        assert (other["Status"], other["Capacity"], other["VolumeMode"]) == (
            "Pending",
            "",
            "Filesystem",
        )


#: A kube-apiserver serves others only if it is told to.
STABLE = [each for each in RESOURCES if each.version == "v1"]


class DiscoveryContract:
    """What there is."""

    @pytest.mark.parametrize("resource", STABLE, ids=lambda r: f"{r.plural}.{r.group}")
    def test_a_resource(self, api: Api, resource: ServedResource) -> None:
        found = api.do("GET", resource.prefix)

        assert (found["kind"], found["groupVersion"]) == ("APIResourceList", resource.api_version)
        (entry,) = [each for each in found["resources"] if each["name"] == resource.plural]
        entry.pop("storageVersionHash", None)
        expected: JsonObject = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(resource.verbs),
        }
        if resource.short_names:
            expected["shortNames"] = list(resource.short_names)
        if resource.categories:
            expected["categories"] = list(resource.categories)
        assert entry == expected
        has_status = f"{resource.plural}/status" in [e["name"] for e in found["resources"]]
        assert has_status == resource.status

    def test_groups(self, api: Api) -> None:
        listed = {group["name"]: group for group in api.do("GET", "/apis")["groups"]}

        for group in {resource.group for resource in STABLE} - {""}:
            assert listed[group]["preferredVersion"]["version"] == "v1"
            assert api.do("GET", f"/apis/{group}")["kind"] == "APIGroup"
        assert api.do("GET", "/api")["versions"] == ["v1"]

    def test_everything_at_once(self, api: Api) -> None:
        accept = (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
        )

        core = api.ask("GET", "/api", accept=accept)
        others = api.do("GET", "/apis", accept=accept)

        assert core.content_type == (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        )
        (group,) = core.body["items"]
        (pods,) = [r for r in group["versions"][0]["resources"] if r["resource"] == "pods"]
        subresources = {each["subresource"] for each in pods.pop("subresources")}
        assert pods == {
            "resource": "pods",
            "responseKind": {"group": "", "version": "", "kind": "Pod"},
            "scope": "Namespaced",
            "singularResource": "pod",
            "verbs": list(by_plural("pods").verbs),
            "shortNames": ["po"],
            "categories": ["all"],
        }
        assert {"binding", "status"} <= subresources
        assert {"apps", "batch"} <= set(names(others))

    def test_openapi_tells_that_fields_are_checked_by_the_server(self, api: Api) -> None:
        index = api.do("GET", "/openapi/v3")
        document = api.do("GET", index["paths"]["apis/apps/v1"]["serverRelativeURL"])

        path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        parameters = [each["name"] for each in document["paths"][path]["patch"]["parameters"]]
        assert "fieldValidation" in parameters
