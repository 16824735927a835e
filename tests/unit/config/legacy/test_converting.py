from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.config.legacy.converting import Conversion, convert, convert_provider
from kubesched.config.legacy.releases import KNOWN_THEN
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ConfigError
from tests.support.configuration_tables import GATES, HEADER
from tests.support.legacy_configurations import (
    DATA,
    FILES,
    TODAY,
    arguments,
    configuration,
    converted,
    loaded,
    policy,
    running,
)

OLD_WEIGHTS = {
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "InterPodAffinity": 1,
    "NodeAffinity": 1,
    "TaintToleration": 1,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
}
#: What scores only where a feature gate lets it.
BY_GATE = {"VolumeBinding": 1}


def old_scores(conversion: Conversion) -> dict[str, int]:
    """What scores, without plugins that came later."""
    found = running(conversion)["score"]
    return {name: weight for name, weight in found.items() if name in KNOWN_THEN}


@pytest.mark.parametrize("file", FILES)
def test_every_file_becomes_v1_that_stays_as_it_is(file: str) -> None:
    once = converted(file)

    again = convert(once.text, file, TODAY)

    assert again.text == once.text
    assert again.report.notes == ["this is v1 already: nothing was changed"]
    assert once.text.startswith(HEADER)


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3"])
def test_an_empty_configuration_keeps_the_default_weights_of_its_version(version: str) -> None:
    spread = {"v1alpha1": 1, "v1alpha2": 1}.get(version, 2)
    weights = {**OLD_WEIGHTS, "PodTopologySpread": spread}
    if version == "v1beta3":
        weights |= {"TaintToleration": 3, "NodeAffinity": 2, "InterPodAffinity": 2}

    assert old_scores(converted(configuration(version))) == {**weights, **BY_GATE}


def test_an_empty_v1beta3_is_the_default_configuration() -> None:
    assert loaded(converted(configuration("v1beta3"))) == SchedulerConfiguration.default(GATES)


def test_the_first_group_is_known() -> None:
    document = {**configuration("v1alpha1"), "apiVersion": "componentconfig/v1alpha1"}

    assert running(converted(document)) == running(converted(configuration("v1alpha1")))


def test_what_is_left_out_is_what_defaults_say() -> None:
    document = configuration(
        "v1beta3", parallelism=16, leaderElection={"leaderElect": True, "renewDeadline": "8s"}
    )

    conversion = converted(document)

    assert yaml.safe_load(conversion.text)["leaderElection"] == {"renewDeadline": "8s"}
    assert conversion.report.default == ["parallelism 16", "leaderElection.leaderElect true"]


def test_fields_that_no_version_had_are_reported() -> None:
    conversion = converted(configuration("v1beta2", parallelism=4, paralelism=8))

    assert conversion.report.lost == [
        "paralelism: KubeSchedulerConfiguration never had such a field"
    ]
    assert loaded(conversion).parallelism == 4


# --- providers --------------------------------------------------------------------------------


def test_the_autoscaler_provider_packs() -> None:
    conversion = convert_provider("ClusterAutoscalerProvider", TODAY)

    assert old_scores(conversion) == {**OLD_WEIGHTS, **BY_GATE}
    assert arguments(conversion, "NodeResourcesFit") == {
        "scoringStrategy": {"type": "MostAllocated"}
    }


def test_the_default_provider_spreads() -> None:
    conversion = convert_provider("DefaultProvider", TODAY)

    assert old_scores(conversion) == {**OLD_WEIGHTS, **BY_GATE}
    assert arguments(conversion, "NodeResourcesFit") is None


def test_a_provider_gives_the_defaults_of_all_profiles_of_a_file() -> None:
    document = configuration("v1beta1", profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}])

    conversion = converted(document, provider="ClusterAutoscalerProvider")

    for profile in (0, 1):
        assert arguments(conversion, "NodeResourcesFit", profile) is not None


# --- policies that a configuration names ------------------------------------------------------


def test_a_policy_of_an_algorithm_source_is_read_where_it_is() -> None:
    document = configuration(
        "v1alpha1",
        schedulerName="mine",
        algorithmSource={"policy": {"file": {"path": "/etc/policy.cfg"}}},
    )
    texts = {"/etc/policy.cfg": (DATA / "policy-with-extender.json").read_text()}

    conversion = converted(document, read_policy=texts.__getitem__)

    config = loaded(conversion)
    assert running(conversion) == running(converted("policy-with-extender.json"))
    assert config.profiles[0].scheduler_name == "mine"
    assert config.extenders == loaded(converted("policy-with-extender.json")).extenders


# --- what cannot be converted -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "more", "want"),
    [
        (
            {"apiVersion": "v1", "kind": "Pod"},
            {},
            'a KubeSchedulerConfiguration or a Policy is needed, not kind "Pod" of version "v1"',
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yaml": ""}},
            {},
            "the ConfigMap has no key policy.cfg; its keys: config.yaml",
        ),
        (
            policy(predicates=[{"name": "FitsWell"}]),
            {},
            'predicate "FitsWell" never existed, and has no argument',
        ),
        (
            policy(),
            {"provider": "DefaultProvider"},
            "a policy and --algorithm-provider exclude each other",
        ),
        (
            configuration("v1beta2"),
            {"provider": "DefaultProvider"},
            "--algorithm-provider does not go with v1beta2",
        ),
        (
            configuration("v1alpha1", algorithmSource={"provider": "Best"}),
            {},
            (
                'algorithm provider "Best" never existed: it has to be DefaultProvider or '
                "ClusterAutoscalerProvider"
            ),
        ),
        (
            configuration(
                "v1alpha1",
                algorithmSource={"policy": {}},
                plugins={"score": {"enabled": [{"name": "Mine"}]}},
            ),
            {},
            "plugins and algorithmSource.policy exclude each other",
        ),
        (
            configuration("v1beta1", profiles={"score": 1}),
            {},
            (
                "json: cannot unmarshal object into Go struct field "
                "KubeSchedulerConfiguration.profiles of type []v1.KubeSchedulerProfile"
            ),
        ),
        (
            configuration("v1beta1", podMaxBackoffSeconds=0),
            {},
            (
                "after conversion: podMaxBackoffSeconds: Invalid value: 0: must be greater than or "
                "equal to PodInitialBackoffSeconds"
            ),
        ),
    ],
    ids=[
        "another kind",
        "a ConfigMap of something else",
        "a predicate that never existed",
        "a policy and a provider",
        "a version without providers",
        "an unknown provider",
        "plugins and a policy",
        "a wrong type",
        "a value that was never valid",
    ],
)
def test_refused(document: dict[str, Any], more: dict[str, Any], want: str) -> None:
    with pytest.raises(ConfigError) as caught:
        converted(document, **more)

    assert str(caught.value) == f"old.yaml: {want}"


# --- whatever is in the file ------------------------------------------------------------------

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**40),
    st.just("x"),
    st.just([]),
    st.just({}),
    st.just([{}]),
    st.just({"name": "NodeName"}),
    st.just([None, "x"]),
)
DOCUMENTS = {file: yaml.safe_load((DATA / file).read_text()) for file in FILES}
DOCUMENTS["policy-labels-configmap.yaml"] = yaml.safe_load(
    DOCUMENTS["policy-labels-configmap.yaml"]["data"]["policy.cfg"]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places inside a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, part in inside:
        found.append((*path, key))
        if isinstance(part, dict | list):
            found += places(part, (*path, key))
    return found


@settings(max_examples=300, deadline=None)
@given(data=st.data(), file=st.sampled_from(FILES), junk=JUNK)
def test_a_damaged_file_is_converted_or_refused_in_one_line(
    data: st.DataObject, file: str, junk: Any
) -> None:
    document = copy.deepcopy(DOCUMENTS[file])
    *path, last = data.draw(st.sampled_from(places(document)))
    target: Any = document
    for key in path:
        target = target[key]
    target[last] = copy.deepcopy(junk)

    said = ""
    try:
        loaded(converted(document))
    except ConfigError as refused:
        said = str(refused)

    assert "\n" not in said
