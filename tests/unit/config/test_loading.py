"""A configuration file is read strictly, and refused in kube-scheduler's words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubesched.api.core import NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.config import loading
from kubesched.config.args import (
    DefaultPreemptionArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
)
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginRef
from kubesched.config.types import Extender, ExtenderTLSConfig, SchedulerConfiguration
from kubesched.errors import ConfigError
from tests.support.configuration_tables import GATES, HEADER, rows


def decode(body: str, gates: FeatureGates = GATES) -> SchedulerConfiguration:
    return loading.decode(HEADER + body, gates=gates)


@pytest.mark.parametrize("row", rows("undecodable"))
def test_undecodable(row: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        loading.decode(row["config"], gates=GATES)

    assert str(caught.value) == row["error"]


def test_an_empty_configuration_is_the_default_one() -> None:
    assert decode("") == SchedulerConfiguration.default(GATES)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("apiVersion: kubescheduler.config.k8s.io/v1\nparallelism: 4\n",
         ("Object 'Kind' is missing in "
         "'apiVersion: kubescheduler.config.k8s.io/v1 parallelism: 4'")),
        ("kind: KubeSchedulerConfiguration\n",
         "Object 'apiVersion' is missing in 'kind: KubeSchedulerConfiguration'"),
        ("a: " + "x" * 100,
         "Object 'Kind' is missing in 'a: " + "x" * 77 + "…'"),
    ],
    ids=["no kind", "no version", "a long text is cut"],
)  # fmt: skip
def test_what_has_no_type_is_shown_on_one_line(text: str, want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loading.decode(text, gates=GATES)

    assert str(caught.value) == want


def test_malformed_json() -> None:
    with pytest.raises(ConfigError, match=r"^x\.json: couldn't get version/kind; json parse error"):
        loading.decode('{"apiVersion": }', "x.json", gates=GATES)


# --- files ------------------------------------------------------------------------------------


def test_load_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEADER + "parallelism: 7\n")

    assert loading.load(path, gates=GATES).parallelism == 7


def test_messages_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEADER + "parallelism: 7\nparallelism: 8\n")

    with pytest.raises(ConfigError) as caught:
        loading.load(path, gates=GATES)

    assert str(caught.value) == (
        f"{path}: strict decoding error: yaml: unmarshal errors: "
        'line 4: key "parallelism" already set in map'
    )


def test_validation_messages_name_the_file_too() -> None:
    with pytest.raises(ConfigError, match=r"^my\.yaml: parallelism: Invalid value: 0: "):
        loading.decode(HEADER + "parallelism: 0\n", "my.yaml", gates=GATES)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "nothing.yaml"

    with pytest.raises(ConfigError) as caught:
        loading.load(path, gates=GATES)

    assert str(caught.value) == f"open {path}: no such file or directory"


def test_a_directory_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        loading.load(tmp_path, gates=GATES)

    assert str(caught.value) == f"read {tmp_path}: is a directory"


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(HEADER.encode() + b"a: \xff\n")

    with pytest.raises(ConfigError, match="yaml: invalid UTF-8 at byte 79"):
        loading.load(path, gates=GATES)


def test_flags_are_applied_before_validation() -> None:
    def without_election(config: SchedulerConfiguration) -> SchedulerConfiguration:
        election = msgspec.structs.replace(config.leader_election, leader_elect=False)
        return msgspec.structs.replace(config, leader_election=election)

    text = HEADER + "leaderElection: {leaseDuration: 1s}\n"

    with pytest.raises(ConfigError):
        loading.decode(text, gates=GATES)
    config = loading.decode(text, gates=GATES, amend=without_election)
    assert config.leader_election.lease_duration == Duration.of_seconds(1)


# --- values -----------------------------------------------------------------------------------


def test_every_field_at_the_top() -> None:
    config = decode("""\
parallelism: 4
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
delayCacheUntilActive: true
enableContentionProfiling: false
leaderElection: {leaderElect: false, leaseDuration: 1m30s, resourceName: mine}
clientConnection: {kubeconfig: /k, qps: 33.5, burst: 7, contentType: application/json}
""")

    assert config.parallelism == 4
    assert config.percentage_of_nodes_to_score == 30
    assert config.pod_initial_backoff_seconds == 2
    assert config.pod_max_backoff_seconds == 20
    assert config.delay_cache_until_active
    assert (config.enable_profiling, config.enable_contention_profiling) == (True, False)
    assert not config.leader_election.leader_elect
    assert config.leader_election.lease_duration.seconds == 90
    assert config.leader_election.renew_deadline.seconds == 10
    assert config.leader_election.resource_name == "mine"
    assert config.leader_election.resource_namespace == "kube-system"
    assert config.client_connection.kubeconfig == "/k"
    assert (config.client_connection.qps, config.client_connection.burst) == (33.5, 7)
    assert config.client_connection.content_type == "application/json"


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("", (True, True)),
        ("enableProfiling: false", (False, False)),
        ("enableProfiling: false\nenableContentionProfiling: true", (False, True)),
        ("enableContentionProfiling: false", (True, False)),
    ],
)
def test_contention_profiling_follows_profiling(body: str, want: tuple[bool, bool]) -> None:
    config = decode(body)

    assert (config.enable_profiling, config.enable_contention_profiling) == want


@pytest.mark.parametrize(
    "body",
    [
        "clientConnection: {qps: 0, burst: 0, contentType: ''}",
        "leaderElection: {leaseDuration: 0s, renewDeadline: 0s, retryPeriod: '0'}",
        "leaderElection: {resourceLock: '', resourceName: '', resourceNamespace: ''}",
        "profiles: []",
        "profiles: null\nextenders: null\nparallelism: null\nleaderElection: null",
        "profiles: [null]",
        "profiles: [{schedulerName: null, plugins: null, pluginConfig: null}]",
    ],
)
def test_zeros_and_nulls_stand_for_the_default(body: str) -> None:
    assert decode(body) == SchedulerConfiguration.default(GATES)


def test_json_and_yaml_mean_the_same() -> None:
    profile = {"schedulerName": "a", "pluginConfig": [{"name": "Foo", "args": {"b": [1.5, None]}}]}
    tree = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
        "leaderElection": {"leaseDuration": "20s"},
    }
    body = """\
profiles: [{schedulerName: a, pluginConfig: [{name: Foo, args: {b: [1.5, null]}}]}]
leaderElection: {leaseDuration: 20s}
"""

    assert loading.decode(json.dumps(tree), gates=GATES) == decode(body)


def test_arguments_of_in_tree_plugins_are_typed_and_completed() -> None:
    profile = decode("""\
profiles:
- pluginConfig:
  - name: NodeAffinity
    args:
      kind: NodeAffinityArgs
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{key: zone, operator: In, values: [a]}]
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu}, {name: a.b/c, weight: 5}]}
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 0}
  - name: DefaultPreemption
""").profiles[0]
    expression = NodeSelectorRequirement(key="zone", operator="In", values=("a",))
    selector = NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_expressions=(expression,)),)
    )

    assert profile.args("NodeAffinity", NodeAffinityArgs).added_affinity == NodeAffinity(
        required_during_scheduling_ignored_during_execution=selector
    )
    strategy = profile.args("NodeResourcesFit", NodeResourcesFitArgs).scoring_strategy
    assert strategy.type == "MostAllocated"
    assert strategy.resources == (
        ResourceSpec(name="cpu", weight=1),
        ResourceSpec(name="a.b/c", weight=5),
    )
    affinity = profile.args("InterPodAffinity", InterPodAffinityArgs)
    assert affinity.hard_pod_affinity_weight == 0
    preemption = profile.args("DefaultPreemption", DefaultPreemptionArgs)
    assert preemption == DefaultPreemptionArgs()


def test_what_a_constraint_leaves_out_is_empty() -> None:
    with pytest.raises(ConfigError, match=r"maxSkew: Invalid value: 0"):
        decode("""\
profiles:
- pluginConfig:
  - {name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{}]}}
""")


@pytest.mark.parametrize(
    ("args", "want"),
    [
        ("{b: 1, a: [x, 1.5, true, null]}", {"a": ["x", 1.5, True, None], "b": 1}),
        ("null", None),
        ("text", "text"),
        ("[1]", [1]),
    ],
)
def test_arguments_of_other_plugins_stay_as_they_are(args: str, want: Any) -> None:
    profile = decode(f"profiles: [{{pluginConfig: [{{name: Foo, args: {args}}}]}}]\n").profiles[0]

    assert profile.plugin_config[0].name == "Foo"
    assert profile.plugin_config[0].args == want


def test_extenders() -> None:
    config = decode("""\
extenders:
- urlPrefix: http://a
  filterVerb: f
  preemptVerb: p
  prioritizeVerb: s
  weight: 5
  bindVerb: b
  enableHTTPS: true
  tlsConfig: {insecure: true, serverName: x, caData: YWJj}
  httpTimeout: 3s
  nodeCacheCapable: true
  managedResources: [{name: a.b/c, ignoredByScheduler: true}]
  ignorable: true
- urlPrefix: http://b
""")

    first, second = config.extenders
    assert (first.filter_verb, first.preempt_verb, first.prioritize_verb) == ("f", "p", "s")
    assert (first.weight, first.bind_verb) == (5, "b")
    assert (first.enable_https, first.node_cache_capable, first.ignorable) == (True, True, True)
    assert first.tls_config == ExtenderTLSConfig(insecure=True, server_name="x", ca_data=b"abc")
    assert first.http_timeout == Duration.of_seconds(3)
    assert [(r.name, r.ignored_by_scheduler) for r in first.managed_resources] == [("a.b/c", True)]
    assert second == Extender(url_prefix="http://b")


# --- fragments --------------------------------------------------------------------------------


def test_a_fragment_is_a_profile_like_any_other() -> None:
    fragment = {
        "plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 5}]}},
        "pluginConfig": [{"name": "PodTopologySpread", "args": {"defaultingType": "List"}}],
    }

    profile = loading.profile_from_fragment(fragment, GATES)

    assert profile.scheduler_name == "default-scheduler"
    assert profile.plugins.score.enabled == (PluginRef(name="ImageLocality", weight=5),)
    assert profile.args("PodTopologySpread", PodTopologySpreadArgs).defaulting_type == "List"
    assert profile.plugins.multi_point == (
        SchedulerConfiguration.default(GATES).profiles[0].plugins.multi_point
    )


def test_an_empty_fragment_is_the_default_profile() -> None:
    default = SchedulerConfiguration.default(GATES).profiles[0]

    assert loading.profile_from_fragment({}, GATES) == default


@pytest.mark.parametrize(
    ("fragment", "want"),
    [
        ({"plugin": {}}, 'strict decoding error: unknown field "profiles[0].plugin"'),
        (
            {"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": -1}}]},
            (
                "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: -1: "
                "not in valid range [0, 100]"
            ),
        ),
    ],
)
def test_a_fragment_is_refused_like_a_file(fragment: dict[str, Any], want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loading.profile_from_fragment(fragment, GATES)

    assert str(caught.value) == want
