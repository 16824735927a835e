"""``tools/envtest``: which servers the integration tests are given."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ENVTEST = Path(__file__).resolve().parents[2] / "tools" / "envtest"
BINARIES = ("etcd", "kube-apiserver", "kube-scheduler", "kubectl")
VERSIONS = sorted(each.parent.name for each in ENVTEST.glob("*/go.mod"))


def install(*flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ENVTEST / "install.py"), *flags]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={"PATH": "", **environment}
    )


def printed(*flags: str, **environment: str) -> Path:
    return Path(install("--print", *flags, **environment).stdout.strip())


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    """A folder with all binaries."""
    for name in BINARIES:
        (tmp_path / name).touch(mode=0o755)
    return tmp_path


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_has_a_folder_of_its_own_in_the_cache(tmp_path: Path, version: str) -> None:
    folder = printed("--version", version, KUBESCHED_CACHE=str(tmp_path))

    assert folder.parent == tmp_path / "envtest"
    assert folder.name.startswith(f"{version}-")


def test_without_a_version_it_is_the_newest(tmp_path: Path) -> None:
    cache = str(tmp_path)

    assert printed(KUBESCHED_CACHE=cache) == printed(
        "--version", VERSIONS[-1], KUBESCHED_CACHE=cache
    )


def test_given_binaries_stand_for_the_newest_version_alone(complete: Path) -> None:
    given = str(complete)

    assert printed(KUBEBUILDER_ASSETS=given) == complete
    older = printed("--version", VERSIONS[0], KUBEBUILDER_ASSETS=given, KUBESCHED_CACHE="/cache")
    assert older.parent == Path("/cache/envtest")


def test_binaries_that_are_there_are_not_built(complete: Path) -> None:
    done = install(KUBEBUILDER_ASSETS=str(complete))

    assert (done.returncode, done.stdout.strip()) == (0, str(complete))


def test_an_unknown_version_and_a_machine_without_go_are_told_what_to_do(tmp_path: Path) -> None:
    unknown = install("--version", "v1.0.0")
    assert unknown.returncode == 2
    assert all(version in unknown.stderr for version in VERSIONS)

    without_go = install(KUBESCHED_CACHE=str(tmp_path))
    assert without_go.returncode == 1
    assert "Go 1.26 or newer is needed" in without_go.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_a_module_builds_the_version_that_it_is_named_after(version: str) -> None:
    module = (ENVTEST / version / "go.mod").read_text()

    assert re.findall(r"k8s\.io/kubernetes (v\S+)", module) == [version]
    assert set(re.findall(r"=> k8s\.io/\S+ (v\S+)", module)) == {version.replace("v1", "v0", 1)}
