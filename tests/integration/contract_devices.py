"""The contract about devices: claims, templates, classes, slices and taint rules."""

from __future__ import annotations

from typing import Any

import pytest

from .contract import TABLE, Api, JsonObject, outline, plain
from .contract_tables import cells

GROUP = "/apis/resource.k8s.io/v1"
NAME_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
RESULT = {"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [RESULT]}}
ONE_OF = "exactly one of `exactly` or `firstAvailable` is required"
NO_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


def request(**exactly: Any) -> JsonObject:
    return {"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}}


def claim(name: str, *requests: JsonObject, **devices: Any) -> JsonObject:
    return {
        "metadata": {"name": name},
        "spec": {"devices": {"requests": list(requests), **devices}},
    }


def selecting(expression: str) -> JsonObject:
    return request(selectors=[{"cel": {"expression": expression}}])


def a_slice(name: str, **spec: Any) -> JsonObject:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    device = {"name": "gpu-0", "attributes": {"model": {"string": "a"}}}
    usual = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [device]}
    return {"metadata": {"name": name}, "spec": {**usual, **spec}}


class ClaimContract:
    """Claims, and templates of claims."""

    def test_defaults(self, api: Api) -> None:
        alternatives = {"name": "s", "firstAvailable": [{"name": "x", "deviceClassName": "gpu"}]}
        every = {"name": "t", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}

        created = api.do("POST", claims(api), claim("a", request(), alternatives, every))

        counted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
        assert plain(created)["spec"] == {
            "devices": {
                "requests": [
                    {"name": "r", "exactly": counted},
                    {"name": "s", "firstAvailable": [{"name": "x", **counted}]},
                    every,
                ]
            }
        }
        assert created["status"] == {}
        assert "generation" not in created["metadata"]

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            (claim("a", {"name": "r"}), f"spec.devices.requests[0]: Required value: {ONE_OF}"),
            (
                claim(
                    "a", {**request(), "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}
                ),
                (
                    f"spec.devices.requests[0]: Invalid value: null: {ONE_OF}, but multiple fields "
                    "are set"
                ),
            ),
            (
                claim("a", {"name": "r", "exactly": {}}),
                "spec.devices.requests[0].exactly.deviceClassName: Required value",
            ),
            (
                claim("a", {**request(), "name": "A_b"}),
                f'spec.devices.requests[0].name: Invalid value: "A_b": {NAME_RULE}',
            ),
            (
                claim("a", {"exactly": {"deviceClassName": "gpu"}}),
                f'spec.devices.requests[0].name: Invalid value: "": {NAME_RULE}',
            ),
            (
                claim("a", request(), request()),
                (
                    'spec.devices.requests[1]: Duplicate value: {"name":"r","exactly":{'
                    '"deviceClassName":"gpu","allocationMode":"ExactCount","count":1}}'
                ),
            ),
            (
                claim("a", request(allocationMode="Some")),
                (
                    'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": '
                    'supported values: "All", "ExactCount"'
                ),
            ),
            (
                claim("a", request(allocationMode="All", count=2)),
                (
                    "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be "
                    "specified "
                    "when allocationMode is 'All'"
                ),
            ),
            (
                claim("a", request(count=-1)),
                (
                    "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater "
                    "than "
                    "zero"
                ),
            ),
            (
                claim("a", request(selectors=[{}])),
                "spec.devices.requests[0].exactly.selectors[0].cel: Required value",
            ),
            (
                claim("a", selecting("1")),
                (
                    "spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "
                    '"1": '
                    "must evaluate to bool or the unknown type, not int"
                ),
            ),
            (
                claim("a", selecting("devic.driver == 'x'")),
                (
                    "spec.devices.requests[0].exactly.selectors[0].cel.expression: Invalid value: "
                    "\"devic.driver == 'x'\": compilation failed: ERROR: <input>:1:1: undeclared "
                    "reference to 'devic' (in container '')\n | devic.driver == 'x'\n | ^"
                ),
            ),
            (
                claim("a", request(), constraints=[{"requests": ["q"], "matchAttribute": "x/y"}]),
                f'spec.devices.constraints[0].requests[0]: Invalid value: "q": {NO_REQUEST}',
            ),
            (
                claim("a", *({**request(), "name": f"r{n}"} for n in range(33))),
                "spec.devices.requests: Too many: 33: must have at most 32 items",
            ),
        ],
    )
    def test_a_claim_that_is_not_valid(self, api: Api, wrong: JsonObject, why: str) -> None:
        refused = api.refused("POST", claims(api), wrong)

        message = f'ResourceClaim.resource.k8s.io "a" is invalid: {why}'
        assert outline(refused) == (422, "Invalid", message)

    def test_a_claim_of_other_types_is_no_claim(self, api: Api) -> None:
        wrong = {"metadata": {"name": "a"}, "spec": {"devices": {"requests": "all"}}}

        refused = api.refused("POST", claims(api), wrong)

        assert (refused["code"], refused["reason"]) == (400, "BadRequest")

    def test_what_a_claim_asks_for_stays(self, api: Api) -> None:
        api.do("POST", claims(api), claim("a", request()))
        template = {"metadata": {"name": "t"}, "spec": {"spec": claim("", request())["spec"]}}
        api.do("POST", templates(api), template)
        other = claim("a", request(count=2))["spec"]

        refused = patch_refused(api, f"{claims(api)}/a", {"spec": other})
        refused_template = patch_refused(api, f"{templates(api)}/t", {"spec": {"spec": other}})

        message = (
            'ResourceClaim.resource.k8s.io "a" is invalid: spec: Invalid value: null: field is '
            "immutable"
        )
        assert outline(refused) == (422, "Invalid", message)
        assert refused_template["message"].endswith(": field is immutable")

    def test_a_template(self, api: Api) -> None:
        spec = {"metadata": {"labels": {"a": "b"}}, "spec": claim("", request())["spec"]}

        created = api.do("POST", templates(api), {"metadata": {"name": "t"}, "spec": spec})

        counted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
        assert plain(created)["spec"]["metadata"] == {"labels": {"a": "b"}}
        (made,) = created["spec"]["spec"]["devices"]["requests"]
        assert made == {"name": "r", "exactly": counted}
        bad = {"metadata": {"name": "u"}, "spec": {"spec": claim("", {"name": "r"})["spec"]}}
        assert outline(api.refused("POST", templates(api), bad))[2] == (
            'ResourceClaimTemplate.resource.k8s.io "u" is invalid: '
            f"spec.spec.devices.requests[0]: Required value: {ONE_OF}"
        )

    def test_an_allocation_comes_and_goes_and_never_changes(self, api: Api) -> None:
        api.do("POST", claims(api), claim("a", request()))
        path = f"{claims(api)}/a/status"
        user = {"resource": "pods", "name": "p", "uid": "u"}

        early = patch_refused(api, path, {"status": {"reservedFor": [user]}})
        taken = api.patch(path, {"status": {"allocation": ALLOCATION, "reservedFor": [user]}})
        other = {"devices": {"results": [{**RESULT, "device": "gpu-1"}]}}
        changed = patch_refused(api, path, {"status": {"allocation": other}})
        twice = patch_refused(api, path, {"status": {"reservedFor": [user, user]}})
        vague = patch_refused(api, path, {"status": {"reservedFor": [{"name": "p"}]}})
        freed = api.patch(path, {"status": {"allocation": None, "reservedFor": None}})

        prefix = 'ResourceClaim.resource.k8s.io "a" is invalid: '
        assert early["message"] == (
            f"{prefix}status.reservedFor: Forbidden: may not be specified when `allocated` is "
            "not set"
        )
        assert taken["status"] == {"allocation": ALLOCATION, "reservedFor": [user]}
        assert changed["message"] == (
            f"{prefix}status.allocation: Invalid value: null: field cannot be modified once set"
        )
        assert twice["message"] == (
            f'{prefix}status.reservedFor[1]: Duplicate value: {{"resource":"pods","name":"p",'
            '"uid":"u"}'
        )
        assert vague["message"] == (
            f"{prefix}[status.reservedFor[0].resource: Required value, "
            "status.reservedFor[0].uid: Required value]"
        )
        assert freed["status"] == {}

    def test_an_allocation_is_for_requests_of_the_claim(self, api: Api) -> None:
        api.do("POST", claims(api), claim("a", {**request(), "name": "other"}))

        refused = patch_refused(
            api, f"{claims(api)}/a/status", {"status": {"allocation": ALLOCATION}}
        )

        assert refused["message"] == (
            'ResourceClaim.resource.k8s.io "a" is invalid: '
            f'status.allocation.devices.results[0].request: Invalid value: "r": {NO_REQUEST}'
        )

    def test_tables(self, api: Api) -> None:
        api.do("POST", claims(api), claim("a", request()))
        api.do("POST", claims(api), claim("b", request()))
        user = {"resource": "pods", "name": "p", "uid": "u"}
        api.patch(f"{claims(api)}/b/status", {"status": {"allocation": ALLOCATION}})

        before = api.do("GET", claims(api), accept=TABLE)
        api.patch(f"{claims(api)}/b/status", {"status": {"reservedFor": [user]}})
        after = api.do("GET", f"{claims(api)}/b", accept=TABLE)

        assert [each["name"] for each in before["columnDefinitions"]] == ["Name", "State", "Age"]
        assert [row["cells"][:2] for row in before["rows"]] == [
            ["a", "pending"],
            ["b", "allocated"],
        ]
        assert cells(after)["State"] == "allocated,reserved"


class DeviceContract:
    """Slices, classes and taint rules."""

    def test_a_slice(self, api: Api) -> None:
        name = api.unique("slice")
        taint = {"key": "k", "effect": "NoSchedule"}
        devices = [{"name": "gpu-0", "taints": [taint]}]

        created = api.create_cluster_object(
            f"{GROUP}/resourceslices", a_slice(name, devices=devices)
        )

        assert created["metadata"]["generation"] == 1
        assert created["spec"]["devices"][0]["taints"][0].pop("timeAdded")
        assert created["spec"] == a_slice(name, devices=devices)["spec"]
        table = api.do("GET", f"{GROUP}/resourceslices/{name}", accept=TABLE)
        row = cells(table)
        assert list(row) == ["Name", "Node", "Driver", "Pool", "Age"]
        assert [row["Node"], row["Driver"], row["Pool"]] == ["n1", "gpu.example.com", "n1"]

    @pytest.mark.parametrize(
        ("spec", "why"),
        [
            ({"driver": ""}, "spec.driver: Required value"),
            (
                {"pool": {}},
                (
                    "[spec.pool.name: Required value, spec.pool.resourceSliceCount: Invalid value: "
                    "0: "
                    "must be greater than zero]"
                ),
            ),
            (
                {"nodeName": None},
                (
                    "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
                    "`perDeviceNodeSelection` is required"
                ),
            ),
            (
                {"allNodes": True},
                (
                    'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, '
                    "`nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but "
                    "multiple "
                    "fields are set"
                ),
            ),
            (
                {"devices": [{"name": "x"}, {"name": "x"}]},
                'spec.devices[1]: Duplicate value: "x"',
            ),
            (
                {"devices": [{"name": "A_"}]},
                f'spec.devices[0].name: Invalid value: "A_": {NAME_RULE}',
            ),
            (
                {"devices": [{"name": "x", "taints": [{"key": "k", "effect": "Nope"}]}]},
                (
                    'spec.devices[0].taints[0].effect: Unsupported value: "Nope": supported '
                    "values: "
                    '"NoExecute", "NoSchedule", "None"'
                ),
            ),
        ],
    )
    def test_a_slice_that_is_not_valid(self, api: Api, spec: JsonObject, why: str) -> None:
        refused = api.refused("POST", f"{GROUP}/resourceslices", a_slice("s", **spec))

        message = f'ResourceSlice.resource.k8s.io "s" is invalid: {why}'
        assert outline(refused) == (422, "Invalid", message)

    def test_a_slice_stays_where_it_is(self, api: Api) -> None:
        name = api.unique("slice")
        api.create_cluster_object(f"{GROUP}/resourceslices", a_slice(name))
        path = f"{GROUP}/resourceslices/{name}"

        refused = patch_refused(api, path, {"spec": {"nodeName": "n2", "driver": "x.y"}})
        updated = api.patch(path, {"spec": {"pool": {"generation": 2}}})

        assert refused["message"] == (
            f'ResourceSlice.resource.k8s.io "{name}" is invalid: [spec.driver: Invalid value: '
            '"x.y": field is immutable, spec.nodeName: Invalid value: "n2": field is immutable]'
        )
        assert updated["metadata"]["generation"] == 2

    def test_a_class(self, api: Api) -> None:
        name = api.unique("class")
        selector = {"cel": {"expression": "device.driver == 'gpu.example.com'"}}
        obj = {"metadata": {"name": name}, "spec": {"selectors": [selector]}}

        created = api.create_cluster_object(f"{GROUP}/deviceclasses", obj)
        wrong = {"metadata": {"name": "c"}, "spec": {"selectors": [{}]}}
        refused = api.refused("POST", f"{GROUP}/deviceclasses", wrong)

        assert (created["metadata"]["generation"], created["spec"]) == (1, obj["spec"])
        assert refused["message"] == (
            'DeviceClass.resource.k8s.io "c" is invalid: spec.selectors[0].cel: Required value'
        )

    def test_a_taint_rule(self, api: Api) -> None:
        name = api.unique("rule")
        taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
        obj = {
            "metadata": {"name": name},
            "spec": {"deviceSelector": {"pool": "p"}, "taint": taint},
        }

        created = api.create_cluster_object(f"{GROUP}/devicetaintrules", obj)
        wrong = {"metadata": {"name": "r"}, "spec": {"taint": {"key": "k", "effect": "Bad"}}}
        refused = api.refused("POST", f"{GROUP}/devicetaintrules", wrong)

        assert created["spec"]["taint"].pop("timeAdded")
        assert (created["spec"], created["status"]) == (obj["spec"], {})
        row = cells(api.do("GET", f"{GROUP}/devicetaintrules/{name}", accept=TABLE))
        assert list(row) == ["Name", "Key", "Value", "Effect", "TimeAdded", "Age"]
        assert [row["Key"], row["Value"], row["Effect"]] == ["k", "v", "NoSchedule"]
        assert refused["message"] == (
            'DeviceTaintRule.resource.k8s.io "r" is invalid: spec.taint.effect: Unsupported value: '
            '"Bad": supported values: "NoExecute", "NoSchedule", "None"'
        )


def claims(api: Api) -> str:
    return api.path("resourceclaims", group="resource.k8s.io")


def templates(api: Api) -> str:
    return api.path("resourceclaimtemplates", group="resource.k8s.io")


def patch_refused(api: Api, path: str, body: JsonObject) -> JsonObject:
    return api.refused("PATCH", path, body, content_type="application/merge-patch+json")
