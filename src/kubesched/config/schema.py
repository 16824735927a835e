"""The schema of the configuration: messages, their fields, and Go's names of types.

``strict`` decodes by this table and ``encoding`` encodes by it. Go's type names are part of the
error messages that operators search for.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec


class Form(enum.Enum):
    """The JSON form of a scalar."""

    STRING = enum.auto()
    BOOL = enum.auto()
    INTEGER = enum.auto()
    FLOAT = enum.auto()
    DURATION = enum.auto()
    BASE64 = enum.auto()
    #: any JSON, kept as it is
    RAW = enum.auto()


class Scalar(msgspec.Struct, frozen=True):
    """A value without parts."""

    form: Form
    go: str


class ListOf(msgspec.Struct, frozen=True):
    """A list of one type."""

    item: WireType

    @property
    def go(self) -> str:
        """Go's name of the type."""
        return f"[]{self.item.go}"


class MapOf(msgspec.Struct, frozen=True):
    """An object with free keys."""

    item: Scalar

    @property
    def go(self) -> str:
        """Go's name of the type."""
        return f"map[string]{self.item.go}"


class Field(msgspec.Struct, frozen=True):
    """A field of a message."""

    name: str
    type: WireType
    #: null and absent are not the same as the zero value
    pointer: bool = False
    omit_empty: bool = False
    #: Go struct that the field is inlined from
    embedded: str = ""

    @property
    def filled(self) -> bool:
        """Return whether decoding writes the zero value if the field is absent."""
        return not (self.pointer or self.omit_empty)


class Message(msgspec.Struct, frozen=True):
    """An object with known fields."""

    name: str
    fields: tuple[Field, ...]
    package: str = "v1"

    @property
    def go(self) -> str:
        """Go's name of the type."""
        return f"{self.package}.{self.name}"


WireType = Scalar | ListOf | MapOf | Message

STRING: Final = Scalar(Form.STRING, "string")
BOOL: Final = Scalar(Form.BOOL, "bool")
INT32: Final = Scalar(Form.INTEGER, "int32")
INT64: Final = Scalar(Form.INTEGER, "int64")
FLOAT32: Final = Scalar(Form.FLOAT, "float32")
DURATION: Final = Scalar(Form.DURATION, "string")
BASE64: Final = Scalar(Form.BASE64, "[]uint8")
RAW: Final = Scalar(Form.RAW, "runtime.RawExtension")
STRINGS: Final = ListOf(STRING)


def _plain(name: str, wire_type: WireType) -> Field:
    return Field(name, wire_type)


def _optional(name: str, wire_type: WireType) -> Field:
    return Field(name, wire_type, omit_empty=True)


def _pointer(name: str, wire_type: WireType) -> Field:
    return Field(name, wire_type, pointer=True, omit_empty=True)


def _enum(go: str) -> Scalar:
    return Scalar(Form.STRING, go)


_TYPE_META: Final = (
    Field("apiVersion", STRING, omit_empty=True, embedded="TypeMeta"),
    Field("kind", STRING, omit_empty=True, embedded="TypeMeta"),
)

# --- from the core API ------------------------------------------------------------------------

_NODE_SELECTOR_REQUIREMENT: Final = Message(
    "NodeSelectorRequirement",
    (
        _plain("key", STRING),
        _plain("operator", _enum("v1.NodeSelectorOperator")),
        _optional("values", STRINGS),
    ),
)
_NODE_SELECTOR_TERM: Final = Message(
    "NodeSelectorTerm",
    (
        _optional("matchExpressions", ListOf(_NODE_SELECTOR_REQUIREMENT)),
        _optional("matchFields", ListOf(_NODE_SELECTOR_REQUIREMENT)),
    ),
)
_NODE_SELECTOR: Final = Message(
    "NodeSelector", (_plain("nodeSelectorTerms", ListOf(_NODE_SELECTOR_TERM)),)
)
_PREFERRED_SCHEDULING_TERM: Final = Message(
    "PreferredSchedulingTerm",
    (_plain("weight", INT32), _plain("preference", _NODE_SELECTOR_TERM)),
)
_NODE_AFFINITY: Final = Message(
    "NodeAffinity",
    (
        _pointer("requiredDuringSchedulingIgnoredDuringExecution", _NODE_SELECTOR),
        _optional(
            "preferredDuringSchedulingIgnoredDuringExecution", ListOf(_PREFERRED_SCHEDULING_TERM)
        ),
    ),
)
_LABEL_SELECTOR_REQUIREMENT: Final = Message(
    "LabelSelectorRequirement",
    (
        _plain("key", STRING),
        _plain("operator", _enum("v1.LabelSelectorOperator")),
        _optional("values", STRINGS),
    ),
)
_LABEL_SELECTOR: Final = Message(
    "LabelSelector",
    (
        _optional("matchLabels", MapOf(STRING)),
        _optional("matchExpressions", ListOf(_LABEL_SELECTOR_REQUIREMENT)),
    ),
)
_TOPOLOGY_SPREAD_CONSTRAINT: Final = Message(
    "TopologySpreadConstraint",
    (
        _plain("maxSkew", INT32),
        _plain("topologyKey", STRING),
        _plain("whenUnsatisfiable", _enum("v1.UnsatisfiableConstraintAction")),
        _pointer("labelSelector", _LABEL_SELECTOR),
        _pointer("minDomains", INT32),
        _pointer("nodeAffinityPolicy", _enum("v1.NodeInclusionPolicy")),
        _pointer("nodeTaintsPolicy", _enum("v1.NodeInclusionPolicy")),
        _optional("matchLabelKeys", STRINGS),
    ),
)

# --- arguments of plugins ---------------------------------------------------------------------

_SHAPE: Final = ListOf(
    Message("UtilizationShapePoint", (_plain("utilization", INT32), _plain("score", INT32)))
)
_RESOURCES: Final = ListOf(
    Message("ResourceSpec", (_plain("name", STRING), _optional("weight", INT64)))
)
_SCORING_STRATEGY: Final = Message(
    "ScoringStrategy",
    (
        _optional("type", _enum("v1.ScoringStrategyType")),
        _optional("resources", _RESOURCES),
        _pointer(
            "requestedToCapacityRatio",
            Message("RequestedToCapacityRatioParam", (_optional("shape", _SHAPE),)),
        ),
    ),
)

_ARGS: Final = (
    Message(
        "DefaultPreemptionArgs",
        (
            *_TYPE_META,
            _pointer("minCandidateNodesPercentage", INT32),
            _pointer("minCandidateNodesAbsolute", INT32),
        ),
    ),
    Message(
        "DynamicResourcesArgs",
        (
            *_TYPE_META,
            Field("filterTimeout", DURATION, pointer=True),
            _pointer("bindingTimeout", DURATION),
        ),
    ),
    Message(
        "InterPodAffinityArgs",
        (
            *_TYPE_META,
            _pointer("hardPodAffinityWeight", INT32),
            _plain("ignorePreferredTermsOfExistingPods", BOOL),
        ),
    ),
    Message("NodeAffinityArgs", (*_TYPE_META, _pointer("addedAffinity", _NODE_AFFINITY))),
    Message(
        "NodeResourcesBalancedAllocationArgs", (*_TYPE_META, _optional("resources", _RESOURCES))
    ),
    Message(
        "NodeResourcesFitArgs",
        (
            *_TYPE_META,
            _optional("ignoredResources", STRINGS),
            _optional("ignoredResourceGroups", STRINGS),
            _pointer("scoringStrategy", _SCORING_STRATEGY),
        ),
    ),
    Message(
        "PodTopologySpreadArgs",
        (
            *_TYPE_META,
            _optional("defaultConstraints", ListOf(_TOPOLOGY_SPREAD_CONSTRAINT)),
            _optional("defaultingType", _enum("v1.PodTopologySpreadConstraintsDefaulting")),
        ),
    ),
    Message(
        "VolumeBindingArgs",
        (*_TYPE_META, _pointer("bindTimeoutSeconds", INT64), _optional("shape", _SHAPE)),
    ),
)

# --- the configuration ------------------------------------------------------------------------

_PLUGIN: Final = Message("Plugin", (_plain("name", STRING), _pointer("weight", INT32)))
_PLUGIN_SET: Final = Message(
    "PluginSet", (_optional("enabled", ListOf(_PLUGIN)), _optional("disabled", ListOf(_PLUGIN)))
)
_PLUGINS: Final = Message(
    "Plugins",
    tuple(
        _optional(point, _PLUGIN_SET)
        for point in (
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
    ),
)
_PROFILE: Final = Message(
    "KubeSchedulerProfile",
    (
        _pointer("schedulerName", STRING),
        _pointer("percentageOfNodesToScore", INT32),
        _pointer("plugins", _PLUGINS),
        _optional(
            "pluginConfig",
            ListOf(Message("PluginConfig", (_plain("name", STRING), _optional("args", RAW)))),
        ),
    ),
)
_LEADER_ELECTION: Final = Message(
    "LeaderElectionConfiguration",
    (
        Field("leaderElect", BOOL, pointer=True),
        _plain("leaseDuration", DURATION),
        _plain("renewDeadline", DURATION),
        _plain("retryPeriod", DURATION),
        _plain("resourceLock", STRING),
        _plain("resourceName", STRING),
        _plain("resourceNamespace", STRING),
    ),
    package="v1alpha1",
)
_CLIENT_CONNECTION: Final = Message(
    "ClientConnectionConfiguration",
    (
        _plain("kubeconfig", STRING),
        _plain("acceptContentTypes", STRING),
        _plain("contentType", STRING),
        _plain("qps", FLOAT32),
        _plain("burst", INT32),
    ),
    package="v1alpha1",
)
_EXTENDER_TLS_CONFIG: Final = Message(
    "ExtenderTLSConfig",
    (
        _optional("insecure", BOOL),
        _optional("serverName", STRING),
        _optional("certFile", STRING),
        _optional("keyFile", STRING),
        _optional("caFile", STRING),
        _optional("certData", BASE64),
        _optional("keyData", BASE64),
        _optional("caData", BASE64),
    ),
)
_EXTENDER: Final = Message(
    "Extender",
    (
        _plain("urlPrefix", STRING),
        _optional("filterVerb", STRING),
        _optional("preemptVerb", STRING),
        _optional("prioritizeVerb", STRING),
        _optional("weight", INT64),
        _optional("bindVerb", STRING),
        _optional("enableHTTPS", BOOL),
        _pointer("tlsConfig", _EXTENDER_TLS_CONFIG),
        _optional("httpTimeout", DURATION),
        _optional("nodeCacheCapable", BOOL),
        _optional(
            "managedResources",
            ListOf(
                Message(
                    "ExtenderManagedResource",
                    (_plain("name", STRING), _optional("ignoredByScheduler", BOOL)),
                )
            ),
        ),
        _optional("ignorable", BOOL),
    ),
)

CONFIGURATION: Final = Message(
    "KubeSchedulerConfiguration",
    (
        *_TYPE_META,
        _pointer("parallelism", INT32),
        _plain("leaderElection", _LEADER_ELECTION),
        _plain("clientConnection", _CLIENT_CONNECTION),
        *(
            Field(name, BOOL, pointer=True, omit_empty=True, embedded="DebuggingConfiguration")
            for name in ("enableProfiling", "enableContentionProfiling")
        ),
        _pointer("percentageOfNodesToScore", INT32),
        _pointer("podInitialBackoffSeconds", INT64),
        _pointer("podMaxBackoffSeconds", INT64),
        _optional("profiles", ListOf(_PROFILE)),
        _optional("extenders", ListOf(_EXTENDER)),
        _optional("delayCacheUntilActive", BOOL),
    ),
)

GROUP: Final = "kubescheduler.config.k8s.io"
VERSION: Final = "v1"
#: The name of the group until Kubernetes v1.11.
FIRST_GROUP: Final = "componentconfig"

#: Kinds of the group and version, by name.
KINDS: Final = {message.name: message for message in (CONFIGURATION, *_ARGS)}
