from __future__ import annotations

import json

import pytest

from kubesched.config.legacy.reading import POLICY, read
from kubesched.config.legacy.report import ConversionReport
from kubesched.errors import ConfigError
from tests.support.configuration_tables import HEADER

POLICY_TEXT = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "HostName"}]}'


@pytest.mark.parametrize(
    "text",
    [
        POLICY_TEXT,
        "kind: Policy\napiVersion: v1\npredicates: [{name: HostName}]\n",
        '{"predicates": [{"name": "HostName"}]}',
        json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "data": {"policy.cfg": POLICY_TEXT}}),
        (
            "kind: ConfigMap\napiVersion: v1\ndata:\n  policy.cfg: |\n"
            "    kind: Policy\n    apiVersion: v1\n    predicates: [{name: HostName}]\n"
        ),
    ],
    ids=["JSON", "YAML", "without a kind", "ConfigMap in JSON", "ConfigMap in YAML"],
)
def test_a_policy_comes_in_many_forms(text: str) -> None:
    old = read(text, ConversionReport())

    assert old.kind == POLICY
    assert old.fields["predicates"] == [{"name": "HostName"}]


def test_null_is_as_if_not_there() -> None:
    old = read('{"kind": "Policy", "predicates": null, "priorities": []}', ConversionReport())

    assert "predicates" not in old.fields
    assert old.fields["priorities"] == []


@pytest.mark.parametrize(
    ("version", "is_current"), [("v1", True), ("v1beta3", False), ("v1alpha1", False)]
)
def test_a_configuration_says_its_version(version: str, is_current: bool) -> None:
    report = ConversionReport()

    old = read(HEADER.replace("/v1\n", f"/{version}\n"), report)

    assert old.is_current == is_current
    assert report.source == f"KubeSchedulerConfiguration kubescheduler.config.k8s.io/{version}"


def test_a_version_that_never_was_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'not kind "KubeSchedulerConfiguration" of version "'):
        read(HEADER.replace("/v1\n", "/v2\n"), ConversionReport())


@pytest.mark.parametrize(
    "text",
    [
        "kind: Policy\npredicates: {name: HostName}\n",
        "kind: Policy\npriorities: [{name: EqualPriority, weight: heavy}]\n",
        "kind: Policy\nextenders: [urlPrefix]\n",
        HEADER.replace("/v1\n", "/v1beta1\n") + "profiles: [{plugins: {score: []}}]\n",
        HEADER.replace("/v1\n", "/v1beta1\n")
        + "profiles: [{pluginConfig: [{name: NodeLabel, args: [a]}]}]\n",
        HEADER.replace("/v1\n", "/v1beta1\n")
        + "profiles: [{pluginConfig: [{name: NodeLabel, args: {presentLabels: 3}}]}]\n",
        "kind: ConfigMap\ndata: [policy.cfg]\n",
        "[]",
        "predicates",
        "",
    ],
)
def test_a_value_of_the_wrong_type_is_one_line(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text, ConversionReport())

    assert "\n" not in str(caught.value)


def test_a_key_that_is_there_twice_is_noted() -> None:
    report = ConversionReport()

    old = read("kind: Policy\npredicates: []\npredicates: [{name: HostName}]\n", report)

    assert old.fields["predicates"] == [{"name": "HostName"}]
    assert report.notes == ['the last one counts: line 3: key "predicates" already set in map']


def test_arguments_lose_the_version_of_their_configuration() -> None:
    args = (
        "{apiVersion: kubescheduler.config.k8s.io/v1beta2, kind: InterPodAffinityArgs, "
        "hardPodAffinityWeight: 2}"
    )
    text = HEADER.replace("/v1\n", "/v1beta2\n")
    text += f"profiles: [{{pluginConfig: [{{name: InterPodAffinity, args: {args}}}]}}]\n"

    (profile,) = read(text, ConversionReport()).fields["profiles"]

    assert profile["pluginConfig"][0]["args"] == {"hardPodAffinityWeight": 2}
