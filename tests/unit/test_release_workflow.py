"""``.github/workflows/release.yml``: nothing that moves, and no right that a job does not need."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / ".github" / "workflows" / "release.yml"
#: The keys are texts, also `on`.
WORKFLOW: dict[str, Any] = yaml.load(FILE.read_text(), Loader=yaml.BaseLoader)  # noqa: S506
JOBS: dict[str, Any] = WORKFLOW["jobs"]


def test_actions_are_named_by_commit_with_their_version() -> None:
    used = re.findall(r"uses: (.+)", FILE.read_text())

    assert used
    for each in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)


def test_only_the_last_job_may_sign_and_write_to_the_repository() -> None:
    assert WORKFLOW["permissions"] == {}
    rights = {
        name: {f"{what}: {how}" for what, how in job["permissions"].items()}
        for name, job in JOBS.items()
    }

    assert rights["test"] == rights["dist"] == {"contents: read"}
    assert rights["image"] == {"contents: read", "packages: write"}
    assert JOBS["publish"]["needs"] == ["dist", "image"]
    assert {JOBS[name]["needs"] for name in ("dist", "image")} == {"test"}


def test_targets_of_make_are_there() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    steps = [step.get("run", "") for job in JOBS.values() for step in job["steps"]]

    asked = {word for step in steps for word in re.findall(r"^make ([\w-]+)", step)}
    assert {"lint", "test", "reproducible", "dist"} <= asked <= targets


def test_zizmor_finds_nothing_that_an_attacker_could_use() -> None:
    zizmor = Path(sysconfig.get_path("scripts")) / "zizmor"
    done = subprocess.run(
        [zizmor, "--offline", "--pedantic", FILE], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout
