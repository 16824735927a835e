"""The contract about pods that are refused, and about their priority."""

from __future__ import annotations

from typing import Any

import pytest

from .contract import (
    MERGE,
    Api,
    a_pod,
    outline,
)

JsonObject = dict[str, Any]

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def container(**fields: Any) -> JsonObject:
    """Return a container."""
    return {"name": "c", "image": "registry.example/app:1", **fields}


def refused_spec(api: Api, **spec: Any) -> str:
    """Create a pod that is not valid; return what is said about it."""
    status = api.refused("POST", api.path("pods"), a_pod("a", **spec))
    assert (status["code"], status["reason"]) == (422, "Invalid"), status
    message: str = status["message"]
    return message.removeprefix('Pod "a" is invalid: ')


class PriorityContract:
    """A pod's priority is its class's."""

    def a_class(self, api: Api, **fields: Any) -> str:
        name = api.unique("class")
        api.create_cluster_object(PRIORITY_CLASSES, {"metadata": {"name": name}, **fields})
        return name

    def created(self, api: Api, pod: JsonObject) -> JsonObject:
        """Create a pod, once admission has heard of its class."""
        for _ in range(50):
            answer = api.ask("POST", api.path("pods"), pod)
            if answer.code != 403 or "no PriorityClass" not in answer.body["message"]:
                break
        found: JsonObject = answer.body
        return found

    def test_a_class_gives_priority_and_policy(self, api: Api) -> None:
        name = self.a_class(api, value=1000, preemptionPolicy="Never")

        spec = self.created(api, a_pod("a", priorityClassName=name))["spec"]

        found = [spec[k] for k in ("priorityClassName", "priority", "preemptionPolicy")]
        assert found == [name, 1000, "Never"]

    @pytest.mark.parametrize(
        ("name", "priority"),
        [("system-node-critical", 2000001000), ("system-cluster-critical", 2000000000)],
    )
    def test_system_classes_are_there(self, api: Api, name: str, priority: int) -> None:
        pod = api.pod("a", priorityClassName=name)

        assert pod["spec"]["priority"] == priority

    def test_an_unknown_class(self, api: Api) -> None:
        status = api.refused("POST", api.path("pods"), a_pod("a", priorityClassName="unknown"))

        assert outline(status) == (
            403,
            "Forbidden",
            'pods "a" is forbidden: no PriorityClass with name unknown was found',
        )
        assert status["details"] == {"name": "a", "kind": "pods"}

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            (
                {"priority": 5},
                (
                    "the integer value of priority (5) must not be provided in pod spec; priority "
                    "admission controller computed 0 from the given PriorityClass name"
                ),
            ),
            (
                {"preemptionPolicy": "Never"},
                (
                    "the string value of PreemptionPolicy (Never) must not be provided in pod "
                    "spec; priority admission controller computed PreemptLowerPriority from the "
                    "given PriorityClass name"
                ),
            ),
        ],
    )
    def test_a_priority_of_its_own(self, api: Api, spec: JsonObject, message: str) -> None:
        status = api.refused("POST", api.path("pods"), a_pod("a", **spec))

        assert outline(status) == (403, "Forbidden", f'pods "a" is forbidden: {message}')

    def test_the_computed_priority_may_be_given(self, api: Api) -> None:
        assert api.pod("a", priority=0)["spec"]["priority"] == 0

    def test_a_default_class(self, api: Api) -> None:
        name = self.a_class(api, value=7, globalDefault=True)
        other = api.unique("class")
        second = {"metadata": {"name": other}, "value": 8, "globalDefault": True}

        for _ in range(50):  # admission hears of the class a little later
            pod = api.do("POST", f"{api.path('pods')}?dryRun=All", a_pod("a"))
            if pod["spec"]["priority"]:
                break
        status = api.refused("POST", PRIORITY_CLASSES, second)

        assert (pod["spec"]["priority"], pod["spec"]["priorityClassName"]) == (7, name)
        assert outline(status) == (
            403,
            "Forbidden",
            (
                f'priorityclasses.scheduling.k8s.io "{other}" is forbidden: '
                f"PriorityClass {name} is already marked as default. Only one default can exist"
            ),
        )

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            (
                "high",
                1000000001,
                "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
            ),
            (
                "system-x",
                1,
                (
                    "metadata.name: Forbidden: priority class names with 'system-' prefix are "
                    "reserved for system use only. error: system-x is not a known system priority "
                    "class"
                ),
            ),
        ],
    )
    def test_classes_are_checked(self, api: Api, name: str, value: int, message: str) -> None:
        obj = {"metadata": {"name": name}, "value": value}

        status = api.refused("POST", PRIORITY_CLASSES, obj)

        expected = f'PriorityClass.scheduling.k8s.io "{name}" is invalid: {message}'
        assert outline(status) == (422, "Invalid", expected)

    def test_a_value_does_not_change(self, api: Api) -> None:
        name = self.a_class(api, value=1)

        status = api.refused(
            "PATCH", f"{PRIORITY_CLASSES}/{name}", {"value": 2}, content_type=MERGE
        )

        assert status["message"].endswith("value: Forbidden: may not be changed in an update.")


class PodValidationContract:
    """Pods that are refused."""

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ({"containers": []}, "spec.containers: Required value"),
            (
                {"containers": [{"name": "c"}]},
                "spec.containers[0].image: Required value",
            ),
            (
                {"containers": [container(), container()]},
                'spec.containers[1].name: Duplicate value: "c"',
            ),
            (
                {"containers": [container()], "initContainers": [container()]},
                'spec.initContainers[0].name: Duplicate value: "c"',
            ),
            (
                {"restartPolicy": "Sometimes"},
                (
                    'spec.restartPolicy: Unsupported value: "Sometimes": supported values: '
                    '"Always", "OnFailure", "Never"'
                ),
            ),
            (
                {"containers": [container(resources={"requests": {"cpu": "-1"}})]},
                (
                    'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": '
                    "must be greater than or equal to 0"
                ),
            ),
            (
                {
                    "containers": [
                        container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})
                    ]
                },
                (
                    'spec.containers[0].resources.requests: Invalid value: "2": '
                    "must be less than or equal to cpu limit of 1"
                ),
            ),
            (
                {"containers": [container(resources={"requests": {"example.com/x": "1"}})]},
                (
                    "spec.containers[0].resources.limits: Required value: "
                    "Limit must be set for non overcommitable resources"
                ),
            ),
            (
                {"containers": [container(resources={"limits": {"example.com/x": "500m"}})]},
                (
                    '[spec.containers[0].resources.limits[example.com/x]: Invalid value: "500m": '
                    "must be an integer, spec.containers[0].resources.requests[example.com/x]: "
                    'Invalid value: "500m": must be an integer]'
                ),
            ),
            (
                {"containers": [container(ports=[{"containerPort": 70000}])]},
                (
                    "spec.containers[0].ports[0].containerPort: Invalid value: 70000: "
                    "must be between 1 and 65535, inclusive"
                ),
            ),
            (
                {
                    "containers": [
                        container(ports=[{"containerPort": 1, "hostPort": 9}]),
                        container(name="d", ports=[{"containerPort": 2, "hostPort": 9}]),
                    ]
                },
                'spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//9"',
            ),
            (
                {"containers": [container(volumeMounts=[{"name": "v", "mountPath": "/v"}])]},
                'spec.containers[0].volumeMounts[0].name: Not found: "v"',
            ),
            (
                {"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]},
                (
                    'spec.tolerations[0].operator: Invalid value: "x": '
                    "value must be empty when `operator` is 'Exists'"
                ),
            ),
            (
                {"tolerations": [{"key": "a", "operator": "Near"}]},
                (
                    'spec.tolerations[0].operator: Unsupported value: "Near": '
                    'supported values: "Equal", "Exists"'
                ),
            ),
            (
                {"tolerations": [{"key": "a", "tolerationSeconds": 1}]},
                (
                    'spec.tolerations[0].effect: Invalid value: "": '
                    "effect must be 'NoExecute' when `tolerationSeconds` is set"
                ),
            ),
            (
                {"schedulingGates": [{"name": "a"}, {"name": "a"}]},
                'spec.schedulingGates[1]: Duplicate value: "a"',
            ),
            (
                {"schedulingGates": [{"name": "a"}], "nodeName": "n"},
                (
                    "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been "
                    "cleared"
                ),
            ),
            (
                {
                    "topologySpreadConstraints": [
                        {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Maybe"}
                    ]
                },
                (
                    "[spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater "
                    "than zero, spec.topologySpreadConstraints[0].topologyKey: Required value: can "
                    "not be empty, spec.topologySpreadConstraints[0].whenUnsatisfiable: "
                    'Unsupported value: "Maybe": supported values: "DoNotSchedule", '
                    '"ScheduleAnyway"]'
                ),
            ),
            (
                {
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": []
                            }
                        }
                    }
                },
                (
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
                    "nodeSelectorTerms: Required value: must have at least one node selector term"
                ),
            ),
            (
                {
                    "affinity": {
                        "nodeAffinity": {
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "weight": 200,
                                    "preference": {
                                        "matchExpressions": [{"key": "a", "operator": "Gt"}]
                                    },
                                }
                            ]
                        }
                    }
                },
                (
                    "[spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]."
                    "weight: Invalid value: 200: must be in the range 1-100, spec.affinity."
                    "nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference."
                    "matchExpressions[0].values: Required value: must be specified single value "
                    "when `operator` is 'Lt' or 'Gt']"
                ),
            ),
            (
                {
                    "affinity": {
                        "podAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [
                                {"topologyKey": "zone", "matchLabelKeys": ["a"]}
                            ]
                        }
                    }
                },
                (
                    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
                    "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"
                ),
            ),
            (
                {"containers": [container(resources={"claims": [{"name": "r"}]})]},
                (
                    'spec.containers[0].resources.claims[0]: Not found: "r": must be one of the '
                    "names in pod.spec.resourceClaims which is empty"
                ),
            ),
            (
                {"containers": [container(resources={"limits": {"hugepages-2Mi": "3Mi"}})]},
                (
                    '[spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": '
                    "3Mi is not positive integer multiple of hugepages-2Mi, "
                    "spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "
                    '"3Mi": 3Mi is not positive integer multiple of hugepages-2Mi, '
                    "spec.containers[0].resources: Forbidden: HugePages require cpu or memory]"
                ),
            ),
            (
                {
                    "hostNetwork": True,
                    "containers": [container(ports=[{"containerPort": 1, "hostPort": 2}])],
                },
                (
                    "spec.containers[0].ports[0].hostPort: Invalid value: 2: must match "
                    "`containerPort` when `hostNetwork` is true"
                ),
            ),
            (
                {"containers": [container(resources={"requests": {"gpu": "1"}})]},
                (
                    '[spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a '
                    "standard resource type or fully qualified, "
                    'spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a '
                    "standard resource for containers]"
                ),
            ),
            (
                {"resourceClaims": [{"name": "r"}]},
                (
                    'spec.resourceClaims[0]: Invalid value: {"Name":"r","ResourceClaimName":null,'
                    '"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, '
                    "`resourceClaimTemplateName`"
                ),
            ),
        ],
    )
    def test_what_is_not_valid(self, api: Api, spec: JsonObject, message: str) -> None:
        assert refused_spec(api, **spec) == message

    def test_an_amount_must_be_a_quantity(self, api: Api) -> None:
        resources = {"requests": {"cpu": "much"}}
        pod = a_pod("a", containers=[container(resources=resources)])

        status = api.refused("POST", api.path("pods"), pod)

        assert outline(status) == (
            400,
            "BadRequest",
            (
                'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular '
                "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
        )

    def test_a_field_must_have_its_type(self, api: Api) -> None:
        status = api.refused("POST", api.path("pods"), a_pod("a", containers="none"))

        assert (status["code"], status["reason"]) == (400, "BadRequest")
