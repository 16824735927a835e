"""The pytest plugin, as those who write plugins get it: in a pytest of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kubesched
from kubesched import testing

TEST = """
def test_passes(cluster):
    cluster.nodes(3, cpu=4)
    cluster.pod(cpu=1).lands_on("n1", "n2", "n3")

def test_fails(cluster):
    cluster.nodes(1, cpu=1)
    cluster.pod(cpu=2).lands_on("n1")
"""


def test_the_fixture_is_there_and_failures_point_at_the_test(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    source = str(Path(kubesched.__file__).parents[1])

    done = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-p", "kubesched.testing.pytest_plugin", "--rootdir", str(tmp_path), "test_it.py"),
        ],
        cwd=tmp_path,
        env={"PYTHONPATH": source, "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "1 failed, 1 passed" in done.stdout
    assert "test_it.py:8: AssertionError" in done.stdout
    assert "E       AssertionError: default/pod-1 stays pending, expected n1" in done.stdout
    assert "E         not n1: Insufficient cpu" in done.stdout


def test_those_who_test_something_else_do_not_wait_for_numpy() -> None:
    program = "import sys, kubesched.testing.pytest_plugin; sys.exit('numpy' in sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(Path(kubesched.__file__).parents[1])},
        timeout=60,
        check=False,
    )

    assert done.returncode == 0


def test_the_package_offers_what_it_says() -> None:
    assert all(getattr(testing, name).__name__ == name for name in testing.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = testing.Nothing
