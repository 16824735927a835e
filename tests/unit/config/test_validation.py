"""Configurations that decode but break a rule are refused in kube-scheduler's words."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.config import loading, validation
from kubesched.config.args import InterPodAffinityArgs
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginConfig
from kubesched.config.types import LeaderElection, SchedulerConfiguration
from kubesched.errors import ConfigError
from tests.support.configuration_tables import GATES, rows

DEFAULT = SchedulerConfiguration.default(GATES)


@pytest.mark.parametrize("row", rows("invalid"))
def test_invalid(row: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        loading.decode(row["config"], gates=FeatureGates.parse(row.get("gates", "")))

    assert str(caught.value) == row["error"]


def test_defaults_are_valid() -> None:
    validation.validate(DEFAULT, GATES)


def test_no_profiles() -> None:
    config = msgspec.structs.replace(DEFAULT, profiles=())

    assert validation.validation_errors(config, GATES) == ["profiles: Required value"]


def test_empty_names_of_the_lock() -> None:
    election = LeaderElection(resource_lock="", resource_name="", resource_namespace="")
    config = msgspec.structs.replace(DEFAULT, leader_election=election)

    assert validation.validation_errors(config, GATES) == [
        "leaderElection.resourceLock: Required value",
        "leaderElection.resourceNamespace: Required value",
        "leaderElection.resourceName: Required value",
        'leaderElection.resourceLock: Invalid value: "": resourceLock value must be "leases"',
    ]


def test_arguments_of_another_kind() -> None:
    odd = PluginConfig(name="VolumeBinding", args=InterPodAffinityArgs(hard_pod_affinity_weight=3))
    profile = msgspec.structs.replace(DEFAULT.profiles[0], plugin_config=(odd,))
    config = msgspec.structs.replace(DEFAULT, profiles=(profile,))

    assert validation.validation_errors(config, GATES) == [
        (
            'profiles[0].pluginConfig[0].args: Invalid value: {"HardPodAffinityWeight":3,'
            '"IgnorePreferredTermsOfExistingPods":false}: has to match plugin args'
        )
    ]


def test_errors_are_joined_without_repetition() -> None:
    profile = msgspec.structs.replace(DEFAULT.profiles[0], scheduler_name="")
    config = msgspec.structs.replace(DEFAULT, profiles=(profile,), parallelism=0)

    with pytest.raises(ConfigError) as caught:
        validation.validate(config, GATES)

    assert str(caught.value) == (
        "[parallelism: Invalid value: 0: should be an integer value greater than zero, "
        "profiles[0].schedulerName: Required value]"
    )
