"""Fixtures of the integration tests: one real control plane per test session, and clean-up."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .control_plane import BINARIES, OLDER_SERVER, ControlPlane

_INSTALL = Path(__file__).resolve().parents[2] / "tools" / "envtest" / "install.py"


@pytest.fixture(scope="session")
def assets() -> Path:
    """The folder of the control plane's binaries."""
    return _installed(target="envtest")


@pytest.fixture(scope="session")
def older_assets() -> Path:
    """The folder of the oldest control plane that kubesched works with."""
    return _installed("--version", OLDER_SERVER, target="envtest-older")


def _installed(*flags: str, target: str) -> Path:
    """Return a folder of binaries.

    Without them a developer's run skips; where they are promised (CI) a skip would hide that
    nothing was tested, so there it fails.
    """
    command = [sys.executable, str(_INSTALL), "--print", *flags]
    asked = subprocess.run(command, capture_output=True, text=True, check=True)
    folder = Path(asked.stdout.strip())
    missing = [name for name in BINARIES if not os.access(folder / name, os.X_OK)]
    if missing:
        message = f"no {', '.join(missing)} in {folder}: run `make {target}`"
        if os.environ.get("CI") or os.environ.get("KUBESCHED_REQUIRE_ENVTEST"):
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    return folder


@pytest.fixture(scope="session")
def control_plane(assets: Path) -> Iterator[ControlPlane]:
    """The control plane that all tests of the session share."""
    with ControlPlane(assets) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """The name of a namespace that only this test uses."""
    name = f"test-{secrets.token_hex(4)}"
    control_plane.create_namespace(name)
    yield name
    control_plane.delete_namespace(name)


@pytest.fixture
def clean_cluster(control_plane: ControlPlane) -> Iterator[None]:
    """Leave no pod, no node and no other cluster-wide scheduling object to the next test."""
    yield
    control_plane.purge_cluster()


@pytest.fixture
def clean_pods(control_plane: ControlPlane, namespace: str) -> Iterator[None]:
    """Leave no pod and no node to the next test."""
    yield
    control_plane.purge(f"/api/v1/namespaces/{namespace}/pods")
    control_plane.purge("/api/v1/nodes")
