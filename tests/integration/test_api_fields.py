"""The table of the API's fields that manifests are checked against is what the API server says."""

from __future__ import annotations

from pathlib import Path

from kubesched.snapshot import api_fields

from .control_plane import ControlPlane


def test_the_table_is_current(assets: Path) -> None:
    gates, versions = api_fields.FEATURE_GATES, api_fields.RUNTIME_CONFIG
    with ControlPlane(assets, feature_gates=gates, runtime_config=versions) as plane:
        documents = {each: plane.request("GET", f"/openapi/v3/{each}") for each in api_fields.KINDS}

    assert api_fields.from_openapi(documents) == api_fields.known(), (
        "run tools/api_fields.py to write the table anew"
    )


def test_what_the_server_writes_has_no_unknown_field(
    control_plane: ControlPlane, namespace: str
) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    control_plane.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/pods",
        {"metadata": {"name": "p"}, "spec": {"containers": [container]}},
    )

    written = control_plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/p")

    assert list(api_fields.unknown_fields(written, "Pod")) == []
    assert list(api_fields.wrong_values(written, "Pod")) == []
