"""The krew plugin: a manifest that krew takes, and an archive that runs.

What krew demands of a manifest is in its documentation ("Writing Krew plugin manifests").
"""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
KREW = ROOT / "deploy" / "krew"
PACKAGE = KREW / "package.py"
WHEEL = "kubesched-1.2.3-py3-none-any.whl"
#: File names that Windows has for itself.
RESERVED = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)),
}

Manifest = dict[str, Any]


def complaints(name: str, manifest: Manifest) -> list[str]:
    """What krew would reject."""
    spec = manifest.get("spec", {})
    summary = spec.get("shortDescription", "")
    checks = {
        "apiVersion": manifest.get("apiVersion") == "krew.googlecontainertools.github.com/v1alpha2",
        "kind": manifest.get("kind") == "Plugin",
        "name is that of the file": manifest.get("metadata", {}).get("name") == name,
        "name": bool(re.fullmatch(r"[\w-]+", name)) and name.lower() not in RESERVED,
        "shortDescription": bool(summary) and not set(summary) & set("\r\n"),
        "version": bool(re.fullmatch(r"v\d+\.\d+\.\d+", spec.get("version", ""))),
        "platforms": bool(spec.get("platforms")),
    }
    for platform in spec.get("platforms", []):
        selector = platform.get("selector") or {}
        expressions = selector.get("matchExpressions", [])
        keys = {*selector.get("matchLabels", {}), *(each["key"] for each in expressions)}
        checks |= {
            "selector": bool(keys) and keys <= {"os", "arch"},
            "uri": bool(re.fullmatch(r"https://\S+\.(tar\.gz|zip)", platform.get("uri", ""))),
            "sha256": bool(re.fullmatch(r"[a-f0-9]{64}", platform.get("sha256", ""))),
            "bin": bool(platform.get("bin")),
            "files": platform.get("files") != [],
        }
    return [what for what, holds in checks.items() if not holds]


def package(folder: Path, wheel: Path) -> subprocess.CompletedProcess[str]:
    words = [wheel, "--uri=https://example.com/v1", "--homepage=https://example.com", "-o", folder]
    command = [sys.executable, PACKAGE, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # type: ignore[arg-type]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder with the files of a release."""
    wheel = tmp_path / WHEEL
    wheel.write_bytes(b"not really a wheel")
    ended = package(tmp_path / "out", wheel)
    assert ended.returncode == 0, ended.stderr
    return tmp_path / "out"


def manifest_of(release: Path) -> Manifest:
    found: Manifest = yaml.safe_load((release / "kubesched.yaml").read_text())
    return found


def test_krew_takes_the_manifest_of_a_release(release: Path) -> None:
    manifest = manifest_of(release)

    assert complaints("kubesched", manifest) == []
    assert not re.search(r"\b(VERSION|URI|SHA256|HOMEPAGE)\b", str(manifest)), "all are filled in"


@pytest.mark.parametrize(
    "broken",
    [
        {"apiVersion": "krew.googlecontainertools.github.com/v1alpha1"},
        {"metadata": {"name": "other"}},
        {"spec": {"version": "1.2"}},
        {"spec": {"platforms": [{"selector": {"matchLabels": {"cpu": "x"}}}]}},
    ],
)
def test_these_rules_can_be_broken(release: Path, broken: Manifest) -> None:
    assert complaints("kubesched", {**manifest_of(release), **broken})


def test_the_template_itself_is_no_manifest() -> None:
    assert complaints("kubesched", yaml.safe_load((KREW / "kubesched.yaml").read_text()))


def test_the_manifest_names_the_archive_and_its_executable(release: Path) -> None:
    [platform] = manifest_of(release)["spec"]["platforms"]
    archive = release / Path(platform["uri"]).name

    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as files:
        assert set(files.getnames()) == {"LICENSE", "kubectl-kubesched", WHEEL}
        assert files.getmember(platform["bin"]).mode == 0o755


def test_the_same_wheel_gives_the_same_archive(release: Path, tmp_path: Path) -> None:
    package(tmp_path / "again", tmp_path / WHEEL)

    first, second = (next(folder.glob("*.tar.gz")) for folder in (release, tmp_path / "again"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", ["kubesched-1.2.3.dev4-py3-none-any.whl", "other.whl"])
def test_what_is_no_release_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()

    ended = package(tmp_path / "out", tmp_path / name)

    assert ended.returncode == 1
    assert ended.stderr.startswith("Error: ")
    assert ended.stderr.count("\n") == 1


def test_versions_are_those_of_wheels() -> None:
    version_of = runpy.run_path(str(PACKAGE))["version_of"]

    assert version_of(Path("dist") / WHEEL) == "1.2.3"


# --- the launcher ---------------------------------------------------------------------------------

#: A Python that makes an environment whose pip installs a plugin that prints its arguments.
PYTHON = """\
#!/bin/sh
case "$*" in
  "-c "*) exit 0 ;;
  "-m venv --clear "*)
    mkdir -p "$4/bin"
    cp "$0" "$4/bin/python"
    echo made >>"$LOG" ;;
  "-m pip "*)
    [ -z "${FAILING:-}" ] || exit 1
    printf '#!/bin/sh\\necho "ran: $*"\\nexit 3\\n' >"$(dirname "$0")/kubectl-kubesched"
    chmod +x "$(dirname "$0")/kubectl-kubesched" ;;
esac
"""


class Launcher:
    """The executable as krew installs it: linked from a folder of the PATH."""

    def __init__(self, folder: Path) -> None:
        store, self.log = folder / "store", folder / "log"
        store.mkdir()
        shutil.copy(KREW / "kubectl-kubesched", store)
        self.wheel = store / WHEEL
        self.wheel.touch()
        self._link = folder / "kubectl-kubesched"
        self._link.symlink_to(store / "kubectl-kubesched")
        self._python = folder / "python"
        self._python.write_text(PYTHON)
        self._python.chmod(0o755)
        self._home = folder / "home"

    def __call__(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._home),
            "LOG": str(self.log),
            "KUBESCHED_PYTHON": str(self._python),
            **environment,
        }
        command = [str(self._link), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


@pytest.fixture
def launcher(tmp_path: Path) -> Launcher:
    return Launcher(tmp_path)


def test_the_first_run_installs_and_each_passes_words_and_exit_code_on(launcher: Launcher) -> None:
    first, second = launcher("explain", "a b"), launcher("version")

    assert (first.returncode, first.stdout) == (3, "ran: explain a b\n")
    assert first.stderr.startswith("First run: installing kubesched into ")
    assert (second.returncode, second.stdout, second.stderr) == (3, "ran: version\n", "")
    assert launcher.log.read_text() == "made\n"


def test_an_installation_that_failed_is_made_anew(launcher: Launcher) -> None:
    failed, again = launcher(FAILING="yes"), launcher("version")

    assert failed.returncode == 1
    assert "Error: kubesched cannot be installed into" in failed.stderr
    assert again.stdout == "ran: version\n"
    assert launcher.log.read_text() == "made\nmade\n"


def test_an_old_python_and_a_missing_wheel_are_named(launcher: Launcher) -> None:
    old = launcher(KUBESCHED_PYTHON="/bin/false")
    launcher.wheel.unlink()
    missing = launcher()

    assert old.stderr == (
        "Error: /bin/false is no Python 3.11 or later with venv: set KUBESCHED_PYTHON to one\n"
    )
    assert missing.stderr.startswith("Error: no wheel of kubesched in ")
    assert (old.returncode, missing.returncode) == (1, 1)
