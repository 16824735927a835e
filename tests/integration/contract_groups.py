"""The contract about pod groups and workloads, where their gate is on."""

from __future__ import annotations

from typing import Any

import pytest

from .contract import MERGE, TABLE, Api, JsonObject, a_pod, outline, plain
from .contract_tables import cells

GANG = {"gang": {"minCount": 3}}
CONDITION = {
    "type": "PodGroupInitiallyScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def group(name: str, policy: JsonObject, **spec: Any) -> JsonObject:
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy, **spec}}


class GroupContract:
    """Groups of pods."""

    def test_defaults(self, api: Api) -> None:
        created = api.do("POST", groups(api), group("g", GANG))

        assert plain(created) == {
            "kind": "PodGroup",
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "metadata": {
                "name": "g",
                "namespace": api.namespace,
                "uid": "<set>",
                "resourceVersion": "<set>",
                "finalizers": ["scheduling.k8s.io/podgroup-protection"],
            },
            "spec": {
                "schedulingPolicy": GANG,
                "disruptionMode": {"single": {}},
                "priority": 0,
            },
            "status": {},
        }

    @pytest.mark.parametrize(
        ("policy", "why"),
        [
            ({}, ': Invalid value: "": must specify one of: `basic`, `gang`'),
            (
                {"basic": {}, **GANG},
                ': Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`',
            ),
            ({"gang": {}}, ".gang.minCount: Required value"),
            (
                {"gang": {"minCount": -1}},
                ".gang.minCount: Invalid value: -1: must be greater than or equal to 1",
            ),
        ],
    )
    def test_a_policy_that_is_not_valid(self, api: Api, policy: JsonObject, why: str) -> None:
        refused = api.refused("POST", groups(api), group("g", policy))

        message = f'PodGroup.scheduling.k8s.io "g" is invalid: spec.schedulingPolicy{why}'
        assert outline(refused) == (422, "Invalid", message)

    def test_its_priority_is_that_of_its_class(self, api: Api) -> None:
        name = api.unique("class")
        api.create_cluster_object(
            "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 7}
        )

        created = api.do("POST", groups(api), group("g", GANG, priorityClassName=name))
        unknown = api.refused("POST", groups(api), group("h", GANG, priorityClassName="none"))
        other = api.refused("POST", groups(api), group("h", GANG, priority=7))
        high = group("h", GANG, priorityClassName="system-node-critical")
        too_high = api.refused("POST", groups(api), high)

        assert (created["spec"]["priority"], created["spec"]["priorityClassName"]) == (7, name)
        assert outline(unknown) == (
            403,
            "Forbidden",
            (
                'podgroups.scheduling.k8s.io "h" is forbidden: no PriorityClass with name none was '
                "found"
            ),
        )
        assert outline(other)[2] == (
            'podgroups.scheduling.k8s.io "h" is forbidden: priority set in the pod group (7) must '
            "match the priority computed (0) based on the priority class set in the spec"
        )
        assert outline(too_high)[2] == (
            'PodGroup.scheduling.k8s.io "h" is invalid: spec.priority: Invalid value: 2000001000: '
            "must be less than or equal to 1000000000"
        )

    def test_a_gang_may_grow_and_stays_a_gang(self, api: Api) -> None:
        api.do("POST", groups(api), group("g", GANG))
        path = f"{groups(api)}/g"

        grown = api.patch(path, {"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}})
        loose: JsonObject = {"spec": {"schedulingPolicy": {"gang": None, "basic": {}}}}
        refused = api.refused("PATCH", path, loose, content_type=MERGE)
        fixed = {"spec": {"disruptionMode": {"single": None, "all": {}}, "priority": 3}}
        refused_fixed = api.refused("PATCH", path, fixed, content_type=MERGE)

        assert grown["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
        assert outline(refused)[2] == (
            'PodGroup.scheduling.k8s.io "g" is invalid: [spec.schedulingPolicy.basic: Invalid '
            "value: null: field is immutable, spec.schedulingPolicy.gang: Invalid value: null: "
            "field cannot be cleared once set]"
        )
        assert outline(refused_fixed)[2] == (
            'PodGroup.scheduling.k8s.io "g" is invalid: [spec.disruptionMode: Invalid value: null: '
            "field is immutable, spec.priority: Invalid value: null: field is immutable]"
        )

    def test_an_update_names_its_version(self, api: Api) -> None:
        api.do("POST", groups(api), group("g", GANG))

        refused = api.refused("PUT", f"{groups(api)}/g", group("g", GANG))

        assert outline(refused)[2] == (
            'podgroups.scheduling.k8s.io "g" is invalid: metadata.resourceVersion: Invalid value: '
            "0: must be specified for an update"
        )

    def test_its_status_is_written_alone_and_shown(self, api: Api) -> None:
        api.do("POST", groups(api), group("g", GANG, workloadRef=ref("w", "t")))
        path = f"{groups(api)}/g"
        before = cells(api.do("GET", path, accept=TABLE))

        body = {"metadata": {"labels": {"a": "b"}}, "status": {"conditions": [CONDITION]}}
        patched = api.patch(f"{path}/status", body)
        vague = {"status": {"conditions": [{"type": "X", "status": "Maybe"}]}}
        refused = api.refused("PATCH", f"{path}/status", vague, content_type=MERGE)
        after = cells(api.do("GET", path, accept=TABLE))

        assert list(before) == ["Name", "Policy", "Workload", "Status", "Age"]
        assert [before[name] for name in ("Policy", "Workload", "Status")] == [
            "Gang",
            "w",
            "Pending",
        ]
        assert (patched["status"], "labels" in patched["metadata"]) == (
            {"conditions": [CONDITION]},
            False,
        )
        assert after["Status"] == "Unschedulable"
        assert outline(refused)[2] == (
            'PodGroup.scheduling.k8s.io "g" is invalid: [status.conditions[0].status: Unsupported '
            'value: "Maybe": supported values: "False", "True", "Unknown", '
            "status.conditions[0].lastTransitionTime: Required value, "
            "status.conditions[0].reason: Required value]"
        )

    def test_it_is_kept_while_a_controller_protects_it(self, api: Api) -> None:
        api.do("POST", groups(api), group("g", GANG))

        deleted = api.do("DELETE", f"{groups(api)}/g")

        assert deleted["metadata"]["deletionTimestamp"]
        api.patch(f"{groups(api)}/g", {"metadata": {"finalizers": None}})
        assert api.ask("GET", f"{groups(api)}/g").code == 404

    def test_a_pod_names_its_group(self, api: Api) -> None:
        member = api.pod("p", schedulingGroup={"podGroupName": "g"})

        empty = api.refused("POST", api.path("pods"), a_pod("q", schedulingGroup={}))

        assert member["spec"]["schedulingGroup"] == {"podGroupName": "g"}
        assert outline(empty)[2] == (
            'Pod "q" is invalid: spec.schedulingGroup.podGroupName: Invalid value: null: must '
            "specify one of: `podGroupName`"
        )

    def test_discovery(self, api: Api) -> None:
        found = api.do("GET", "/apis/scheduling.k8s.io/v1beta1")

        assert {each["name"] for each in found["resources"]} == {
            "podgroups",
            "podgroups/status",
            "workloads",
        }


class WorkloadContract:
    """Templates of groups."""

    def test_a_workload(self, api: Api) -> None:
        template = {"name": "t", "schedulingPolicy": GANG}

        created = api.do("POST", workloads(api), workload("w", template))

        assert plain(created)["spec"] == {"podGroupTemplates": [template]}
        assert "status" not in created
        table = api.do("GET", f"{workloads(api)}/w", accept=TABLE)
        assert list(cells(table)) == ["Name", "Age"]
        assert api.do("DELETE", f"{workloads(api)}/w")["kind"] == "Status"

    @pytest.mark.parametrize(
        ("templates", "why"),
        [
            (
                [],
                (
                    'spec: Invalid value: "": must specify one of: `podGroupTemplates`, '
                    "`compositePodGroupTemplates`"
                ),
            ),
            (
                [{"schedulingPolicy": {"basic": {}}}],
                "spec.podGroupTemplates[0].name: Required value",
            ),
            (
                [{"name": "t"}],
                (
                    'spec.podGroupTemplates[0].schedulingPolicy: Invalid value: "": must specify '
                    "one "
                    "of: `basic`, `gang`"
                ),
            ),
        ],
    )
    def test_a_workload_that_is_not_valid(
        self, api: Api, templates: list[JsonObject], why: str
    ) -> None:
        refused = api.refused("POST", workloads(api), workload("w", *templates))

        message = f'Workload.scheduling.k8s.io "w" is invalid: {why}'
        assert outline(refused) == (422, "Invalid", message)


def groups(api: Api) -> str:
    return api.path("podgroups", group="scheduling.k8s.io", version="v1beta1")


def workloads(api: Api) -> str:
    return api.path("workloads", group="scheduling.k8s.io", version="v1beta1")


def workload(name: str, *templates: JsonObject) -> JsonObject:
    return {"metadata": {"name": name}, "spec": {"podGroupTemplates": list(templates)}}


def ref(workload_name: str, template: str) -> JsonObject:
    return {"workloadName": workload_name, "templateName": template}
