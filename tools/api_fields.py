"""Writes the fields of the Kubernetes API that manifests are validated against.

    .venv/bin/python tools/api_fields.py

reads them from the kube-apiserver that `make envtest` built. An integration test fails when that is
due: after an upgrade of Kubernetes.
"""

from __future__ import annotations

import json
from pathlib import Path

from kubesched.bench import assets
from kubesched.bench.control_plane import ControlPlane
from kubesched.snapshot import api_fields

_TARGET = Path(__file__).resolve().parents[1] / "src/kubesched/snapshot" / api_fields.FILE


def main() -> None:
    """Write the file."""
    gates, versions = api_fields.FEATURE_GATES, api_fields.RUNTIME_CONFIG
    with ControlPlane(assets.folder(), feature_gates=gates, runtime_config=versions) as plane:
        documents = {each: plane.request("GET", f"/openapi/v3/{each}") for each in api_fields.KINDS}
    fields = api_fields.from_openapi(documents)
    # One type per line, for readable diffs.
    lines = (
        f"{json.dumps(name)}:{json.dumps(each, separators=(',', ':'))}"
        for name, each in fields.items()
    )
    _TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{_TARGET}: {len(fields)} types")


if __name__ == "__main__":
    main()
