"""Arguments of plugins: every field and every rule, kinds and versions."""

from __future__ import annotations

from .case import HEADER, Case, JsonObject, args, case, gates


def _ratio(*points: tuple[int, int]) -> JsonObject:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}


def _fit(**strategy: object) -> Case:
    return args("NodeResourcesFit", scoringStrategy=strategy)


def _spread(*constraints: JsonObject, kind: str = "List") -> Case:
    return args("PodTopologySpread", defaultConstraints=list(constraints), defaultingType=kind)


def _constraint(**changes: object) -> JsonObject:
    usual = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    return {key: value for key, value in {**usual, **changes}.items() if value is not None}


def _terms(*expressions: JsonObject, fields: tuple[JsonObject, ...] = ()) -> JsonObject:
    term = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    return {"nodeSelectorTerms": [term]}


def _required(*expressions: JsonObject, fields: tuple[JsonObject, ...] = ()) -> Case:
    selector = _terms(*expressions, fields=fields)
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": selector}
    return args("NodeAffinity", addedAffinity=affinity)


def _preferred(weight: int, *expressions: JsonObject) -> Case:
    term = {"weight": weight, "preference": {"matchExpressions": list(expressions)}}
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    return args("NodeAffinity", addedAffinity=affinity)


def _expression(key: str, operator: str, *values: str) -> JsonObject:
    expression: JsonObject = {"key": key, "operator": operator}
    return {**expression, "values": list(values)} if values else expression


_PREEMPTION: dict[str, Case] = {
    f"preemption {percentage} {absolute}": args(
        "DefaultPreemption",
        minCandidateNodesPercentage=percentage,
        minCandidateNodesAbsolute=absolute,
    )
    for percentage, absolute in (
        (10, 100),
        (0, 100),
        (10, 0),
        (0, 0),
        (100, 1),
        (101, 1),
        (-1, 1),
        (1, -1),
        (-1, -1),
        (None, None),
        ("1", 1),
        (2**31, 1),
    )
}

_AFFINITY: dict[str, Case] = {
    **{
        f"hard weight {weight}": args("InterPodAffinity", hardPodAffinityWeight=weight)
        for weight in (0, 1, 100, 101, -1, None)
    },
    "ignore preferred terms": args("InterPodAffinity", ignorePreferredTermsOfExistingPods=True),
    "no added affinity": args("NodeAffinity", addedAffinity=None),
    "an empty added affinity": args("NodeAffinity", addedAffinity={}),
    "no terms": args(
        "NodeAffinity",
        addedAffinity={"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}},
    ),
    "a required term": _required(_expression("zone", "In", "a", "b")),
    "required Exists": _required(_expression("zone", "Exists")),
    "required Exists with a value": _required(_expression("zone", "Exists", "a")),
    "required In without values": _required(_expression("zone", "In")),
    "required Gt": _required(_expression("cores", "Gt", "5")),
    "required Gt of a text": _required(_expression("cores", "Gt", "x")),
    "required Gt of two values": _required(_expression("cores", "Gt", "5", "6")),
    "a required operator that is none": _required(_expression("zone", "Near", "a")),
    "a required key that is none": _required(_expression("-zone", "In", "a")),
    "an empty required key": _required(_expression("", "In", "a")),
    "a required value that is none": _required(_expression("zone", "In", "a b")),
    "an empty required term": _required(),
    "a required field": _required(fields=(_expression("metadata.name", "In", "a"),)),
    "another required field": _required(fields=(_expression("metadata.uid", "In", "a"),)),
    "a required field of two": _required(fields=(_expression("metadata.name", "In", "a", "b"),)),
    "a required field that exists": _required(fields=(_expression("metadata.name", "Exists"),)),
    "a preferred term": _preferred(5, _expression("zone", "In", "a")),
    "a preferred term without weight": _preferred(0, _expression("zone", "Near", "a")),
    "a preferred term beyond weight": _preferred(101, _expression("zone", "In", "a")),
    "a preferred term that is wrong": _preferred(1, _expression("zone", "Near", "a")),
}

_FIT_CASES: dict[str, Case] = {
    "LeastAllocated": _fit(type="LeastAllocated"),
    "MostAllocated": _fit(type="MostAllocated"),
    "MostAllocated with a ratio": _fit(**{**_ratio((0, 0)), "type": "MostAllocated"}),
    "a strategy that is none": _fit(type="Best"),
    "a strategy without a type": _fit(resources=[{"name": "cpu"}]),
    "a strategy that is empty": _fit(),
    "a strategy that is null": args("NodeResourcesFit", scoringStrategy=None),
    "a ratio": _fit(**_ratio((0, 0), (100, 10))),
    "a ratio that falls": _fit(**_ratio((0, 10), (50, 5), (100, 0))),
    "a ratio of one point": _fit(**_ratio((50, 5))),
    "a ratio without points": _fit(**_ratio()),
    "a ratio that is missing": _fit(type="RequestedToCapacityRatio"),
    "a ratio out of order": _fit(**_ratio((50, 0), (20, 5), (10, 10))),
    "a ratio with a point twice": _fit(**_ratio((50, 0), (50, 5))),
    "a ratio below and above": _fit(**_ratio((-1, -1), (101, 11))),
    "weights of resources": _fit(
        type="LeastAllocated",
        resources=[{"name": "cpu", "weight": 3}, {"name": "memory"}, {"name": "e.com/x"}],
    ),
    "a weight of no resource": _fit(
        type="LeastAllocated", resources=[{"name": "cpu", "weight": 0}]
    ),
    "a weight below": _fit(type="LeastAllocated", resources=[{"name": "cpu", "weight": -1}]),
    "a weight above": _fit(type="LeastAllocated", resources=[{"name": "cpu", "weight": 101}]),
    "no resources": _fit(type="LeastAllocated", resources=[]),
    "ignored resources": args("NodeResourcesFit", ignoredResources=["e.com/x", "y"]),
    "an ignored resource that is none": args(
        "NodeResourcesFit", ignoredResources=["-x", "", "a/b/c"]
    ),
    "ignored groups": args("NodeResourcesFit", ignoredResourceGroups=["e.com"]),
    "ignored groups that are none": args(
        "NodeResourcesFit", ignoredResourceGroups=["e.com/x", "-"]
    ),
    "balanced": args("NodeResourcesBalancedAllocation", resources=[{"name": "cpu", "weight": 1}]),
    "balanced, another weight": args(
        "NodeResourcesBalancedAllocation", resources=[{"name": "cpu", "weight": 2}]
    ),
    "balanced, twice": args(
        "NodeResourcesBalancedAllocation", resources=[{"name": "cpu"}, {"name": "cpu"}]
    ),
    "balanced, none": args("NodeResourcesBalancedAllocation", resources=[]),
}

_SPREAD_CASES: dict[str, Case] = {
    "spread by the system": _spread(kind="System"),
    "spread by the system, and a list": _spread(_constraint(), kind="System"),
    "spread by nobody": _spread(kind="None"),
    "spread without a type": args("PodTopologySpread", defaultConstraints=[_constraint()]),
    "spread by an empty list": _spread(),
    "spread by a list": _spread(_constraint(), _constraint(topologyKey="kubernetes.io/hostname")),
    "spread without skew": _spread(_constraint(maxSkew=0)),
    "spread with a negative skew": _spread(_constraint(maxSkew=-1)),
    "spread without a key": _spread(_constraint(topologyKey=None)),
    "spread by a key that is none": _spread(_constraint(topologyKey="a b")),
    "spread without an action": _spread(_constraint(whenUnsatisfiable=None)),
    "spread with an action that is none": _spread(_constraint(whenUnsatisfiable="Cry")),
    "spread with a selector": _spread(_constraint(labelSelector={"matchLabels": {"a": "b"}})),
    "spread with an empty selector": _spread(_constraint(labelSelector={})),
    "spread by a constraint twice": _spread(_constraint(), _constraint(maxSkew=2)),
    "spread by a key with both actions": _spread(
        _constraint(), _constraint(whenUnsatisfiable="DoNotSchedule")
    ),
    "spread with all fields": _spread(
        _constraint(
            minDomains=2,
            nodeAffinityPolicy="Honor",
            nodeTaintsPolicy="Ignore",
            matchLabelKeys=["a"],
        )
    ),
    "spread with policies that are none": _spread(_constraint(minDomains=0, nodeTaintsPolicy="X")),
}

_OFF = gates("StorageCapacityScoring=false")
_NO_TIMEOUT = gates("DRASchedulerFilterTimeout=false")
_NO_CONDITIONS = gates("DRADeviceBindingConditions=false")

_VOLUMES_AND_DEVICES: dict[str, Case] = {
    "bind timeout": args("VolumeBinding", bindTimeoutSeconds=30),
    "bind timeout 0": args("VolumeBinding", bindTimeoutSeconds=0),
    "bind timeout below": args("VolumeBinding", bindTimeoutSeconds=-1),
    "bind timeout beyond": args("VolumeBinding", bindTimeoutSeconds=2**63),
    "a shape without its gate": args("VolumeBinding", _OFF, shape=[{"utilization": 0, "score": 0}]),
    "an empty shape without its gate": args("VolumeBinding", _OFF, shape=[]),
    "no shape without its gate": case(_OFF),
    "no shape in 1.36": case("--emulated-version=1.36"),
    "a shape in 1.36": args(
        "VolumeBinding", "--emulated-version=1.36", shape=[{"utilization": 0, "score": 0}]
    ),
    "a shape": args(
        "VolumeBinding", shape=[{"utilization": 0, "score": 0}, {"utilization": 9, "score": 9}]
    ),
    "an empty shape": args("VolumeBinding", shape=[]),
    "no shape at all": args("VolumeBinding", shape=None),
    "a shape that falls back": args(
        "VolumeBinding", shape=[{"utilization": 5, "score": 1}, {"utilization": 5, "score": 2}]
    ),
    "a wrong shape": args("VolumeBinding", shape=[{"utilization": -1, "score": 11}]),
    "device timeouts": args("DynamicResources", filterTimeout="3s", bindingTimeout="1s"),
    "device timeouts of 0": args("DynamicResources", filterTimeout="0s", bindingTimeout="0s"),
    "device timeouts below": args("DynamicResources", filterTimeout="-1s", bindingTimeout="-1s"),
    "a short binding timeout": args("DynamicResources", bindingTimeout="999ms"),
    "device timeouts that are null": args(
        "DynamicResources", filterTimeout=None, bindingTimeout=None
    ),
    "a device timeout that is none": args("DynamicResources", filterTimeout="soon"),
    "a filter timeout without its gate": args("DynamicResources", _NO_TIMEOUT, filterTimeout="3s"),
    "no filter timeout without its gate": args("DynamicResources", _NO_TIMEOUT),
    "a binding timeout without its gate": args(
        "DynamicResources", _NO_CONDITIONS, bindingTimeout="3s"
    ),
    "no binding timeout without its gate": args("DynamicResources", _NO_CONDITIONS),
}


def _config(*configs: JsonObject) -> Case:
    return case(profiles=[{"pluginConfig": list(configs)}])


_KINDS: dict[str, Case] = {
    "arguments that are null": _config({"name": "NodeResourcesFit", "args": None}),
    "arguments that are missing": _config({"name": "NodeResourcesFit"}),
    "arguments that are a list": _config({"name": "NodeResourcesFit", "args": []}),
    "arguments that are a text": _config({"name": "NodeResourcesFit", "args": "x"}),
    "arguments without a name": _config({"args": {}}),
    "an unknown argument": args("NodeResourcesFit", foo=1),
    "an unknown argument deep inside": _fit(foo=1),
    "two unknown arguments": args("NodeResourcesFit", foo=1, bar=2),
    "unknown arguments of two plugins": _config(
        {"name": "NodeResourcesFit", "args": {"foo": 1}},
        {"name": "InterPodAffinity", "args": {"bar": 1}},
    ),
    "arguments of the right kind": args(
        "NodeResourcesFit", apiVersion=HEADER["apiVersion"], kind="NodeResourcesFitArgs"
    ),
    "arguments of another kind": args(
        "NodeResourcesFit", apiVersion=HEADER["apiVersion"], kind="InterPodAffinityArgs"
    ),
    "arguments of no kind": args("NodeResourcesFit", apiVersion=HEADER["apiVersion"], kind="Foo"),
    "arguments of a kind without a version": args("NodeResourcesFit", kind="NodeResourcesFitArgs"),
    "arguments of an old version": args(
        "NodeResourcesFit",
        apiVersion="kubescheduler.config.k8s.io/v1beta3",
        kind="NodeResourcesFitArgs",
    ),
    "arguments twice": _config(
        {"name": "NodeResourcesFit", "args": {}}, {"name": "NodeResourcesFit", "args": {}}
    ),
    "arguments of a stranger": args("Stranger", a=1, b=[{"c": None}]),
    "arguments of a stranger that are a list": _config({"name": "Stranger", "args": [1, 2]}),
    "arguments of a stranger that are null": _config({"name": "Stranger", "args": None}),
    "arguments of a plugin that takes none": args("NodeName", a=1),
    "arguments of a removed plugin": args("EBSLimits", a=1),
    "an unknown field beside arguments": _config({"name": "NodeName", "arg": {}}),
    "arguments of the wrong type": args("InterPodAffinity", hardPodAffinityWeight="1"),
    "arguments of many wrong types": args(
        "NodeResourcesFit", ignoredResources="x", ignoredResourceGroups={}, scoringStrategy=[]
    ),
    "wrong in two profiles": case(
        profiles=[
            {
                "schedulerName": name,
                "pluginConfig": [
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": -1}}
                ],
            }
            for name in "ab"
        ]
    ),
}

CASES: dict[str, Case] = {
    **_PREEMPTION,
    **_AFFINITY,
    **_FIT_CASES,
    **_SPREAD_CASES,
    **_VOLUMES_AND_DEVICES,
    **_KINDS,
}
