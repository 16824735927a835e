"""The contract about single objects: create, read, update."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kubesched import KUBERNETES_VERSION

from .contract import (
    JSON,
    MERGE,
    Api,
    a_pod,
    outline,
    plain,
    version,
)

JsonObject = dict[str, Any]

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
MODIFIED = (
    'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply '
    "your changes to the latest version and try again"
)


class CreateContract:
    """POST."""

    def test_an_object_comes_back_as_sent_with_an_identity(self, api: Api) -> None:
        sent = {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}}

        created = api.do("POST", api.path("configmaps"), sent)

        assert plain(created) == {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "name": "a",
                "namespace": api.namespace,
                "uid": "<set>",
                "resourceVersion": "<set>",
                "labels": {"x": "y"},
            },
            "data": {"k": "v"},
        }
        assert re.fullmatch(
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", created["metadata"]["creationTimestamp"]
        )
        assert api.do("GET", api.path("configmaps", "a")) == created

    def test_every_write_has_a_higher_version(self, api: Api) -> None:
        first, second = api.config_map("a"), api.pod("b")

        assert version(first) < version(second)

    def test_a_name_can_be_taken_once(self, api: Api) -> None:
        api.config_map("a")

        status = api.refused("POST", api.path("configmaps"), {"metadata": {"name": "a"}})

        assert status == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'configmaps "a" already exists',
            "reason": "AlreadyExists",
            "details": {"name": "a", "kind": "configmaps"},
            "code": 409,
        }

    def test_the_namespace_must_exist(self, api: Api) -> None:
        path = f"/api/v1/namespaces/no-{api.namespace}/configmaps"

        status = api.refused("POST", path, {"metadata": {"name": "a"}})

        assert outline(status) == (404, "NotFound", f'namespaces "no-{api.namespace}" not found')
        assert status["details"] == {"name": f"no-{api.namespace}", "kind": "namespaces"}

    def test_the_namespace_in_the_object_must_be_the_one_in_the_path(self, api: Api) -> None:
        sent = {"metadata": {"name": "a", "namespace": "elsewhere"}}

        status = api.refused("POST", api.path("configmaps"), sent)

        assert outline(status) == (
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        )

    def test_an_object_without_a_namespace_loses_one(self, api: Api) -> None:
        name = api.unique("node")

        created = api.create_cluster_object(
            "/api/v1/nodes", {"metadata": {"name": name, "namespace": "default"}}
        )

        assert "namespace" not in created["metadata"]

    def test_a_name_is_needed(self, api: Api) -> None:
        status = api.refused("POST", api.path("configmaps"), {"metadata": {}})

        assert outline(status) == (
            422,
            "Invalid",
            (
                'ConfigMap "" is invalid: metadata.name: Required value: '
                "name or generateName is required"
            ),
        )

    def test_a_name_must_be_a_subdomain(self, api: Api) -> None:
        status = api.refused("POST", api.path("configmaps"), {"metadata": {"name": "A_b"}})

        message = f'Invalid value: "A_b": {SUBDOMAIN}'
        assert outline(status) == (
            422,
            "Invalid",
            f'ConfigMap "A_b" is invalid: metadata.name: {message}',
        )
        assert status["details"] == {
            "name": "A_b",
            "kind": "ConfigMap",
            "causes": [
                {"reason": "FieldValueInvalid", "message": message, "field": "metadata.name"}
            ],
        }

    def test_labels_annotations_and_finalizers_are_checked(self, api: Api) -> None:
        meta = {
            "name": "a",
            "labels": {"a b": "x y"},
            "annotations": {"bad key": ""},
            "finalizers": ["bare"],
        }

        status = api.refused("POST", api.path("configmaps"), {"metadata": meta})

        assert [cause["field"] for cause in status["details"]["causes"]] == [
            "metadata.labels",
            "metadata.labels",
            "metadata.annotations",
            "metadata.finalizers[0]",
        ]
        assert status["message"].startswith('ConfigMap "a" is invalid: [metadata.labels: Invalid')

    def test_a_name_can_be_generated(self, api: Api) -> None:
        sent = {"metadata": {"generateName": "web-"}}

        first, second = (api.do("POST", api.path("configmaps"), sent) for _ in range(2))

        assert re.fullmatch("web-[bcdfghjklmnpqrstvwxz2456789]{5}", first["metadata"]["name"])
        assert first["metadata"]["generateName"] == "web-"
        assert first["metadata"]["name"] != second["metadata"]["name"]

    def test_the_system_sets_identity_and_time(self, api: Api) -> None:
        meta = {"uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z"}

        created = api.config_map("a", deletionTimestamp="2000-01-01T00:00:00Z", **meta)

        assert created["metadata"]["uid"] != "mine"
        assert created["metadata"]["creationTimestamp"] > "2020"
        assert "deletionTimestamp" not in created["metadata"]

    def test_a_new_object_has_no_version(self, api: Api) -> None:
        sent = {"metadata": {"name": "a", "resourceVersion": "5"}}

        status = api.refused("POST", api.path("configmaps"), sent)

        message = "resourceVersion should not be set on objects to be created"
        assert outline(status) == (500, "", message)

    def test_a_dry_run_stores_nothing(self, api: Api) -> None:
        sent = {"metadata": {"name": "a"}}

        answer = api.ask("POST", f"{api.path('configmaps')}?dryRun=All", sent)

        assert answer.code == 201
        assert "resourceVersion" not in answer.body["metadata"]
        assert api.refused("GET", api.path("configmaps", "a"))["code"] == 404

    def test_a_dry_run_is_all_or_nothing(self, api: Api) -> None:
        path = f"{api.path('configmaps')}?dryRun=Some"

        status = api.refused("POST", path, {"metadata": {"name": "a"}})

        assert outline(status) == (
            422,
            "Invalid",
            (
                'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: '
                'supported values: "All"'
            ),
        )

    def test_a_body_of_another_kind_is_refused(self, api: Api) -> None:
        sent = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}

        status = api.refused("POST", api.path("configmaps"), sent)

        assert (status["code"], status["reason"]) == (400, "BadRequest")
        assert status["message"].startswith(
            'Pod in version "v1" cannot be handled as a ConfigMap: '
        )

    @pytest.mark.parametrize("body", ["{broken", "", "[]"])
    def test_a_body_must_be_an_object(self, api: Api, body: str) -> None:
        status = api.refused("POST", api.path("configmaps"), body)

        assert (status["code"], status["reason"]) == (400, "BadRequest")

    def test_a_field_must_have_its_type(self, api: Api) -> None:
        sent = {"metadata": {"name": "a"}, "data": {"number": 5}}

        status = api.refused("POST", api.path("configmaps"), sent)

        assert (status["code"], status["reason"]) == (400, "BadRequest")
        assert status["message"].startswith(
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
        )

    def test_a_body_can_be_yaml(self, api: Api) -> None:
        body = "metadata:\n  name: a\ndata:\n  when: 2020-01-01\n"
        body = body.replace("2020-01-01", '"2020-01-01"')

        answer = api.ask("POST", api.path("configmaps"), body, content_type="application/yaml")

        assert (answer.code, answer.body["data"]) == (201, {"when": "2020-01-01"})

    def test_other_formats_are_refused(self, api: Api) -> None:
        status = api.refused("POST", api.path("configmaps"), "a: b", content_type="text/plain")

        assert (status["code"], status["reason"]) == (415, "UnsupportedMediaType")
        assert status["message"].startswith(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml"
        )


class ReadContract:
    """GET of one object, and paths that lead nowhere."""

    def test_what_is_not_there_is_not_found(self, api: Api) -> None:
        status = api.refused("GET", api.path("deployments", "a", group="apps"))

        assert outline(status) == (404, "NotFound", 'deployments.apps "a" not found')
        assert status["details"] == {"name": "a", "group": "apps", "kind": "deployments"}

    def test_the_metadata_can_be_read_alone(self, api: Api) -> None:
        created = api.config_map("a")
        accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

        found = api.do("GET", api.path("configmaps", "a"), accept=accept)

        assert found == {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": created["metadata"],
        }

    def test_protobuf_clients_get_json_as_their_second_choice(self, api: Api) -> None:
        api.config_map("a")
        accept = "application/unknown, application/json"

        answer = api.ask("GET", api.path("configmaps", "a"), accept=accept)

        assert (answer.code, answer.content_type) == (200, JSON)

    def test_a_format_that_nobody_speaks_is_refused(self, api: Api) -> None:
        answer = api.ask("GET", api.path("configmaps"), accept="text/html")

        assert (answer.code, answer.body["reason"]) == (406, "NotAcceptable")

    @pytest.mark.parametrize("path", ["/api/v1/unknowns", "/apis/apps/v1/unknowns"])
    def test_an_unknown_resource(self, api: Api, path: str) -> None:
        status = api.refused("GET", path)

        assert outline(status) == (
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        assert status["details"] == {}

    @pytest.mark.parametrize("path", ["/unknown", "/apis/unknown.example/v1"])
    def test_an_unknown_path(self, api: Api, path: str) -> None:
        answer = api.ask("GET", path)

        assert (answer.code, answer.body) == (404, "404 page not found\n")

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("PUT", "/api/v1/pods"),
            ("DELETE", "/api/v1/pods"),
            ("DELETE", "/api/v1/namespaces"),
            ("POST", "/api/v1/namespaces/default"),
        ],
    )
    def test_a_method_that_a_path_does_not_have(self, api: Api, method: str, path: str) -> None:
        status = api.refused(method, path, {})

        assert outline(status) == (
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )

    @pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
    def test_the_server_is_healthy(self, api: Api, path: str) -> None:
        answer = api.ask("GET", path)

        assert (answer.code, answer.body) == (200, "ok")

    def test_the_version_is_the_one_we_speak(self, api: Api) -> None:
        found = api.do("GET", "/version")

        assert found["gitVersion"] == KUBERNETES_VERSION
        assert f"v{found['major']}.{found['minor']}." in KUBERNETES_VERSION


class UpdateContract:
    """PUT."""

    def test_without_a_version_the_last_one_wins(self, api: Api) -> None:
        created = api.config_map("a")

        updated = api.do(
            "PUT", api.path("configmaps", "a"), {"metadata": {"name": "a"}, "data": {"k": "w"}}
        )

        assert updated["data"] == {"k": "w"}
        assert version(updated) > version(created)
        assert updated["metadata"]["uid"] == created["metadata"]["uid"]
        assert updated["metadata"]["creationTimestamp"] == created["metadata"]["creationTimestamp"]

    def test_an_old_version_is_a_conflict(self, api: Api) -> None:
        created = api.config_map("a")
        api.patch(api.path("configmaps", "a"), {"data": {"k": "w"}})

        status = api.refused("PUT", api.path("configmaps", "a"), created)

        assert outline(status) == (409, "Conflict", MODIFIED)
        assert status["details"] == {"name": "a", "kind": "configmaps"}

    def test_what_changes_nothing_makes_no_version(self, api: Api) -> None:
        created = api.config_map("a")

        updated = api.do("PUT", api.path("configmaps", "a"), created)

        assert version(updated) == version(created)

    def test_another_object_of_that_name_is_not_meant(self, api: Api) -> None:
        api.config_map("a")
        sent = {"metadata": {"name": "a", "uid": "other"}}

        status = api.refused("PUT", api.path("configmaps", "a"), sent)

        assert outline(status) == (
            409,
            "Conflict",
            (
                'Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, '
                f"Code: 4, Key: /registry/configmaps/{api.namespace}/a, ResourceVersion: 0, "
                "AdditionalErrorMsg: Precondition failed: UID in precondition: other, "
                "UID in object meta: <uid>"
            ),
        )

    @pytest.mark.parametrize(
        ("meta", "message"),
        [
            ({"name": "b"}, "the name of the object (b) does not match the name on the URL (a)"),
            (
                {},
                "the name of the object (a based on URL) was undeterminable: name must be provided",
            ),
        ],
    )
    def test_the_name_must_be_the_one_in_the_path(
        self, api: Api, meta: dict[str, str], message: str
    ) -> None:
        api.config_map("a")

        status = api.refused("PUT", api.path("configmaps", "a"), {"metadata": meta})

        assert outline(status) == (400, "BadRequest", message)

    def test_most_kinds_are_not_created_by_an_update(self, api: Api) -> None:
        status = api.refused("PUT", api.path("configmaps", "a"), {"metadata": {"name": "a"}})

        assert outline(status) == (404, "NotFound", 'configmaps "a" not found')

    def test_a_lease_is_created_by_an_update_and_then_needs_its_version(self, api: Api) -> None:
        path = api.path("leases", "a", group="coordination.k8s.io")
        sent = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}

        assert api.ask("PUT", path, sent).code == 201
        assert outline(api.refused("PUT", path, sent)) == (
            422,
            "Invalid",
            (
                'leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: '
                "Invalid value: 0: must be specified for an update"
            ),
        )

    def test_a_dry_run_changes_nothing(self, api: Api) -> None:
        created = api.config_map("a")
        sent = {"metadata": {"name": "a"}, "data": {"k": "w"}}

        answer = api.do("PUT", f"{api.path('configmaps', 'a')}?dryRun=All", sent)

        assert answer["data"] == {"k": "w"}
        assert api.do("GET", api.path("configmaps", "a")) == created

    def test_a_version_must_be_a_number(self, api: Api) -> None:
        api.config_map("a")
        sent = {"metadata": {"name": "a", "resourceVersion": "one"}}

        status = api.refused("PUT", api.path("configmaps", "a"), sent)

        message = 'strconv.ParseUint: parsing "one": invalid syntax'
        assert outline(status) == (500, "", message)

    def test_the_generation_counts_changes_of_the_spec(self, api: Api) -> None:
        template = {
            "metadata": {"labels": {"a": "b"}},
            "spec": a_pod("x")["spec"],
        }
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        path = api.path("deployments", group="apps")

        created = api.do("POST", path, {"metadata": {"name": "a"}, "spec": spec})
        labelled = api.patch(f"{path}/a", {"metadata": {"labels": {"x": "y"}}})
        scaled = api.patch(f"{path}/a", {"spec": {"replicas": 3}})

        generations = [each["metadata"]["generation"] for each in (created, labelled, scaled)]
        assert generations == [1, 1, 2]


class ScaleContract:
    """How many pods a workload has, as a resource of its own."""

    def test_a_scale_is_read_and_set(self, api: Api) -> None:
        path = deployment(api)

        scale = api.do("GET", f"{path}/scale")
        patched = api.patch(f"{path}/scale", {"spec": {"replicas": 3}})
        patched["spec"]["replicas"] = 4
        put = api.do("PUT", f"{path}/scale", patched)

        assert plain(scale) == {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": "web",
                "namespace": api.namespace,
                "uid": "<set>",
                "resourceVersion": "<set>",
            },
            "spec": {"replicas": 2},
            "status": {"replicas": 0, "selector": "app=web"},
        }
        assert (patched["kind"], put["spec"]) == ("Scale", {"replicas": 4})
        assert api.do("GET", path)["spec"]["replicas"] == 4

    def test_a_scale_that_is_not_valid(self, api: Api) -> None:
        path = deployment(api)
        body = {"spec": {"replicas": -1}}

        refused = api.refused("PATCH", f"{path}/scale", body, content_type=MERGE)

        assert refused["code"] == 422
        assert (
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
            in (refused["message"])
        )

    def test_an_old_scale_is_refused(self, api: Api) -> None:
        path = deployment(api)
        old = api.do("GET", f"{path}/scale")
        api.patch(f"{path}/scale", {"spec": {"replicas": 3}})

        assert api.refused("PUT", f"{path}/scale", old)["reason"] == "Conflict"

    def test_what_one_may_do(self, api: Api) -> None:
        attributes = {"verb": "list", "resource": "pods", "namespace": api.namespace}
        body = {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "spec": {"resourceAttributes": attributes},
        }

        review = api.do("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)

        assert review["status"]["allowed"] is True


def deployment(api: Api) -> str:
    """Create a deployment of two pods; return its path."""
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "registry.example/app:1"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    api.do(
        "POST", api.path("deployments", group="apps"), {"metadata": {"name": "web"}, "spec": spec}
    )
    return api.path("deployments", "web", group="apps")
