"""Where resources live."""

from __future__ import annotations

import pytest

from kubesched.client import resources
from kubesched.client.resources import ResourcePath


@pytest.mark.parametrize(
    ("path", "want"),
    [
        (resources.PODS.collection(), "/api/v1/pods"),
        (resources.PODS.collection("kube-system"), "/api/v1/namespaces/kube-system/pods"),
        (resources.PODS.item("a", namespace="x"), "/api/v1/namespaces/x/pods/a"),
        (
            resources.PODS.item("a", namespace="x", subresource="binding"),
            "/api/v1/namespaces/x/pods/a/binding",
        ),
        (resources.NODES.item("n-1"), "/api/v1/nodes/n-1"),
        (resources.EVENTS.collection("x"), "/apis/events.k8s.io/v1/namespaces/x/events"),
        (resources.PRIORITY_CLASSES.collection(), "/apis/scheduling.k8s.io/v1/priorityclasses"),
        (resources.NODES.item("we/ird name"), "/api/v1/nodes/we%2Fird%20name"),
        (resources.NODES.item("system:x"), "/api/v1/nodes/system:x"),
    ],
)
def test_paths(path: str, want: str) -> None:
    assert path == want


def test_names_of_api_versions() -> None:
    assert resources.PODS.api_version == "v1"
    assert resources.grouped("apps/v1", "replicasets").api_version == "apps/v1"
    assert resources.EVENTS.group_path == "/apis/events.k8s.io/v1"
    assert str(resources.PODS) == "pods"
    assert str(resources.EVENTS) == "events.events.k8s.io"


def test_a_namespace_where_none_belongs_is_refused() -> None:
    with pytest.raises(ValueError, match="nodes are not in namespaces"):
        resources.NODES.collection("default")


def test_a_missing_namespace_is_refused() -> None:
    with pytest.raises(ValueError, match="say in which 'a' is"):
        resources.PODS.item("a")


def test_an_empty_name_would_mean_the_collection() -> None:
    with pytest.raises(ValueError, match="cannot be empty"):
        resources.NODES.item("")


def test_all_resources_are_told_apart() -> None:
    known = [value for value in vars(resources).values() if isinstance(value, ResourcePath)]

    assert len({value.collection() for value in known}) == len(known)
