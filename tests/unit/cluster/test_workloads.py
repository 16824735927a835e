"""Which pods belong together, as services and owners tell it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubesched.api.core import Pod
from kubesched.api.labels import Selector
from kubesched.api.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
)
from kubesched.api.workloads import (
    PlainSelectorSpec,
    ReplicaSet,
    ReplicationController,
    SelectorSpec,
    Service,
    StatefulSet,
)
from kubesched.cluster.cluster import Cluster
from tests.support.objects import pod
from tests.support.scheduling import store_of

Workload = Service | ReplicationController | ReplicaSet | StatefulSet

WEB = {"app": "web", "tier": "front"}


def meta(name: str, namespace: str = "default") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace)


def service(name: str, selector: dict[str, str] | None, namespace: str = "default") -> Service:
    return Service(metadata=meta(name, namespace), spec=PlainSelectorSpec(selector=selector))


def expressions(*operators: tuple[str, str]) -> LabelSelector:
    return LabelSelector(
        match_expressions=tuple(
            LabelSelectorRequirement(key=key, operator=operator) for key, operator in operators
        )
    )


def owned(
    by: str, *, kind: str = "ReplicaSet", version: str = "apps/v1", controls: bool = True
) -> Pod:
    made = pod(labels=WEB)
    owner = OwnerReference(api_version=version, kind=kind, name=by, controller=controls)
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,)))


def selector_of(cluster: Cluster, asking: Pod) -> Selector:
    """What selects the kind of a pod."""
    info = cluster.compiler.pending(asking)
    return cluster.workloads.selector_of(info.labels, asking.metadata.owner_references)


def kind_of(asking: Pod, *given: Workload) -> set[str]:
    """The requirements of the selector, as text."""
    cluster = Cluster()
    for each in given:
        store_of(cluster, each).put(each)
    cluster.validate()
    found = selector_of(cluster, asking)
    assert not found.nothing
    return {
        f"{each.key} {each.operator} {','.join(each.values)}".strip() for each in found.requirements
    }


def test_a_pod_of_no_service_and_no_owner_is_of_no_kind() -> None:
    assert kind_of(pod(labels=WEB)) == set()


def test_all_services_of_a_pod_together() -> None:
    front, app = service("s1", {"tier": "front"}), service("s2", {"app": "web"})
    assert kind_of(pod(labels=WEB), front, app) == kind_of(pod(labels=WEB), service("s", WEB))
    assert len(kind_of(pod(labels=WEB), front, app)) == 2


@pytest.mark.parametrize(
    "other",
    [
        service("s", {"app": "db"}),
        service("s", {"app": "web", "more": "x"}),
        service("s", None),
        service("s", {}),
        service("s", {"app": "web"}, namespace="other"),
    ],
    ids=["another label", "one label too many", "no selector", "empty", "another namespace"],
)
def test_services_that_are_not_the_pod_s(other: Service) -> None:
    assert kind_of(pod(labels=WEB), other) == set()


@pytest.mark.parametrize(
    ("owner", "kind", "version"),
    [
        (
            ReplicaSet(
                metadata=meta("o"), spec=SelectorSpec(selector=expressions(("x", "Exists")))
            ),
            "ReplicaSet",
            "apps/v1",
        ),
        (
            StatefulSet(
                metadata=meta("o"), spec=SelectorSpec(selector=expressions(("x", "Exists")))
            ),
            "StatefulSet",
            "apps/v1",
        ),
        (
            ReplicationController(metadata=meta("o"), spec=PlainSelectorSpec(selector={"x": "y"})),
            "ReplicationController",
            "v1",
        ),
    ],
    ids=["ReplicaSet", "StatefulSet", "ReplicationController"],
)
def test_the_owner_s_selector_counts_whatever_the_pod_s_labels(
    owner: Workload, kind: str, version: str
) -> None:
    assert len(kind_of(owned("o", kind=kind, version=version), owner)) == 1
    assert kind_of(owned("o", kind=kind, version="other/v1"), owner) == set()
    assert kind_of(owned("o", kind="Job", version=version), owner) == set()
    assert kind_of(owned("another", kind=kind, version=version), owner) == set()
    assert kind_of(owned("o", kind=kind, version=version, controls=False), owner) == set()


def test_services_and_owner_are_combined() -> None:
    owner = ReplicaSet(
        metadata=meta("o"), spec=SelectorSpec(selector=expressions(("x", "DoesNotExist")))
    )
    assert len(kind_of(owned("o"), owner, service("s", {"app": "web"}))) == 2


def test_an_owner_without_or_with_a_malformed_selector_adds_nothing() -> None:
    for selector in (None, LabelSelector(), expressions(("x", "Resembles"))):
        owner = ReplicaSet(metadata=meta("o"), spec=SelectorSpec(selector=selector))
        assert kind_of(owned("o"), owner) == set()


def test_services_and_owners_change_and_go() -> None:
    cluster, asking = Cluster(), owned("o")
    workloads = cluster.workloads
    first, second = service("s", {"app": "web"}), service("s", {"app": "db"})
    owner = ReplicaSet(metadata=meta("o"), spec=SelectorSpec(selector=expressions(("x", "Exists"))))
    workloads.services.put(first)
    workloads.replica_sets.put(owner)
    assert len(selector_of(cluster, asking).requirements) == 2
    workloads.services.put(second)
    assert len(selector_of(cluster, asking).requirements) == 1
    for each in (second, owner, owner, service("never-there", None)):
        store_of(cluster, each).remove(each)
        workloads.validate()
    assert not selector_of(cluster, asking).requirements


def test_services_are_found_by_their_labels_however_many_there_are() -> None:
    cluster = Cluster()
    for number in range(100):
        cluster.workloads.services.put(service(f"s{number}", {"app": f"app-{number}"}))
    cluster.workloads.services.put(service("renamed", {"app": "app-1"}))
    cluster.workloads.services.put(service("renamed", {"app": "app-7"}))
    asking = cluster.compiler.pending(pod(labels={"app": "app-7", "pod": "p-1"}))

    assert sorted(cluster.workloads.services.selecting(asking.labels)) == [
        ("default", "renamed"),
        ("default", "s7"),
    ]
    cluster.validate()
