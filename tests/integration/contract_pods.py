"""The contract about pods: what a new one gets, and what may change later."""

from __future__ import annotations

from typing import Any

import pytest

from .contract import (
    MERGE,
    STRATEGIC,
    Api,
    a_pod,
    outline,
    plain,
)

JsonObject = dict[str, Any]

CONTAINER = {
    "name": "c",
    "image": "registry.example/app:1",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
TOLERATIONS = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
]
UPDATABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)\n"
)


def container(**fields: Any) -> JsonObject:
    """Return a container."""
    return {"name": "c", "image": "registry.example/app:1", **fields}


class PodCreationContract:
    """A new pod."""

    def test_the_defaults(self, api: Api) -> None:
        assert plain(api.pod("a")) == {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": "a",
                "namespace": api.namespace,
                "uid": "<set>",
                "resourceVersion": "<set>",
                "generation": 1,
            },
            "spec": {
                "containers": [CONTAINER],
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst",
                "securityContext": {},
                "schedulerName": "default-scheduler",
                "tolerations": TOLERATIONS,
                "priority": 0,
                "enableServiceLinks": True,
                "preemptionPolicy": "PreemptLowerPriority",
            },
            "status": {"phase": "Pending", "qosClass": "BestEffort"},
        }

    @pytest.mark.parametrize(
        ("image", "policy"),
        [
            ("app", "Always"),
            ("app:latest", "Always"),
            ("host.example:5000/app", "Always"),
            ("app:1", "IfNotPresent"),
            ("app@sha256:" + "0" * 64, "IfNotPresent"),
        ],
    )
    def test_when_an_image_is_pulled(self, api: Api, image: str, policy: str) -> None:
        pod = api.pod("a", containers=[{"name": "c", "image": image}])

        assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy

    def test_requests_are_limits_unless_given(self, api: Api) -> None:
        resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}

        pod = api.pod("a", containers=[container(resources=resources)])

        found = pod["spec"]["containers"][0]["resources"]
        assert found["requests"] == {"cpu": "500m", "memory": "1Gi"}

    def test_the_pod_as_a_whole_requests_what_its_containers_do(self, api: Api) -> None:
        resources = {"requests": {"cpu": "250m"}}
        containers = [container(resources=resources), container(name="d", resources=resources)]

        pod = api.pod(
            "a", containers=containers, resources={"limits": {"cpu": "2", "memory": "1Gi"}}
        )

        assert pod["spec"]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
        assert pod["status"]["qosClass"] == "Burstable"

    @pytest.mark.parametrize(
        ("given", "stored"),
        [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.2345", "1235m"),
            ("2000", "2k"),
            ("1e3", "1e3"),
            (3, "3"),
        ],
    )
    def test_amounts_are_spelled_one_way(self, api: Api, given: object, stored: str) -> None:
        pod = api.pod("a", containers=[container(resources={"requests": {"cpu": given}})])

        found = pod["spec"]["containers"][0]["resources"]["requests"]
        assert found == {"cpu": stored}

    @pytest.mark.parametrize(
        ("resources", "quality"),
        [
            ({}, "BestEffort"),
            ({"requests": {"cpu": "1"}}, "Burstable"),
            ({"limits": {"cpu": "1"}}, "Burstable"),
            ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
            (
                {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
                "Burstable",
            ),
            ({"limits": {"example.com/x": "1"}}, "BestEffort"),
        ],
    )
    def test_the_quality_of_service(self, api: Api, resources: JsonObject, quality: str) -> None:
        pod = api.pod("a", containers=[container(resources=resources)])

        assert pod["status"]["qosClass"] == quality

    def test_tolerations_that_are_there_are_not_added(self, api: Api) -> None:
        own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}

        pod = api.pod("a", tolerations=[own])
        tolerant = api.pod("b", tolerations=[{"operator": "Exists"}])

        assert pod["spec"]["tolerations"] == [own, TOLERATIONS[1]]
        assert tolerant["spec"]["tolerations"] == [{"operator": "Exists"}]

    def test_host_ports_on_the_host_network(self, api: Api) -> None:
        ports = [{"containerPort": 80}]

        pod = api.pod("a", hostNetwork=True, containers=[container(ports=ports)])

        assert pod["spec"]["containers"][0]["ports"] == [
            {"hostPort": 80, "containerPort": 80, "protocol": "TCP"}
        ]

    def test_volumes_and_probes_have_defaults(self, api: Api) -> None:
        volumes = [{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}]
        probe = {"httpGet": {"port": 80}}

        pod = api.pod("a", volumes=volumes, containers=[container(readinessProbe=probe)])

        assert pod["spec"]["volumes"] == [
            {"name": "v", "emptyDir": {}},
            {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}},
        ]
        assert pod["spec"]["containers"][0]["readinessProbe"] == {
            "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        }

    def test_gates_hold_a_pod_back(self, api: Api) -> None:
        pod = api.pod("a", schedulingGates=[{"name": "example.com/wait"}])

        (condition,) = pod["status"]["conditions"]
        assert condition.pop("lastTransitionTime")
        assert plain(condition) == {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }

    def test_own_labels_go_into_selectors(self, api: Api) -> None:
        selector = {"matchLabels": {"app": "web"}}
        term = {
            "labelSelector": selector,
            "topologyKey": "zone",
            "matchLabelKeys": ["version", "missing"],
            "mismatchLabelKeys": ["tenant"],
        }
        constraint = {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector,
            "matchLabelKeys": ["version"],
        }
        affinity = {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": term}
                ]
            },
        }
        pod = a_pod("a", affinity=affinity, topologySpreadConstraints=[constraint])
        pod["metadata"]["labels"] = {"app": "web", "version": "7", "tenant": "t"}

        spec = api.do("POST", api.path("pods"), pod)["spec"]

        version_in = {"key": "version", "operator": "In", "values": ["7"]}
        tenant_out = {"key": "tenant", "operator": "NotIn", "values": ["t"]}
        near = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        far = spec["affinity"]["podAntiAffinity"]
        (wish,) = far["preferredDuringSchedulingIgnoredDuringExecution"]
        for found in (near[0], wish["podAffinityTerm"]):
            assert found["labelSelector"] == {
                "matchLabels": {"app": "web"},
                "matchExpressions": [version_in, tenant_out],
            }
        (spread,) = spec["topologySpreadConstraints"]
        assert spread["labelSelector"]["matchExpressions"] == [version_in]

    def test_a_pod_can_be_created_on_a_node(self, api: Api) -> None:
        name = api.unique("node")
        labels = {"topology.kubernetes.io/zone": "z1", "other": "x"}
        api.create_cluster_object("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})

        pod = api.pod("a", nodeName=name)

        assert pod["spec"]["nodeName"] == name


class PodUpdateContract:
    """A pod that exists changes little."""

    def test_an_image_may_change_and_counts_as_a_generation(self, api: Api) -> None:
        api.pod("a")
        body = {"spec": {"containers": [{"name": "c", "image": "registry.example/app:2"}]}}

        patched = api.patch(api.path("pods", "a"), body, kind=STRATEGIC)

        assert patched["spec"]["containers"][0]["image"] == "registry.example/app:2"
        assert patched["metadata"]["generation"] == 2

    def test_labels_do_not_count(self, api: Api) -> None:
        api.pod("a")

        patched = api.patch(api.path("pods", "a"), {"metadata": {"labels": {"x": "y"}}})

        assert patched["metadata"]["generation"] == 1

    @pytest.mark.parametrize(
        "spec",
        [{"nodeName": "n"}, {"schedulerName": "other"}, {"nodeSelector": {"a": "b"}}],
    )
    def test_most_of_the_spec_is_fixed(self, api: Api, spec: JsonObject) -> None:
        created = api.pod("a")

        status = api.refused("PATCH", api.path("pods", "a"), {"spec": spec}, content_type=MERGE)

        code, reason, message = outline(status)
        assert (code, reason) == (422, "Invalid")
        assert message.startswith(f'Pod "a" is invalid: spec: Forbidden: {UPDATABLE}')
        assert api.do("GET", api.path("pods", "a")) == created

    def test_containers_stay(self, api: Api) -> None:
        api.pod("a")
        body = {"spec": {"containers": [{"name": "d", "image": "x"}]}}

        status = api.refused("PATCH", api.path("pods", "a"), body, content_type=STRATEGIC)

        assert outline(status) == (
            422,
            "Invalid",
            (
                'Pod "a" is invalid: spec.containers: Forbidden: '
                "pod updates may not add or remove containers"
            ),
        )

    def test_tolerations_can_be_added_only(self, api: Api) -> None:
        api.pod("a", tolerations=[{"key": "x", "operator": "Exists"}])
        path = api.path("pods", "a")
        more = {"key": "y", "operator": "Exists"}

        added = api.patch(
            path, {"spec": {"tolerations": [{"key": "x", "operator": "Exists"}, more]}}
        )
        status = api.refused("PATCH", path, {"spec": {"tolerations": []}}, content_type=MERGE)

        assert more in added["spec"]["tolerations"]
        assert outline(status) == (
            422,
            "Invalid",
            (
                'Pod "a" is invalid: spec.tolerations: Forbidden: '
                "existing toleration can not be modified except its tolerationSeconds"
            ),
        )

    def test_gates_can_be_removed_only(self, api: Api) -> None:
        api.pod("a", schedulingGates=[{"name": "one"}, {"name": "two"}])
        path = api.path("pods", "a")
        gates = {"spec": {"schedulingGates": [{"name": "two"}, {"name": "three"}]}}

        status = api.refused("PATCH", path, gates, content_type=MERGE)
        fewer = api.patch(path, {"spec": {"schedulingGates": [{"name": "two"}]}})
        none = api.patch(path, {"spec": {"schedulingGates": None}})

        assert outline(status) == (
            422,
            "Invalid",
            (
                'Pod "a" is invalid: spec.schedulingGates[1].name: Forbidden: '
                "only deletion is allowed, but found new scheduling gate 'three'"
            ),
        )
        assert fewer["spec"]["schedulingGates"] == [{"name": "two"}]
        assert "schedulingGates" not in none["spec"]
        assert none["metadata"]["generation"] == 3

    def test_a_gated_pod_can_be_narrowed(self, api: Api) -> None:
        api.pod("a", schedulingGates=[{"name": "wait"}], nodeSelector={"a": "b"})
        path = api.path("pods", "a")

        narrowed = api.patch(path, {"spec": {"nodeSelector": {"c": "d"}}})
        status = api.refused(
            "PATCH", path, {"spec": {"nodeSelector": {"a": "x"}}}, content_type=MERGE
        )

        assert narrowed["spec"]["nodeSelector"] == {"a": "b", "c": "d"}
        assert outline(status) == (
            422,
            "Invalid",
            (
                'Pod "a" is invalid: spec.nodeSelector: Invalid value: {"a":"x","c":"d"}: '
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            ),
        )

    def test_a_nomination_is_set_and_cleared(self, api: Api) -> None:
        api.pod("a")
        path = api.path("pods", "a/status")

        nominated = api.patch(path, {"status": {"nominatedNodeName": "n1"}})
        cleared = api.patch(path, {"status": {"nominatedNodeName": ""}})

        assert nominated["status"]["nominatedNodeName"] == "n1"
        assert not cleared["status"].get("nominatedNodeName")

    def test_the_quality_of_service_is_fixed(self, api: Api) -> None:
        api.pod("a")

        status = api.refused(
            "PATCH",
            api.path("pods", "a/status"),
            {"status": {"qosClass": "Guaranteed"}},
            content_type=MERGE,
        )

        assert outline(status) == (
            422,
            "Invalid",
            'Pod "a" is invalid: status.qosClass: Invalid value: "Guaranteed": field is immutable',
        )
