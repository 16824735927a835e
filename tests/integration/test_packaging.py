"""What pip installs: wheel and sdist have all that they need, and the commands run from them.

Nothing is downloaded: the build system is that of the development environment, and so are the
libraries that the installed package finds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import textwrap
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from tools.release import dist

import kubesched

ROOT = Path(__file__).resolve().parents[2]
VERSION = kubesched.__version__

_BUILD = """
import os, sys
import hatchling.build
os.chdir(sys.argv[1])
print(hatchling.build.build_wheel(sys.argv[2]))
print(hatchling.build.build_sdist(sys.argv[2]))
"""


def run(*command: str | Path, **more: str) -> str:
    """Run a command away from the source; return what it printed."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        timeout=60,
        env={**environment, **more},
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-c", _BUILD, ROOT, folder, **os.environ)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return built / f"kubesched-{VERSION}-py3-none-any.whl"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands' folder of a new environment that the wheel was installed into."""
    home = tmp_path_factory.mktemp("installed")
    venv.EnvBuilder(symlinks=True).create(home)
    python = home / "bin" / "python"
    options = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", f"--python={python}", "install", *options, wheel)
    # After its own packages come those of this environment, which holds the libraries.
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (own / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


class TestWheel:
    def names(self, wheel: Path) -> set[str]:
        with zipfile.ZipFile(wheel) as archive:
            return set(archive.namelist())

    def test_has_every_file_of_the_package(self, wheel: Path) -> None:
        source = ROOT / "src"
        files = (file for file in (source / "kubesched").rglob("*") if file.is_file())
        wanted = {
            file.relative_to(source).as_posix() for file in files if "__pycache__" not in file.parts
        }
        assert {each for each in self.names(wheel) if each.startswith("kubesched/")} == wanted
        assert "kubesched/py.typed" in wanted

    def test_has_nothing_else(self, wheel: Path) -> None:
        tops = {each.partition("/")[0] for each in self.names(wheel)}
        assert tops == {"kubesched", f"kubesched-{VERSION}.dist-info"}

    def test_says_what_it_is(self, wheel: Path) -> None:
        with zipfile.ZipFile(wheel) as archive:
            text = archive.read(f"kubesched-{VERSION}.dist-info/METADATA").decode()
        metadata = Parser().parsestr(text)
        assert metadata["Version"] == VERSION
        assert metadata["License-Expression"] == "Apache-2.0"
        assert metadata["Requires-Python"] == ">=3.11"
        assert metadata["License-File"] == "LICENSE"


class TestSdist:
    def test_a_wheel_can_be_built_from_it(self, built: Path, wheel: Path, tmp_path: Path) -> None:
        with tarfile.open(built / f"kubesched-{VERSION}.tar.gz") as archive:
            archive.extractall(tmp_path, filter="data")
        (source,) = tmp_path.iterdir()
        run(sys.executable, "-c", _BUILD, source, tmp_path, **os.environ)
        with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(tmp_path / wheel.name) as second:
            assert first.namelist() == second.namelist()

    def test_has_the_sources_and_nothing_that_was_made_of_them(self, built: Path) -> None:
        with tarfile.open(built / f"kubesched-{VERSION}.tar.gz") as archive:
            paths = [Path(*Path(name).parts[1:]) for name in archive.getnames()]
        tops = {path.parts[0] for path in paths}
        assert tops >= {"src", "tests", "deploy", "docs", "LICENSE", "README.md", "pyproject.toml"}
        made = {".venv", ".git", "__pycache__", "build", "dist", ".mypy_cache", ".hypothesis"}
        assert not [path for path in paths if made & set(path.parts)]


class TestCommands:
    def test_run_what_was_installed(self, installed: Path) -> None:
        where = run(installed / "python", "-c", "import kubesched; print(kubesched.__file__)")
        assert Path(where.strip()).is_relative_to(installed.parent)

    def test_kube_scheduler_says_its_version(self, installed: Path) -> None:
        said = run(installed / "kube-scheduler", "--version")
        assert said == f"Kubernetes {kubesched.KUBERNETES_VERSION}\n"

    def test_kube_scheduler_completes_a_configuration(
        self, installed: Path, tmp_path: Path
    ) -> None:
        file = tmp_path / "written.yaml"
        run(installed / "kube-scheduler", f"--write-config-to={file}", "--secure-port=0")
        assert "schedulerName: default-scheduler" in file.read_text()

    def test_kubesched_says_its_version(self, installed: Path) -> None:
        assert VERSION in run(installed / "kubesched", "--version").split()

    def test_kubesched_schedules_on_its_own_api_server(self, installed: Path) -> None:
        said = run(installed / "kubesched", "demo", "--nodes=10", "--pods=100", "--seed=1")
        assert re.search(r"^\d+ pods bound in ", said, re.MULTILINE)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An empty git repository."""
    run("git", "init", "--quiet", tmp_path / "repository")
    return tmp_path / "repository"


def commit(repository: Path, work_tree: Path) -> str:
    """Commit all files of a folder, as they are now; return the commit's hash."""
    git = ("git", f"--git-dir={repository}/.git", f"--work-tree={work_tree}")
    run(*git, "add", "--all", work_tree)
    author = ("-c", "user.name=kubesched", "-c", "user.email=kubesched@example.com")
    run(*git, *author, "commit", "--quiet", "--no-gpg-sign", "--message=everything")
    return run(*git, "rev-parse", "HEAD").strip()


class TestReproducibility:
    def test_two_builds_have_the_same_bits(self, repository: Path) -> None:
        found = dist.check(
            commit(repository, ROOT), repository=repository, python=Path(sys.executable)
        )

        assert list(found) == [
            f"kubesched-{VERSION}-py3-none-any.whl",
            f"kubesched-{VERSION}.tar.gz",
        ]

    @pytest.mark.parametrize(
        "leak", ["os.getcwd()", "os.environ.get('TZ')", "os.stat('pyproject.toml').st_mtime"]
    )
    def test_what_differs_between_two_builds_is_found(self, repository: Path, leak: str) -> None:
        """A build that writes its folder, time zone or file times into the wheel is refused."""
        files = {
            "pyproject.toml": """
                [build-system]
                requires = ["hatchling"]
                build-backend = "hatchling.build"
                [project]
                name = "kubesched"
                version = "1"
                [tool.hatch.build.hooks.custom]
                """,
            "kubesched/__init__.py": "",
            "hatch_build.py": f"""
                import os
                from hatchling.builders.hooks.plugin.interface import BuildHookInterface

                class Leak(BuildHookInterface):
                    def initialize(self, version, build_data):
                        file = os.path.join(self.root, "kubesched", "leak.txt")
                        with open(file, "w") as sink:
                            sink.write(str({leak}))
                """,
        }
        for name, text in files.items():
            (repository / name).parent.mkdir(exist_ok=True)
            (repository / name).write_text(textwrap.dedent(text))
        made = commit(repository, repository)

        with pytest.raises(dist.DistError, match=r"differ in|gives another"):
            dist.check(made, repository=repository, python=Path(sys.executable))
