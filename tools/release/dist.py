"""Build the wheel and the sdist of a commit, the same bits each time.

    commit ──git clone──> sources ──locked hatchling──> kubesched-VERSION.tar.gz
                              |                              └──> the same wheel, again
                              └──────────────────────────> kubesched-VERSION-py3-none-any.whl
                                                           bills of materials (sbom.py)
                                                           SHA256SUMS

What could differ is fixed: the sources are the commit's and nothing that lies beside them, the time
in the archives is the commit's, the build system has the versions and hashes of
deploy/image/build-requirements.txt. `--check` builds twice under circumstances that differ (folder,
umask, times of the files, time zone, language, hash seed) and compares.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass, field
from pathlib import Path

from tools.release import sbom

ROOT = Path(__file__).resolve().parents[2]
LOCK = Path("deploy") / "image" / "build-requirements.txt"
NAME = "kubesched"
SUMS = "SHA256SUMS"

_BUILD = """
import os, sys
import hatchling.build
source, sdists, wheels = sys.argv[1:]
os.chdir(source)
if sdists:
    hatchling.build.build_sdist(sdists)
hatchling.build.build_wheel(wheels)
"""
#: Variables that must not reach a build.
_DROPPED = ("PYTHONPATH", "HATCH_BUILD_HOOKS_ENABLE", "HATCH_BUILD_NO_HOOKS")


class DistError(Exception):
    """Why nothing was built, or why two builds differ: one line for the caller of the script."""


@dataclass(frozen=True)
class Circumstances:
    """What may differ between two builds, and must not show in the result."""

    umask: int = 0o022
    #: modification time of all files, None to leave them
    modified: int | None = None
    variables: dict[str, str] = field(default_factory=dict)


USUAL = Circumstances()
UNUSUAL = Circumstances(
    umask=0o077,
    modified=1_000_000_000,
    variables={"TZ": "Pacific/Chatham", "LC_ALL": "C", "PYTHONHASHSEED": "7"},
)


def run(*command: str | Path, umask: int = -1, **variables: str) -> str:
    """Run a command and return what it printed; raises DistError with its last line."""
    environment = {key: value for key, value in os.environ.items() if key not in _DROPPED}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        umask=umask,
        env={**environment, **variables},
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise DistError(f"{Path(command[0]).name} failed: {said[-1] if said else 'no output'}")
    return done.stdout.strip()


def commit_of(revision: str, *, repository: Path = ROOT) -> str:
    """Return the hash of the commit that a revision names."""
    return run("git", "-C", repository, "rev-parse", "--verify", f"{revision}^{{commit}}")


def commit_time(commit: str, *, repository: Path = ROOT) -> int:
    """Return the seconds since 1970 at which a commit was made."""
    return int(run("git", "-C", repository, "show", "--no-patch", "--format=%ct", commit))


def check_out(
    commit: str, folder: Path, *, repository: Path = ROOT, under: Circumstances = USUAL
) -> None:
    """Clone the repository into a new folder, at that commit."""
    run("git", "clone", "--quiet", "--shared", "--no-checkout", repository, folder)
    options = ("-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach")
    run("git", "-C", folder, *options, commit, umask=under.umask)
    if under.modified is not None:
        for each in folder.rglob("*"):
            os.utime(each, (under.modified, under.modified), follow_symlinks=False)


def build_python(source: Path, folder: Path) -> Path:
    """Make an environment with the locked build system; return its interpreter."""
    venv.EnvBuilder(symlinks=True).create(folder)
    python = folder / "bin" / "python"
    options = ("--quiet", "--disable-pip-version-check", "--require-hashes", "--only-binary=:all:")
    lock = source / LOCK
    run(sys.executable, "-m", "pip", f"--python={python}", "install", *options, "-r", lock)
    return python


def build(
    source: Path, output: Path, *, python: Path, epoch: int, under: Circumstances = USUAL
) -> None:
    """Build sdist and wheel of a folder; raises DistError if the sdist gives another wheel."""
    output.mkdir(parents=True, exist_ok=True)
    variables = {**under.variables, "SOURCE_DATE_EPOCH": str(epoch)}

    def hatch(*arguments: str | Path) -> None:
        run(python, "-I", "-c", _BUILD, *arguments, umask=under.umask, **variables)

    hatch(source, output, output)
    (wheel,) = output.glob("*.whl")
    (sdist,) = output.glob("*.tar.gz")
    with tempfile.TemporaryDirectory(prefix="kubesched-sdist-") as scratch:
        shutil.unpack_archive(sdist, scratch, filter="data")
        (unpacked,) = Path(scratch).iterdir()
        hatch(unpacked, "", scratch)
        if (Path(scratch) / wheel.name).read_bytes() != wheel.read_bytes():
            raise DistError(f"{sdist.name} gives another {wheel.name} than the repository")


def released(folder: Path) -> list[Path]:
    """Return the files of a release in a folder, which may hold others, by name."""
    return sorted(folder.glob(f"{NAME}-*"))


def sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a release, by name."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in released(folder)}


def write_sums(folder: Path) -> str:
    """Write SHA256SUMS, which `sha256sum --check` reads; return its text."""
    text = "".join(f"{digest}  {name}\n" for name, digest in sums(folder).items())
    (folder / SUMS).write_text(text)
    return text


def make(
    commit: str,
    output: Path,
    *,
    repository: Path = ROOT,
    under: Circumstances = USUAL,
    python: Path | None = None,
) -> None:
    """Build a commit in a clone of its own; without `python`, with the locked build system."""
    with tempfile.TemporaryDirectory(prefix="kubesched-dist-") as scratch:
        source = Path(scratch) / "source"
        check_out(commit, source, repository=repository, under=under)
        build(
            source,
            output,
            python=python or build_python(source, Path(scratch) / "environment"),
            epoch=commit_time(commit, repository=repository),
            under=under,
        )


def check(commit: str, *, repository: Path = ROOT, python: Path | None = None) -> dict[str, str]:
    """Build twice, under different circumstances; raises DistError unless all bits are the same."""
    with tempfile.TemporaryDirectory(prefix="kubesched-reproduced-") as scratch:
        first, second = Path(scratch) / "first", Path(scratch) / "second" / "in another folder"
        make(commit, first, repository=repository, python=python)
        make(commit, second, repository=repository, python=python, under=UNUSUAL)
        found, again = sums(first), sums(second)
    differing = sorted({name for name, _ in found.items() ^ again.items()})
    if differing:
        raise DistError(f"two builds of {commit[:12]} differ in {', '.join(differing)}")
    return found


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Build a release of a commit.")
    parser.add_argument("--commit", default="HEAD", help="what to build (%(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist", help="folder to fill")
    parser.add_argument(
        "--check", action="store_true", help="build twice, compare, and keep nothing"
    )
    flags = parser.parse_args()
    try:
        commit = commit_of(flags.commit)
        if run("git", "-C", ROOT, "status", "--porcelain"):
            print(f"dist: changes since {commit[:12]} are not built", file=sys.stderr)
        if flags.check:
            for name, digest in check(commit).items():
                print(f"{digest}  {name}")
            print(f"{commit[:12]}: two builds, the same bits")
            return 0
        for old in released(flags.output):
            old.unlink()
        make(commit, flags.output)
        (wheel,) = flags.output.glob("*.whl")
        sbom.make(wheel, flags.output, epoch=commit_time(commit))
        print(write_sums(flags.output), end="")
    except (DistError, sbom.SbomError, OSError) as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
