"""Schemas of old kinds, each as its differences from the next newer one."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from kubesched.config.documents import Json
from kubesched.config.legacy.releases import V1ALPHA1, V1ALPHA2, V1BETA1, V1BETA2, V1BETA3
from kubesched.config.schema import (
    BOOL,
    CONFIGURATION,
    INT32,
    INT64,
    STRING,
    STRINGS,
    Field,
    ListOf,
    Message,
    WireType,
)


def _optional(name: str, wire_type: WireType) -> Field:
    return Field(name, wire_type, pointer=True, omit_empty=True)


def _part(message: Message, name: str) -> Message:
    """Return the message of a field, or of the items of its list."""
    found = next(field.type for field in message.fields if field.name == name)
    part = found.item if isinstance(found, ListOf) else found
    if not isinstance(part, Message):
        raise TypeError(f"{message.name}.{name} has no fields")
    return part


def _changed(
    message: Message,
    *added: Field,
    without: tuple[str, ...] = (),
    **parts: Message,
) -> Message:
    """Return a message with other fields, and fields with other messages."""
    fields = []
    for field in message.fields:
        if field.name in without:
            continue
        part = parts.get(field.name)
        if part is not None:
            listed = isinstance(field.type, ListOf)
            fields.append(structs.replace(field, type=ListOf(part) if listed else part))
        else:
            fields.append(field)
    return structs.replace(message, fields=(*fields, *added))


_PROFILE: Final = _part(CONFIGURATION, "profiles")
_PLUGINS: Final = _part(_PROFILE, "plugins")
_PLUGIN_SET: Final = _part(_PLUGINS, "filter")

_V1BETA3: Final = _changed(
    CONFIGURATION,
    without=("delayCacheUntilActive",),
    profiles=_changed(
        _PROFILE,
        without=("percentageOfNodesToScore",),
        plugins=_changed(_PLUGINS, without=("placementGenerate", "placementScore")),
    ),
)
_POINTS_V1BETA2: Final = _changed(
    _part(_part(_V1BETA3, "profiles"), "plugins"), without=("multiPoint", "preEnqueue")
)
_V1BETA2: Final = _changed(
    _V1BETA3,
    _optional("healthzBindAddress", STRING),
    _optional("metricsBindAddress", STRING),
    profiles=_changed(_part(_V1BETA3, "profiles"), plugins=_POINTS_V1BETA2),
)
_POINTS_V1ALPHA2: Final = _changed(
    _POINTS_V1BETA2, _optional("unreserve", _PLUGIN_SET), without=("postFilter",)
)
_V1ALPHA2: Final = _changed(
    _V1BETA2,
    _optional("disablePreemption", BOOL),
    _optional("bindTimeoutSeconds", INT64),
    without=("parallelism",),
    profiles=_changed(_part(_V1BETA2, "profiles"), plugins=_POINTS_V1ALPHA2),
)
_PROFILE_V1ALPHA2: Final = _part(_V1ALPHA2, "profiles")
_ALGORITHM_SOURCE: Final = Message(
    "SchedulerAlgorithmSource",
    (
        _optional("provider", STRING),
        _optional(
            "policy",
            Message(
                "SchedulerPolicySource",
                (
                    _optional(
                        "file", Message("SchedulerPolicyFileSource", (_optional("path", STRING),))
                    ),
                    _optional(
                        "configMap",
                        Message(
                            "SchedulerPolicyConfigMapSource",
                            (_optional("namespace", STRING), _optional("name", STRING)),
                        ),
                    ),
                ),
            ),
        ),
    ),
)
_V1ALPHA1: Final = _changed(
    _V1ALPHA2,
    _optional("schedulerName", STRING),
    _optional("algorithmSource", _ALGORITHM_SOURCE),
    _optional("hardPodAffinitySymmetricWeight", INT32),
    _optional("failureDomains", STRING),
    _optional(
        "plugins",
        _changed(_POINTS_V1ALPHA2, _optional("postFilter", _PLUGIN_SET), without=("preScore",)),
    ),
    *(field for field in _PROFILE_V1ALPHA2.fields if field.name == "pluginConfig"),
    without=("profiles", "extenders"),
    leaderElection=_changed(
        _part(_V1ALPHA2, "leaderElection"),
        _optional("lockObjectNamespace", STRING),
        _optional("lockObjectName", STRING),
    ),
)

#: KubeSchedulerConfiguration by version; messages call it by its package.
CONFIGURATIONS: Final = {
    version: structs.replace(message, package=version)
    for version, message in (
        (V1ALPHA1, _V1ALPHA1),
        (V1ALPHA2, _V1ALPHA2),
        (V1BETA1, _V1BETA2),
        (V1BETA2, _V1BETA2),
        (V1BETA3, _V1BETA3),
    )
}

_RESOURCES: Final = ListOf(
    Message("ResourceSpec", (_optional("name", STRING), _optional("weight", INT64)))
)
_SHAPE: Final = ListOf(
    Message("UtilizationShapePoint", (_optional("utilization", INT32), _optional("score", INT32)))
)
_RATIO: Final = Message(
    "RequestedToCapacityRatioArguments",
    (_optional("shape", _SHAPE), _optional("resources", _RESOURCES)),
)


def _argument(name: str, *fields: Field) -> Field:
    return _optional(name, Message(f"{name[0].upper()}{name[1:]}", fields))


POLICY: Final = Message(
    "Policy",
    (
        _optional("apiVersion", STRING),
        _optional("kind", STRING),
        _optional(
            "predicates",
            ListOf(
                Message(
                    "PredicatePolicy",
                    (
                        _optional("name", STRING),
                        _argument(
                            "argument",
                            _argument("serviceAffinity", _optional("labels", STRINGS)),
                            _argument(
                                "labelsPresence",
                                _optional("labels", STRINGS),
                                _optional("presence", BOOL),
                            ),
                        ),
                    ),
                )
            ),
        ),
        _optional(
            "priorities",
            ListOf(
                Message(
                    "PriorityPolicy",
                    (
                        _optional("name", STRING),
                        _optional("weight", INT64),
                        _argument(
                            "argument",
                            _argument("serviceAntiAffinity", _optional("label", STRING)),
                            _argument(
                                "labelPreference",
                                _optional("label", STRING),
                                _optional("presence", BOOL),
                            ),
                            _optional("requestedToCapacityRatioArguments", _RATIO),
                        ),
                    ),
                )
            ),
        ),
        _optional("extenders", ListOf(_part(CONFIGURATION, "extenders"))),
        _optional("hardPodAffinitySymmetricWeight", INT32),
        _optional("alwaysCheckAllPredicates", BOOL),
    ),
)

_TYPE_META: Final = (_optional("apiVersion", STRING), _optional("kind", STRING))

#: Arguments of plugins that no longer exist, by plugin.
ARGS: Final = {
    "NodeLabel": Message(
        "NodeLabelArgs",
        (
            *_TYPE_META,
            *(
                _optional(name, STRINGS)
                for name in (
                    "presentLabels",
                    "absentLabels",
                    "presentLabelsPreference",
                    "absentLabelsPreference",
                )
            ),
        ),
    ),
    "ServiceAffinity": Message(
        "ServiceAffinityArgs",
        (
            *_TYPE_META,
            _optional("affinityLabels", STRINGS),
            _optional("antiAffinityLabelsPreference", STRINGS),
        ),
    ),
    "RequestedToCapacityRatio": Message(
        "RequestedToCapacityRatioArgs", (*_TYPE_META, *_RATIO.fields)
    ),
    **{
        plugin: Message(f"{plugin}Args", (*_TYPE_META, _optional("resources", _RESOURCES)))
        for plugin in ("NodeResourcesLeastAllocated", "NodeResourcesMostAllocated")
    },
}


def without_unknown(value: Json, wire_type: WireType, unknown: list[str], path: str = "") -> Json:
    """Drop members that a message does not have, and list them by path."""
    match wire_type:
        case Message() if isinstance(value, dict):
            known = {field.name: field.type for field in wire_type.fields}
            unknown += [f"{path}{name}" for name in value if name not in known]
            return {
                name: without_unknown(part, known[name], unknown, f"{path}{name}.")
                for name, part in value.items()
                if name in known
            }
        case ListOf() if isinstance(value, list):
            return [
                without_unknown(item, wire_type.item, unknown, f"{path.rstrip('.')}[{index}].")
                for index, item in enumerate(value)
            ]
    return value
