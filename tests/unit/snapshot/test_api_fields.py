"""The table of fields that is made of what an API server publishes."""

from __future__ import annotations

from typing import Any

from kubesched.snapshot import api_fields


def _document(**types: dict[str, Any]) -> dict[str, Any]:
    schemas = {
        name.replace("__", "."): {"properties": properties} for name, properties in types.items()
    }
    return {"components": {"schemas": schemas}}


def test_a_kind_keeps_its_name_whatever_else_is_called_so() -> None:
    other = {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Job"}]}
    documents = {each: _document() for each in api_fields.KINDS} | {
        "api/v1": _document(
            io__k8s__api__core__v1__Pod={"jobs": {"type": "array", "items": other}},
            io__k8s__api__core__v1__Job={"request": {"type": "string"}},
        ),
        "apis/batch/v1": _document(io__k8s__api__batch__v1__Job={"spec": {"type": "string"}}),
    }

    assert api_fields.from_openapi(documents) == {
        "Job": {"spec": ""},
        "Pod": {"jobs": "[]core.v1.Job"},
        "core.v1.Job": {"request": ""},
    }
