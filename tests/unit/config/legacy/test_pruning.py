from __future__ import annotations

from typing import Any

import pytest

from kubesched.config.legacy.pruning import drop_default_args, drop_default_fields
from kubesched.config.legacy.report import ConversionReport
from tests.support.configuration_tables import GATES


def test_fields_that_are_the_default_are_dropped_and_named() -> None:
    report = ConversionReport()
    document: dict[str, Any] = {
        "podMaxBackoffSeconds": 10,
        "parallelism": 4,
        "clientConnection": {"qps": 50, "burst": 100},
        "leaderElection": {"leaderElect": False, "retryPeriod": "2s"},
    }

    drop_default_fields(document, GATES, report)

    assert document == {"parallelism": 4, "leaderElection": {"leaderElect": False}}
    assert report.default == [
        "podMaxBackoffSeconds 10",
        'leaderElection.retryPeriod "2s"',
        "clientConnection.qps 50",
        "clientConnection.burst 100",
    ]


@pytest.mark.parametrize(
    ("plugin", "args", "is_default"),
    [
        ("InterPodAffinity", {"hardPodAffinityWeight": 1}, True),
        ("InterPodAffinity", {"hardPodAffinityWeight": 2}, False),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "LeastAllocated"}}, True),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated"}}, False),
        ("VolumeBinding", {}, True),
        ("VolumeBinding", {"bindTimeoutSeconds": "soon"}, False),
        ("Mine", {}, False),
    ],
)
def test_arguments_that_are_the_default_are_dropped(
    plugin: str, args: dict[str, Any], is_default: bool
) -> None:
    profile = {"pluginConfig": [{"name": plugin, "args": args}]}

    drop_default_args(profile, GATES, ConversionReport())

    assert ("pluginConfig" not in profile) == is_default
