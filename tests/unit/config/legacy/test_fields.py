from __future__ import annotations

from typing import Any

import pytest
import yaml

from kubesched.config.durations import Duration
from kubesched.errors import ConfigError
from tests.support.legacy_configurations import (
    arguments,
    configuration,
    converted,
    loaded,
    running,
)


def test_fields_of_v1alpha1_become_a_profile() -> None:
    document = configuration("v1alpha1", schedulerName="mine", hardPodAffinitySymmetricWeight=0)

    conversion = converted(document)

    assert loaded(conversion).profiles[0].scheduler_name == "mine"
    assert arguments(conversion, "InterPodAffinity") == {"hardPodAffinityWeight": 0}


def test_post_filter_of_v1alpha1_ran_before_scoring() -> None:
    plugins = {"postFilter": {"enabled": [{"name": "Mine"}]}}

    conversion = converted(configuration("v1alpha1", plugins=plugins))

    (profile,) = yaml.safe_load(conversion.text)["profiles"]
    assert profile["plugins"]["preScore"] == {"enabled": [{"name": "Mine"}]}
    assert "postFilter" not in profile["plugins"]


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
def test_plugins_that_unreserve_are_plugins_that_reserve(version: str) -> None:
    plugins = {
        "reserve": {"enabled": [{"name": "Both"}]},
        "unreserve": {"enabled": [{"name": "Both"}, {"name": "Mine"}]},
    }
    fields: dict[str, Any] = {"plugins": plugins}
    document = configuration(
        version, **(fields if version == "v1alpha1" else {"profiles": [fields]})
    )

    (profile,) = yaml.safe_load(converted(document).text)["profiles"]

    assert profile["plugins"]["reserve"] == {"enabled": [{"name": "Both"}, {"name": "Mine"}]}
    assert "unreserve" not in profile["plugins"]


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
def test_preemption_can_be_disabled(version: str) -> None:
    conversion = converted(configuration(version, disablePreemption=True))

    assert "DefaultPreemption" not in running(conversion)["postFilter"]
    assert "DefaultPreemption" not in running(conversion)["preEnqueue"]


def test_fields_of_all_profiles_go_to_each_of_them() -> None:
    profiles = [{"schedulerName": "a"}, {"schedulerName": "b"}]
    document = configuration(
        "v1alpha2", profiles=profiles, bindTimeoutSeconds=30, disablePreemption=True
    )

    conversion = converted(document)

    for profile in (0, 1):
        assert arguments(conversion, "VolumeBinding", profile) == {"bindTimeoutSeconds": 30}
        assert "DefaultPreemption" not in running(conversion, profile)["postFilter"]


def test_a_lock_has_the_names_of_today() -> None:
    election = {
        "lockObjectName": "mine",
        "lockObjectNamespace": "here",
        "resourceLock": "endpointsleases",
    }

    conversion = converted(configuration("v1alpha1", leaderElection=election))

    found = loaded(conversion).leader_election
    assert (found.resource_name, found.resource_namespace) == ("mine", "here")
    assert found.resource_lock == "leases"


def test_a_lock_that_the_old_one_does_not_see_is_a_reason_to_be_careful() -> None:
    election = {"resourceLock": "endpoints"}

    notes = converted(configuration("v1beta1", leaderElection=election)).report.notes

    assert any("stop the old one first" in note for note in notes)


def test_a_lock_of_two_names_is_refused() -> None:
    election = {"lockObjectName": "a", "resourceName": "b"}

    with pytest.raises(ConfigError, match=r"lockObjectName is a, but .*resourceName is b$"):
        converted(configuration("v1alpha1", leaderElection=election))


@pytest.mark.parametrize(
    ("address", "is_lost"),
    [("0.0.0.0:10251", True), (":10251", True), ("", False), ("127.0.0.1:0", False)],
)
def test_addresses_without_tls_are_gone(address: str, is_lost: bool) -> None:
    conversion = converted(configuration("v1beta2", healthzBindAddress=address))

    assert bool(conversion.report.lost) == is_lost
    assert all("--secure-port" in line for line in conversion.report.lost)


@pytest.mark.parametrize(
    ("version", "want"), [("v1alpha2", "List"), ("v1beta1", "List"), ("v1beta2", None)]
)
def test_constraints_were_a_list_without_saying_so(version: str, want: str | None) -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    args = {"defaultConstraints": [constraint]}
    document = configuration(
        version, profiles=[{"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}]
    )
    if want is None:
        with pytest.raises(ConfigError, match=r"defaultingType: Invalid value"):
            converted(document)
        return

    found = arguments(converted(document), "PodTopologySpread")

    assert found == {**args, "defaultingType": want}


def test_extenders_were_read_without_regard_to_case_and_timed_in_nanoseconds() -> None:
    extender = {
        "URLPrefix": "https://here",
        "FilterVerb": "filter",
        "enableHttps": True,
        "httpTimeout": 1_500_000_000,
        "TLSConfig": {"Insecure": True, "ServerName": "there"},
    }

    (found,) = loaded(converted(configuration("v1alpha2", extenders=[extender]))).extenders

    assert (found.url_prefix, found.filter_verb) == ("https://here", "filter")
    assert found.enable_https
    assert found.http_timeout == Duration.parse("1.5s")
    assert found.tls_config is not None
    assert found.tls_config.insecure
    assert found.tls_config.server_name == "there"


def test_extenders_since_v1beta1_are_as_they_are() -> None:
    extender = {"urlPrefix": "http://here", "filterVerb": "f", "httpTimeout": "5s"}

    text = converted(configuration("v1beta1", extenders=[extender])).text

    assert yaml.safe_load(text)["extenders"] == [extender]
