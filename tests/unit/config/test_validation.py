"""Configurations that decode but break a rule are refused in kube-scheduler's words."""

from __future__ import annotations

import msgspec
import pytest

from kubesched.config import loading, validation
from kubesched.config.args import (
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeResourcesFitArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginConfig
from kubesched.config.types import LeaderElection, SchedulerConfiguration
from kubesched.config.validation_args import (
    check_node_resources_fit_args,
    dynamic_resources_errors,
    volume_binding_errors,
)
from kubesched.errors import ConfigError
from tests.support.configuration_tables import GATES, rows

DEFAULT = SchedulerConfiguration.default(GATES)


@pytest.mark.parametrize("row", rows("invalid"))
def test_invalid(row: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        loading.decode(row["config"], gates=FeatureGates.parse(row.get("gates", "")))

    assert str(caught.value) == row["error"]


@pytest.mark.parametrize("row", rows("unfit"))
def test_node_resources_fit_is_checked_when_it_is_built(row: dict[str, str]) -> None:
    prefix = (
        "initializing profiles: creating profile for scheduler name default-scheduler: "
        'initializing plugin "NodeResourcesFit": '
    )
    config = loading.decode(row["config"], gates=GATES)

    with pytest.raises(ConfigError) as caught:
        check_node_resources_fit_args(
            config.profiles[0].args("NodeResourcesFit", NodeResourcesFitArgs)
        )

    assert prefix + str(caught.value) == row["error"]


def test_defaults_are_valid() -> None:
    validation.validate(DEFAULT, GATES)
    check_node_resources_fit_args(NodeResourcesFitArgs())


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
            'profiles[0].pluginConfig[0].args: Invalid value: {"hardPodAffinityWeight":3}: '
            "has to match plugin args"
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


@pytest.mark.parametrize(
    ("shape", "want"),
    [
        (None, ["a.shape: Required value: at least one point must be specified"]),
        (((0, 10), (100, 0)), []),
        (((0, 0), (0, 1)),
         ["a.shape[1].utilization: Invalid value: 0: values must be sorted in increasing order"]),
        (((101, 0),), ["a.shape[0].utilization: Invalid value: 101: not in valid range [0, 100]"]),
        (((0, 11),), ["a.shape[0].score: Invalid value: 11: not in valid range [0, 10]"]),
    ],
)  # fmt: skip
def test_shape_with_its_gate(shape: tuple[tuple[int, int], ...] | None, want: list[str]) -> None:
    gates = FeatureGates.parse("StorageCapacityScoring=true")
    points = tuple(UtilizationShapePoint(utilization=u, score=s) for u, s in shape or ())

    assert volume_binding_errors("a", VolumeBindingArgs(shape=points or None), gates) == want


@pytest.mark.parametrize(
    ("gates", "want"),
    [
        ("DRASchedulerFilterTimeout=false",
         ["a.filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled"]),
        ("DRADeviceBindingConditions=false",
         [("a.bindingTimeout: Forbidden: DRADeviceBindingConditions or "
          "DRAResourceClaimDeviceStatus feature gate is disabled")]),
        ("", []),
    ],
)  # fmt: skip
def test_timeouts_without_their_gates(gates: str, want: list[str]) -> None:
    args = DynamicResourcesArgs(
        filter_timeout=Duration.of_seconds(1), binding_timeout=Duration.of_seconds(1)
    )

    assert dynamic_resources_errors("a", args, FeatureGates.parse(gates)) == want
    assert dynamic_resources_errors("a", DynamicResourcesArgs(), FeatureGates.parse(gates)) == []
