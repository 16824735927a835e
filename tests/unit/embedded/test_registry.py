"""The verbs, in what the contract tests cannot reach from outside."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kubesched.embedded.cluster import EmbeddedCluster
from kubesched.embedded.refusals import StatusError
from kubesched.embedded.registry import ObjectRegistry, Where, new_uid, without_nulls
from kubesched.embedded.resources import BY_KIND, EVENTS, NAMESPACES, PODS
from kubesched.embedded.routing import resource_path, verb
from kubesched.embedded.store import VersionedStore

JsonObject = dict[str, Any]

CONFIG_MAPS = BY_KIND["v1", "ConfigMap"]


@pytest.fixture
def registry() -> ObjectRegistry:
    return EmbeddedCluster().registry


def test_uids_are_random_uuids() -> None:
    uids = {new_uid() for _ in range(1000)}

    assert len(uids) == 1000
    pattern = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
    assert all(map(pattern.fullmatch, uids))


def test_a_generated_name_is_tried_again_if_it_is_taken(
    registry: ObjectRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    generated = iter(["web-1", "web-1", "web-2"])
    monkeypatch.setattr(registry, "_generated", lambda prefix: next(generated))
    where = Where(CONFIG_MAPS, "default")

    names = [
        registry.create(where, {"metadata": {"generateName": "web-"}}).obj["metadata"]["name"]
        for _ in range(2)
    ]

    assert names == ["web-1", "web-2"]


def test_generated_names_can_run_out(
    registry: ObjectRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_generated", lambda prefix: "web-1")
    where = Where(CONFIG_MAPS, "default")
    registry.create(where, {"metadata": {"generateName": "web-"}})

    with pytest.raises(StatusError, match="was not able to generate a unique name") as caught:
        registry.create(where, {"metadata": {"generateName": "web-"}})

    assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")
    assert caught.value.retry_after_s == 1


def test_a_long_prefix_leaves_room_for_the_rest(registry: ObjectRegistry) -> None:
    name = registry._generated("x" * 100)

    assert len(name) == 63


def test_events_do_not_pile_up() -> None:
    store = VersionedStore()
    registry = ObjectRegistry(store, event_limit=3)
    registry.create(Where(NAMESPACES, ""), {"metadata": {"name": "default"}})
    for number in range(5):
        registry.create(Where(EVENTS, "default"), {"metadata": {"name": f"e{number}"}})

    kept = list(store.collection(EVENTS).keys())

    assert kept == ["default/e2", "default/e3", "default/e4"]


def test_nulls_mean_not_there() -> None:
    value = {"a": None, "b": [{"c": None, "d": 1}], "lastProbeTime": None}

    assert without_nulls(value) == {"b": [{"d": 1}], "lastProbeTime": None}


def test_updates_share_what_did_not_change(registry: ObjectRegistry) -> None:
    where = Where(PODS, "default", "p")
    pod = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    created = registry.create(Where(PODS, "default"), pod)

    written = registry.patch(
        where, "application/merge-patch+json", b'{"metadata":{"labels":{"a":"b"}}}'
    )

    assert written.version.obj["spec"] is created.obj["spec"]
    assert written.version.obj["status"] is created.obj["status"]


@pytest.mark.parametrize(
    ("path", "plural", "namespace", "name", "subresource"),
    [
        ("/api/v1/pods", "pods", "", "", ""),
        ("/api/v1/namespaces/a/pods", "pods", "a", "", ""),
        ("/api/v1/namespaces/a/pods/p", "pods", "a", "p", ""),
        ("/api/v1/namespaces/a/pods/p/status", "pods", "a", "p", "status"),
        ("/api/v1/namespaces/a/pods/p/binding", "pods", "a", "p", "binding"),
        ("/api/v1/namespaces", "namespaces", "", "", ""),
        ("/api/v1/namespaces/a", "namespaces", "", "a", ""),
        ("/api/v1/namespaces/a/status", "namespaces", "", "a", "status"),
        ("/api/v1/nodes/n/status", "nodes", "", "n", "status"),
        ("/apis/apps/v1/namespaces/a/deployments/d", "deployments", "a", "d", ""),
    ],
)
def test_paths(path: str, plural: str, namespace: str, name: str, subresource: str) -> None:
    where = resource_path(path)

    assert where is not None
    found = (where.resource.plural, where.namespace, where.name, where.subresource)
    assert found == (plural, namespace, name, subresource)


@pytest.mark.parametrize(
    "path", ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/x/v1/y", "/healthz"]
)
def test_paths_of_something_else(path: str) -> None:
    assert resource_path(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/unknown",
        "/api/v1/pods/p",
        "/api/v1/namespaces/a/nodes",
        "/api/v1/namespaces/a/pods/p/exec",
        "/api/v1/namespaces/a/configmaps/c/status",
        "/api/v1/namespaces/a/pods/p/status/more",
    ],
)
def test_paths_that_lead_nowhere(path: str) -> None:
    with pytest.raises(StatusError) as caught:
        resource_path(path)

    assert caught.value.code == 404


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        ("GET", "/api/v1/pods", "list"),
        ("POST", "/api/v1/namespaces/a/pods", "create"),
        ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection"),
        ("POST", "/api/v1/namespaces/a/bindings", "create"),
        ("POST", "/api/v1/namespaces/a/pods/p/binding", "bind"),
        ("PATCH", "/api/v1/nodes/n/status", "patch"),
    ],
)
def test_verbs(method: str, path: str, found: str) -> None:
    where = resource_path(path)
    assert where is not None

    assert verb(method, where) == found
