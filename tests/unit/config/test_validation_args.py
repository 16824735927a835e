"""Arguments of plugins that decode but are invalid are rejected with kube-scheduler's messages."""

from __future__ import annotations

import pytest

from kubesched.config import loading
from kubesched.config.args import (
    DynamicResourcesArgs,
    NodeResourcesFitArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubesched.config.durations import Duration
from kubesched.config.features import FeatureGates
from kubesched.config.validation_args import (
    check_node_resources_fit_args,
    dynamic_resources_errors,
    volume_binding_errors,
)
from kubesched.errors import ConfigError
from tests.support.configuration_tables import GATES, rows


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


def test_the_defaults_of_node_resources_fit_are_valid() -> None:
    check_node_resources_fit_args(NodeResourcesFitArgs())


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
