"""A configuration is written as kube-scheduler writes it, and reads back as the same."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.config import encoding, loading
from kubesched.config.args import ARGS_KINDS
from kubesched.config.extenders import with_extender_effects
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginConfig
from kubesched.config.types import ClientConnection, SchedulerConfiguration
from tests.support.configuration_tables import GATES, HEADER, rows

DEFAULT = SchedulerConfiguration.default(GATES)


@pytest.mark.parametrize("row", rows("written"))
def test_written(row: dict[str, str]) -> None:
    config = loading.decode(row["config"], gates=FeatureGates.parse(row["gates"]))

    written = encoding.to_yaml(encoding.used_profiles(with_extender_effects(config)))

    assert written == row["written"]


def test_json_and_yaml_say_the_same() -> None:
    assert json.loads(encoding.to_json(DEFAULT)) == yaml.safe_load(encoding.to_yaml(DEFAULT))


def test_json_begins_with_kind_and_version_and_keeps_the_order_of_fields() -> None:
    text = encoding.to_json(DEFAULT)

    assert text.startswith(
        '{"kind":"KubeSchedulerConfiguration","apiVersion":"kubescheduler.config.k8s.io/v1",'
        '"parallelism":16,"leaderElection":{"leaderElect":true,"leaseDuration":"15s",'
    )
    assert (
        '{"name":"DynamicResources","args":{"kind":"DynamicResourcesArgs",'
        '"apiVersion":"kubescheduler.config.k8s.io/v1",'
        '"filterTimeout":"10s","bindingTimeout":"10m0s"}}'
    ) in text


@pytest.mark.parametrize(
    ("qps", "want"),
    [(50.0, "50"), (33.3, "33.3"), (-1.0, "-1"), (0.1, "0.1"), (1 / 3, "0.33333334")],
)
def test_rates_are_written_with_the_digits_of_single_precision(qps: float, want: str) -> None:
    config = msgspec.structs.replace(DEFAULT, client_connection=ClientConnection(qps=qps))

    assert f'"qps":{want},' in encoding.to_json(config)


def test_arguments_without_a_gate_are_null_or_absent() -> None:
    gates = FeatureGates.parse("DRASchedulerFilterTimeout=false,DRADeviceBindingConditions=false")

    text = encoding.to_json(SchedulerConfiguration.default(gates))

    assert '"DynamicResourcesArgs","apiVersion":"kubescheduler.config.k8s.io/v1",' in text
    assert '"filterTimeout":null}' in text


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("plain", "plain"),
        ("on", '"on"'),
        ("12", '"12"'),
        ("1:30", '"1:30"'),
        ("2001-01-01", '"2001-01-01"'),
        ("", '""'),
        ("*", "'*'"),
        ("a: b", "'a: b'"),
        ("ünï", "ünï"),
        ("a\nb", "|-\n    a\n    b"),
    ],
)
def test_yaml_quotes_only_what_needs_it(name: str, want: str) -> None:
    election = msgspec.structs.replace(DEFAULT.leader_election, resource_name=name)
    config = msgspec.structs.replace(DEFAULT, leader_election=election)

    assert f"  resourceName: {want}\n" in encoding.to_yaml(config)


def test_used_profiles_leave_out_what_no_plugin_reads() -> None:
    fragment: dict[str, Any] = {
        "plugins": {
            "multiPoint": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}, {"name": "Mine"}],
            }
        },
        "pluginConfig": [
            {"name": "VolumeBinding"},
            {"name": "Mine", "args": {"a": 1}},
            {"name": "DefaultBinder"},
        ],
    }
    profile = loading.profile_from_fragment(fragment, GATES)

    used = encoding.used_profiles(SchedulerConfiguration(profiles=(profile,)))

    assert used.profiles[0].plugin_config == (PluginConfig(name="Mine", args={"a": 1}),)


# --- what is written reads back ---------------------------------------------------------------

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
PLUGINS = st.sampled_from(["NodeName", "ImageLocality", "NodeAffinity", "Mine", "*"])
PLUGIN_REFS = st.lists(
    st.fixed_dictionaries({"name": PLUGINS}, optional={"weight": st.integers(0, 100)}),
    max_size=3,
    unique_by=lambda ref: str(ref["name"]),
)
PLUGIN_SETS = st.fixed_dictionaries({}, optional={"enabled": PLUGIN_REFS, "disabled": PLUGIN_REFS})
SECONDS = st.integers(1, 10**6).map(lambda tenths: f"{tenths}00ms")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
ARGS: dict[str, st.SearchStrategy[Any]] = {
    "DefaultPreemption": st.fixed_dictionaries(
        {"minCandidateNodesPercentage": st.integers(0, 100)},
        optional={"minCandidateNodesAbsolute": st.integers(1, 2**31 - 1)},
    ),
    "DynamicResources": st.fixed_dictionaries(
        {}, optional={"filterTimeout": SECONDS, "bindingTimeout": st.just("2h45m0.5s")}
    ),
    "InterPodAffinity": st.fixed_dictionaries(
        {},
        optional={
            "hardPodAffinityWeight": st.integers(0, 100),
            "ignorePreferredTermsOfExistingPods": st.booleans(),
        },
    ),
    "NodeAffinity": st.just(
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["on"]}]}
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchFields": []}}
                ],
            }
        }
    ),
    "NodeResourcesFit": st.fixed_dictionaries(
        {},
        optional={
            "ignoredResources": st.lists(NAMES, max_size=2),
            "scoringStrategy": st.fixed_dictionaries(
                {"type": st.sampled_from(["LeastAllocated", "MostAllocated"])},
                optional={"resources": st.just([{"name": "cpu"}, {"name": "a.b/c", "weight": 3}])},
            ),
        },
    ),
    "PodTopologySpread": st.just(
        {
            "defaultingType": "List",
            "defaultConstraints": [
                {
                    "maxSkew": 2,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "minDomains": 3,
                    "nodeTaintsPolicy": "Honor",
                    "matchLabelKeys": ["x"],
                }
            ],
        }
    ),
    "VolumeBinding": st.fixed_dictionaries({"bindTimeoutSeconds": st.integers(0, 2**63 - 1)}),
    "Mine": JSON,
}


@st.composite
def profiles(draw: st.DrawFn) -> dict[str, Any]:
    points = st.sampled_from(["multiPoint", "filter", "score", "preBind", "placementScore"])
    configured = draw(st.lists(st.sampled_from(sorted(ARGS)), unique=True, max_size=4))
    profile: dict[str, Any] = {
        "schedulerName": draw(NAMES),
        "plugins": draw(st.dictionaries(points, PLUGIN_SETS, max_size=3)),
        "pluginConfig": [{"name": name, "args": draw(ARGS[name])} for name in configured],
    }
    percentage = draw(st.none() | st.integers(0, 100))
    return profile if percentage is None else profile | {"percentageOfNodesToScore": percentage}


@st.composite
def extenders(draw: st.DrawFn) -> dict[str, Any]:
    return draw(
        st.fixed_dictionaries(
            {"urlPrefix": NAMES},
            optional={
                "filterVerb": NAMES,
                "weight": st.integers(-(2**63), 2**63 - 1),
                "enableHTTPS": st.booleans(),
                "tlsConfig": st.fixed_dictionaries(
                    {}, optional={"insecure": st.booleans(), "caData": st.just("YWJj")}
                ),
                "httpTimeout": SECONDS,
                "ignorable": st.booleans(),
            },
        )
    )


REQUIRED: dict[str, st.SearchStrategy[Any]] = {
    "apiVersion": st.just("kubescheduler.config.k8s.io/v1"),
    "kind": st.just("KubeSchedulerConfiguration"),
    "profiles": st.lists(profiles(), max_size=2, unique_by=lambda p: str(p["schedulerName"])),
}
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "parallelism": st.integers(1, 2**31 - 1),
    "percentageOfNodesToScore": st.integers(0, 100),
    "podInitialBackoffSeconds": st.integers(1, 10),
    "podMaxBackoffSeconds": st.integers(10, 2**63 - 1),
    "enableProfiling": st.booleans(),
    "enableContentionProfiling": st.booleans(),
    "delayCacheUntilActive": st.booleans(),
    "leaderElection": st.fixed_dictionaries(
        {"leaderElect": st.just(value=False)},
        optional={"leaseDuration": SECONDS, "resourceName": NAMES},
    ),
    "clientConnection": st.fixed_dictionaries(
        {},
        optional={
            "kubeconfig": NAMES,
            "qps": st.integers(-100, 10**6).map(lambda number: number / 4),
            "burst": st.integers(0, 2**31 - 1),
        },
    ),
    "extenders": st.lists(extenders(), max_size=2),
}
CONFIGURATIONS = st.fixed_dictionaries(REQUIRED, optional=OPTIONAL)


@settings(max_examples=60, deadline=None)
@given(CONFIGURATIONS)
def test_what_is_written_reads_back(document: dict[str, Any]) -> None:
    config = loading.decode(json.dumps(document), gates=GATES)

    assert loading.decode(encoding.to_yaml(config), gates=GATES) == config
    assert loading.decode(encoding.to_json(config), gates=GATES) == config


def test_every_plugin_with_arguments_takes_part_in_that() -> None:
    assert set(ARGS_KINDS) - set(ARGS) == {"NodeResourcesBalancedAllocation"}
    assert loading.decode(HEADER, gates=GATES) == DEFAULT
