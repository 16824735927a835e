"""Run a built image as Kubernetes would with the security context of deploy/, without an engine.

    unshare: mounts, processes, IPC, host name
      └─ root file system of the layers, read-only; /proc, and a /dev of five devices, too
           └─ the image's user, no groups, no capabilities, none to be gained
                └─ the image's entry point, as process 1

The network is the machine's, so that an API server on loopback can be reached. No file system is
writable, not even /tmp. What Kubernetes adds and this does not: the filter of system calls
(seccomp), limits of resources, a network of its own.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tools.image.build import ROOT, Image, cache_folder

from kubesched.bench.processes import launched

_DEVICES = ("full", "null", "random", "urandom", "zero")
#: sys/mount.h
_DETACH = 2
#: linux/prctl.h
_CAPBSET_READ, _CAPBSET_DROP, _NO_NEW_PRIVILEGES = 23, 24, 38


@dataclass
class Container:
    """What to run, and with which files."""

    lower: str
    user: str
    environment: dict[str, str]
    command: list[str]
    #: folder of the container -> folder of this machine
    volumes: dict[str, str] = field(default_factory=dict)
    #: an empty folder of this machine; what is mounted on it is seen by the container alone
    mount_point: str = ""


def start(
    image: Image,
    *arguments: str,
    volumes: dict[str, Path] | None = None,
    output: int | IO[bytes] | None = None,
    **environment: str,
) -> subprocess.Popen[bytes]:
    """Start the image; the process that is returned ends when the container does.

    It is the parent of the container's first process, which ends with it, and ends with us.
    """
    mount_point = cache_folder() / "mount-point"
    mount_point.mkdir(exist_ok=True)
    container = Container(
        mount_point=str(mount_point),
        lower=image.lower(),
        user=image.user,
        environment={**image.environment, **environment},
        command=[*image.entry_point, *arguments],
        volumes={target: str(source) for target, source in (volumes or {}).items()},
    )
    namespaces = ("--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child")
    command = (shutil.which("unshare") or "unshare", *namespaces)
    with tempfile.TemporaryFile() as given:
        given.write(json.dumps(dataclasses.asdict(container)).encode())
        given.seek(0)
        return subprocess.Popen(
            launched([*command, sys.executable, "-m", "tools.image.container"]),
            cwd=ROOT,
            stdin=given,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def first_process(started: subprocess.Popen[bytes]) -> int | None:
    """Return the number of the container's process 1 on this machine, None if there is none."""
    try:
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    except FileNotFoundError:
        return None
    return int(children[0]) if children else None


def _mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _make_root(container: Container, scratch: Path) -> Path:
    """Mount everything that the container sees; return its root."""
    root, extra = scratch / "root", scratch / "extra"
    _mount("-t", "tmpfs", "tmpfs", scratch)
    root.mkdir()
    extra.mkdir()
    for target in container.volumes:
        (extra / target.lstrip("/")).mkdir(parents=True)
    # Without an upper layer an overlay is read-only; this one has the volumes' mount points.
    _mount("-t", "overlay", "overlay", "-o", f"ro,lowerdir={extra}:{container.lower}", root)
    for target, source in container.volumes.items():
        _mount("--bind", "-o", "ro", source, root / target.lstrip("/"))
    _mount("-t", "proc", "-o", "nosuid,nodev,noexec", "proc", root / "proc")
    _mount("-t", "tmpfs", "-o", "nosuid,mode=755", "tmpfs", root / "dev")
    for name in _DEVICES:
        (root / "dev" / name).touch()
        _mount("--bind", f"/dev/{name}", root / "dev" / name)
    _mount("-o", "remount,ro", root / "dev")
    return root


def _enter(root: Path) -> None:
    """Make a folder the root of this process, and let go of the machine's."""
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "."], check=True)
    # The old root lies over the new one until it is unmounted.
    if ctypes.CDLL(None).umount2(b".", _DETACH):
        raise OSError("the machine's root cannot be unmounted")
    os.chdir("/")


def _give_up_privileges(user: str) -> None:
    """Become the user, for good: without groups and capabilities, and with no way to gain any."""
    library = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        if library.prctl(_CAPBSET_READ, capability, 0, 0, 0) < 0:
            break  # the kernel knows no more
        if library.prctl(_CAPBSET_DROP, capability, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "a capability cannot be dropped")
    number, _, group = user.partition(":")
    os.setgroups([])
    os.setresgid(*[int(group)] * 3)
    # From root to a user who is not: permitted and effective capabilities go.
    os.setresuid(*[int(number)] * 3)
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs cannot be set")


def main() -> int:
    """Become the container that standard input describes."""
    container = Container(**json.load(sys.stdin))
    _enter(_make_root(container, Path(container.mount_point)))
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.closerange(3, null + 1)
    os.umask(0o022)
    _give_up_privileges(container.user)
    os.execvpe(  # noqa: S606  the entry point is a list, as in an image
        container.command[0], container.command, container.environment
    )


if __name__ == "__main__":
    sys.exit(main())
