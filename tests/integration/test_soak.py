"""A soak of two minutes: what it measures, and that it finds a leak. `make soak` takes hours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_leak_is_found_beside_a_scheduler_without(assets: Path, tmp_path: Path) -> None:
    leaking, base = tmp_path / "leaking", tmp_path / "soak"
    leaking.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.soak.leaking_scheduler "$@"\n')
    leaking.chmod(0o755)
    soak = subprocess.run(
        [
            *(sys.executable, "-m", "tests.soak", f"--schedulers=leaking={leaking},ours"),
            *("--hours=0.04", "--sample-every=2", f"--output={base}"),
            *("--nodes=20", "--apps=2", "--pods-per-second=6"),
        ],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert soak.returncode == 1, soak.stdout + soak.stderr
    found = {each["scheduler"]: each for each in json.loads(base.with_suffix(".json").read_text())}
    assert "fail" in found["leaking"]["verdict"]
    # Two minutes are too short for a plateau, but not for telling the two apart.
    assert found["leaking"]["growth"]["low"] > found["ours"]["growth"]["high"]
    for each in found.values():
        kinds = {"pod", "rollout", "devices", "volume", "gang", "misfit", "preemption"}
        assert kinds <= each["traffic"].keys(), "all kinds of churn"
        last = each["samples"][-1]
        assert last["bound"] > 200
        assert last["p50_ms"] > 0
        assert not [what for what in each["traffic"] if what.startswith("failures")]
    ET.parse(base.with_suffix(".svg"))  # noqa: S314 (our own)
