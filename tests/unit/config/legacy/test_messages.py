from __future__ import annotations

import pytest

from kubesched.config.legacy.messages import CONFIGURATIONS, POLICY, without_unknown
from kubesched.config.schema import ListOf, Message


def fields(message: Message, *path: str) -> set[str]:
    for name in path:
        found = next(field.type for field in message.fields if field.name == name)
        part = found.item if isinstance(found, ListOf) else found
        assert isinstance(part, Message)
        message = part
    return {field.name for field in message.fields}


@pytest.mark.parametrize(
    ("version", "has", "has_not"),
    [
        ("v1alpha1", {"algorithmSource", "plugins", "disablePreemption"}, {"profiles"}),
        ("v1alpha2", {"profiles", "bindTimeoutSeconds", "extenders"}, {"algorithmSource"}),
        ("v1beta1", {"healthzBindAddress", "parallelism"}, {"bindTimeoutSeconds"}),
        ("v1beta2", {"metricsBindAddress"}, {"delayCacheUntilActive"}),
        ("v1beta3", {"profiles"}, {"healthzBindAddress", "delayCacheUntilActive"}),
    ],
)
def test_versions_have_their_fields(version: str, has: set[str], has_not: set[str]) -> None:
    found = fields(CONFIGURATIONS[version])

    assert has <= found
    assert not has_not & found


def test_versions_have_their_extension_points() -> None:
    points = {
        version: fields(
            message, *(["plugins"] if version == "v1alpha1" else ["profiles", "plugins"])
        )
        for version, message in CONFIGURATIONS.items()
    }

    assert {version for version in points if "unreserve" in points[version]} == {
        "v1alpha1",
        "v1alpha2",
    }
    assert {version for version in points if "postFilter" not in points[version]} == {"v1alpha2"}
    assert {version for version in points if "preScore" not in points[version]} == {"v1alpha1"}
    assert {version for version in points if "multiPoint" in points[version]} == {"v1beta3"}


def test_unknown_members_are_dropped_and_listed_by_path() -> None:
    unknown: list[str] = []
    policy = {"predicates": [{"name": "A", "wight": 1}], "extra": {}}

    assert without_unknown(policy, POLICY, unknown) == {"predicates": [{"name": "A"}]}
    assert unknown == ["extra", "predicates[0].wight"]
