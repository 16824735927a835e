#!/usr/bin/env python3
"""Build the control plane of the integration tests, once per machine.

    <version>/go.mod --go build--> <cache>/envtest/<version>-<os>-<arch>/
                                       etcd  kube-apiserver  kube-scheduler  kubectl

Beside this file lies one folder for each version that can be built. Without ``--version`` the
script builds ``VERSION``, the one that all tests use; the tests of version skew ask for another.

The folder's path goes to stdout and everything said on the way to stderr, so that a shell can write
``KUBEBUILDER_ASSETS="$(python3 tools/envtest/install.py)"``. A folder that ``KUBEBUILDER_ASSETS``
already names is used as it is when it holds all four binaries; it stands for ``VERSION`` alone.

Two runs at once are safe: the second waits for the lock, finds the binaries and builds nothing.
A binary appears under its name only when it is complete (built beside, then renamed), so a run that
was broken off continues where it stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

VERSION = "v1.37.1"
NEEDED_GO = (1, 26)
HERE = Path(__file__).resolve().parent

#: Name of each binary -> its main package. Smallest first: a broken set-up shows early.
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
}

#: Without a version the API server takes itself for v0.0.0 and refuses some feature gates.
_VERSION_PACKAGE = "k8s.io/component-base/version"

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_HEARTBEAT_SECONDS = 15.0
_LOG_TAIL_LINES = 20


class InstallError(Exception):
    """Why the binaries cannot be built, as one line for the caller of the script."""


def versions() -> list[str]:
    """Return the versions that have a module beside this file."""
    return sorted(found.parent.name for found in HERE.glob("v*/go.mod"))


def linker_flags(version: str) -> str:
    """Return the flags that tell the binaries which version they are."""
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    given = " ".join(f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in values.items())
    return f"-s -w {given}"


def target() -> tuple[str, str]:
    """Return this machine's operating system and architecture as Go names them."""
    machine = platform.machine().lower()
    return platform.system().lower(), _ARCHITECTURES.get(machine, machine)


def cache_folder(version: str) -> Path:
    """Return the folder that this script fills, whether it is there yet or not."""
    root = os.environ.get("KUBESCHED_CACHE")
    if not root:
        shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        root = f"{shared}/kubesched"
    return Path(root).expanduser().absolute() / "envtest" / "-".join((version, *target()))


def missing(folder: Path) -> list[str]:
    """Return the names of the binaries that the folder does not hold."""
    return [name for name in PACKAGES if not os.access(folder / name, os.X_OK)]


def preinstalled_folder(version: str) -> Path | None:
    """Return the folder of KUBEBUILDER_ASSETS if it serves that version and holds everything."""
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if not named or version != VERSION or missing(Path(named)):
        return None
    return Path(named).absolute()


def say(text: str) -> None:
    """Write one progress line, at once even when stderr is a pipe."""
    print(f"envtest: {text}", file=sys.stderr, flush=True)


def build_environment() -> dict[str, str]:
    """Return the machine's own Go settings, except what decides which binary comes out."""
    goos, goarch = target()
    return {**os.environ, "CGO_ENABLED": "0", "GOOS": goos, "GOARCH": goarch, "GOWORK": "off"}


def check_go(module: Path) -> None:
    """Raise unless the Go that would build the module is there and new enough."""
    wanted = ".".join(map(str, NEEDED_GO))
    advice = "install it, or set KUBEBUILDER_ASSETS to a folder that holds the binaries"
    if shutil.which("go") is None:
        raise InstallError(f"Go {wanted} or newer is needed (no `go` on the PATH): {advice}")
    # Asked inside the module, because Go may fetch the newer toolchain that go.mod wants.
    asked = subprocess.run(
        ["go", "env", "GOVERSION"],
        cwd=module,
        env=build_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    answer = (asked.stdout.strip() or asked.stderr.strip()).replace("\n", " ")
    found = re.search(r"go(\d+)\.(\d+)", asked.stdout)
    if found is None or (int(found[1]), int(found[2])) < NEEDED_GO:
        raise InstallError(f"Go {wanted} or newer is needed (found {answer}): {advice}")


@contextlib.contextmanager
def exclusive(lock_file: Path) -> Iterator[None]:
    """Hold the lock file; say so when another run has it and this one has to wait."""
    with lock_file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is building, waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build(name: str, version: str, *, into: Path, label: str) -> Path:
    """Build one binary in a scratch folder and return its path; show that time passes."""
    output, log = into / name, into / f"{name}.log"
    # -mod=readonly on the command line outranks the one of GOFLAGS and leaves the rest of it.
    command = ["go", "build", "-mod=readonly", "-trimpath"]
    command += ["-ldflags", linker_flags(version), "-o", str(output)]
    started = time.monotonic()
    say(f"{label} building {name}")
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*command, PACKAGES[name]],
            cwd=HERE / version,
            env=build_environment(),
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = process.wait(_HEARTBEAT_SECONDS)
                    break
                say(f"{label} building {name}, {time.monotonic() - started:.0f} s so far")
        except BaseException:
            process.kill()
            process.wait()
            raise
    if status != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])
        raise InstallError(f"go build of {name} failed with status {status}:\n{tail}")
    say(f"{label} built {name} in {time.monotonic() - started:.0f} s")
    return output


def install(version: str, folder: Path) -> None:
    """Build what the folder lacks; nothing if it is complete."""
    if not missing(folder):
        return
    check_go(HERE / version)
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder.with_name(f"{folder.name}.lock")):
        wanted = missing(folder)  # another run may have built them while this one waited
        if not wanted:
            return
        say(f"building {', '.join(wanted)} {version} into {folder}")
        say("the first time this also downloads the modules: some minutes")
        scratch = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(scratch, ignore_errors=True)  # left by a run that was killed
        scratch.mkdir()
        try:
            for number, name in enumerate(wanted, start=1):
                label = f"[{number}/{len(wanted)}]"
                built = build(name, version, into=scratch, label=label)
                built.replace(folder / name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Build the binaries of the integration tests.")
    parser.add_argument(
        "--print",
        action="store_true",
        dest="print_only",
        help="only print the folder that holds, or would hold, the binaries",
    )
    parser.add_argument(
        "--version",
        choices=versions(),
        default=VERSION,
        help="the version of Kubernetes to build (%(default)s)",
    )
    arguments = parser.parse_args()
    version: str = arguments.version
    folder = preinstalled_folder(version)
    if arguments.print_only:
        print(folder or cache_folder(version))
        return 0
    if folder is not None:
        say("using the binaries that KUBEBUILDER_ASSETS names")
        print(folder)
        return 0
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if named and version == VERSION:
        say(f"KUBEBUILDER_ASSETS lacks {', '.join(missing(Path(named)))}, not using it")
    folder = cache_folder(version)
    try:
        install(version, folder)
    except InstallError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"cannot fill {folder}: {error}")
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
