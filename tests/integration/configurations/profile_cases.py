"""Profiles: names, percentages, which plugins run where, and what cannot be built."""

from __future__ import annotations

from .case import Case, JsonObject, Words, case, disabled, enabled, gates, plugins, profiles

_POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "multiPoint",
    "placementGenerate",
    "placementScore",
    "podGroupPostFilter",
)
_REMOVED = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")


def _named(name: str, **fields: object) -> JsonObject:
    return {"schedulerName": name, **fields}


_NAMES: dict[str, Case] = {
    "one profile without a name": profiles({}),
    "one profile with an empty name": profiles(_named("")),
    "one profile with a name": profiles(_named("mine")),
    "two profiles, one without a name": profiles({}, _named("b")),
    "two profiles without names": profiles({}, {}),
    "two profiles": profiles(_named("a"), _named("b")),
    "two profiles of the same name": profiles(_named("a"), _named("a")),
    "three profiles of the same name": profiles(_named("a"), _named("a"), _named("a")),
    "a name that is null": profiles({"schedulerName": None}),
    "a name that is a number": profiles({"schedulerName": 1}),
    "a percentage of a profile": profiles({"percentageOfNodesToScore": 7}),
    "no percentage of a profile": profiles({"percentageOfNodesToScore": 0}),
    "a percentage of a profile above 100": profiles({"percentageOfNodesToScore": 101}),
    "a percentage of a profile below 0": profiles({"percentageOfNodesToScore": -1}),
    "an unknown field of a profile": profiles({"pluginConfigs": []}),
    "plugins that are null": profiles({"plugins": None, "pluginConfig": None}),
    "plugins that are a list": profiles({"plugins": []}),
    "an unknown point": plugins(preSort=enabled("A")),
    "a weight that is a text": plugins(
        score={"enabled": [{"name": "NodeAffinity", "weight": "1"}]}
    ),
    "a plugin without a name": plugins(score={"enabled": [{"weight": 2}]}),
    "a plugin that is null": plugins(score={"enabled": [None]}),
    "an unknown field of a plugin": plugins(score={"enabled": [{"name": "A", "wait": 1}]}),
    "a weight beyond int32": plugins(score=enabled(("NodeAffinity", 2**31))),
    "a negative weight": plugins(score=enabled(("NodeAffinity", -1))),
    "weights that overflow together": plugins(
        score=enabled(*((name, 2**31 - 1) for name in ("NodeAffinity", "ImageLocality")))
    ),
}

_POINT_CASES: dict[str, Case] = {
    **{f"{point} off": plugins(**{point: disabled("*")}) for point in _POINTS},
    **{f"nobody at {point}": plugins(**{point: enabled("Nobody")}) for point in _POINTS},
    **{
        f"ImageLocality at {point}": plugins(**{point: enabled("ImageLocality")})
        for point in _POINTS
    },
    **{f"{name} enabled": plugins(filter=enabled(name)) for name in _REMOVED},
    "a removed plugin in multiPoint": plugins(multiPoint=enabled("EBSLimits")),
    "a removed plugin disabled": plugins(filter=disabled("EBSLimits")),
    "removed plugins everywhere": case(
        words=Words.ANY_ORDER,
        profiles=[{"plugins": {each: enabled("NodeName", "EBSLimits") for each in _POINTS}}],
    ),
}

_TOPOLOGY = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
_RESIZES = "InPlacePodVerticalScalingSchedulerPreemption=true"

_MERGED: dict[str, Case] = {
    "a default weighed anew in multiPoint": plugins(multiPoint=enabled(("NodeAffinity", 9))),
    "a default weighed anew at its point": plugins(score=enabled(("NodeAffinity", 9))),
    "a default weighed at both": plugins(
        multiPoint=enabled(("NodeAffinity", 9)), score=enabled(("NodeAffinity", 4))
    ),
    "a default disabled in multiPoint": plugins(multiPoint=disabled("ImageLocality")),
    "a default disabled at a point": plugins(score=disabled("NodeAffinity")),
    "a default disabled and enabled at a point": plugins(
        score={**disabled("NodeAffinity"), **enabled(("NodeAffinity", 3))}
    ),
    "a default disabled and enabled in multiPoint": plugins(
        multiPoint={**disabled("NodeAffinity"), **enabled(("NodeAffinity", 3))}
    ),
    "all off but what is needed": plugins(
        multiPoint={**disabled("*"), **enabled("PrioritySort", "DefaultBinder")}
    ),
    "all off": plugins(multiPoint=disabled("*")),
    "all off, binder at its point": plugins(
        multiPoint=disabled("*"), bind=enabled("DefaultBinder"), queueSort=enabled("PrioritySort")
    ),
    "no binder": plugins(bind=disabled("DefaultBinder")),
    "no queue sort": plugins(queueSort=disabled("*")),
    "no fit, but its arguments": case(
        profiles=[
            {
                "plugins": {"multiPoint": disabled("NodeResourcesFit")},
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Best"}}}
                ],
            }
        ]
    ),
    "a plugin twice at a point": plugins(filter=enabled("NodeName", "NodeName")),
    "a plugin twice in multiPoint": plugins(multiPoint=enabled("NodeName", "NodeName")),
    "two sorts": plugins(queueSort=enabled("PrioritySort", "PrioritySort")),
    "two unknown sorts": plugins(queueSort=enabled("A", "B")),
    "an unknown plugin disabled": plugins(filter=disabled("Nobody")),
    "a star enabled": plugins(filter=enabled("*")),
    "sorts that differ": profiles(
        _named("a"), _named("b", plugins={"queueSort": enabled("Other")})
    ),
    "sorts that differ in what is disabled": profiles(
        _named("a"),
        _named("b", plugins={"queueSort": {**disabled("*"), **enabled("PrioritySort")}}),
    ),
    "sorts that are the same": profiles(
        *(_named(name, plugins={"queueSort": enabled("PrioritySort")}) for name in "ab")
    ),
    "arguments of the sort that differ": profiles(
        _named("a", pluginConfig=[{"name": "PrioritySort", "args": {"x": 1}}]),
        _named("b", pluginConfig=[{"name": "PrioritySort", "args": {"x": 2}}]),
    ),
    "arguments of a named sort that differ": profiles(
        *(
            _named(
                name,
                plugins={"queueSort": enabled("PrioritySort")},
                pluginConfig=[{"name": "PrioritySort", "args": {"x": name}}],
            )
            for name in "ab"
        )
    ),
    "score reordered": plugins(
        score=enabled(("ImageLocality", 5), "NodeAffinity", ("TaintToleration", 9))
    ),
    "workloads": plugins(gates("GenericWorkload=true")),
    "workloads in 1.36": plugins(gates("GenericWorkload=true"), "--emulated-version=1.36"),
    "workloads without gang scheduling": plugins(
        gates("GenericWorkload=true"), multiPoint=disabled("GangScheduling")
    ),
    "topology-aware workloads": plugins(gates(_TOPOLOGY)),
    "two placement generators": plugins(
        gates(_TOPOLOGY),
        placementGenerate=enabled("TopologyPlacementGenerator", "TopologyPlacementGenerator"),
    ),
    "what comes after a group did not fit": plugins(
        podGroupPostFilter=enabled("DefaultPreemption", "DynamicResources")
    ),
    "what comes after a group did not fit, but one": plugins(
        podGroupPostFilter=disabled("DynamicResources")
    ),
    "what comes after a group did not fit, alone": plugins(
        podGroupPostFilter={**disabled("*"), **enabled("DefaultPreemption")}
    ),
    "what comes after a group did not fit, twice": plugins(
        podGroupPostFilter=enabled("DefaultPreemption", "DefaultPreemption")
    ),
    "preemption for resizes": plugins(gates(_RESIZES)),
    "preemption for resizes without fit": plugins(
        gates(_RESIZES), multiPoint=disabled("NodeResourcesFit")
    ),
    "preemption for resizes without its gate": plugins(multiPoint=enabled("DeferredPodScheduling")),
    "preemption for resizes at a point": plugins(permit=enabled("DeferredPodScheduling")),
    "the defaults of 1.36": case("--emulated-version=1.36"),
    "the defaults of 1.34": case("--emulated-version=1.34"),
    "without declared features": plugins(gates("NodeDeclaredFeatures=false")),
    "without declared features in 1.36": plugins(
        "--emulated-version=1.36",
        gates(
            "NodeDeclaredFeatures=false,ExtendWebSocketsToKubelet=false,"
            "InPlacePodLevelResourcesVerticalScaling=false,"
            "InPlacePodVerticalScalingInitContainers=false,"
            "RestartAllContainersOnContainerExits=false"
        ),
    ),
    "without declared features, which others need": case(
        gates("NodeDeclaredFeatures=false"), "--emulated-version=1.36", words=Words.ANY_ORDER
    ),
    "a plugin without its gate": plugins(multiPoint=enabled("GangScheduling")),
    "a second profile that cannot be built": profiles(
        _named("a"), _named("b", plugins={"filter": enabled("Nobody")})
    ),
}

CASES: dict[str, Case] = {**_NAMES, **_POINT_CASES, **_MERGED}
