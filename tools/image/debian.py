"""A root file system of Debian packages that stands for the image's base, python:3.13-slim.

    the machine's apt, with folders of its own ──> packages ──dpkg-deb --extract──> root file system

That image is Debian with a Python of its own in /usr/local; here the Python is Debian's, of the
same minor version. No script of a package runs: nothing that the scheduler needs is made by one.
apt checks the packages as always, against Debian's keys.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

#: The release of Debian that has this Python.
SUITE = "trixie"
PYTHON = "3.13"
PACKAGES = (
    # in every image of Debian, and with it libstdc++, which NumPy needs
    "apt",
    "base-files",
    "ca-certificates",
    "coreutils",
    "dash",
    f"python{PYTHON}",
    f"python{PYTHON}-venv",
)
#: What `docker run` starts with.
PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"

_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_FOLDERS = ("dev", "etc/ssl/certs", "opt", "proc", "run", "sys", "tmp", "usr/local/bin")
#: Filled by an engine when a container runs.
_FILES = ("etc/hosts", "etc/pip.conf", "etc/resolv.conf")


class BaseError(Exception):
    """Why there is no base: one line for the caller of the script."""


def apt(home: Path, *arguments: str) -> str:
    """Run apt with folders of its own; raises BaseError with the last line of its errors."""
    program, *rest = arguments
    done = subprocess.run(
        [program, *rest],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "APT_CONFIG": str(home / "apt.conf"), "LC_ALL": "C"},
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no output"]
        raise BaseError(f"{' '.join(arguments[:2])} failed: {said[-1]}")
    return done.stdout


def mirror() -> str:
    """Return the address from which this machine gets Debian's packages."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None or not _KEYS.exists():
        raise BaseError("the base is made of Debian's packages, which needs Debian's apt and keys")
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    for address in listed:
        if address.rstrip("/").endswith("/debian"):
            return address
    raise BaseError("apt's sources name no archive of Debian")


def prepare_apt(home: Path) -> None:
    """Give apt a folder, so that it neither reads nor changes what is installed here."""
    for each in ("state/lists/partial", "cache/archives/partial", "parts"):
        (home / each).mkdir(parents=True)
    (home / "status").touch()
    (home / "sources.list").write_text(f"deb [signed-by={_KEYS}] {mirror()} {SUITE} main\n")
    settings = {
        "Dir::State": home / "state",
        "Dir::State::status": home / "status",
        "Dir::Cache": home / "cache",
        "Dir::Etc::sourcelist": home / "sources.list",
        "Dir::Etc::sourceparts": home / "parts",
        "Dir::Etc::preferencesparts": home / "parts",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    text = "".join(f'{name} "{value}";\n' for name, value in settings.items())
    (home / "apt.conf").write_text(text)


def make(root: Path, scratch: Path) -> None:
    """Fill a folder with the root file system."""
    prepare_apt(scratch)
    apt(scratch, "apt-get", "-qq", "update")
    apt(scratch, "apt-get", "-qq", "--yes", "--download-only", "install", *PACKAGES)
    archives = sorted((scratch / "cache" / "archives").glob("*.deb"))
    # First the one that makes /bin and /lib links, through which others are unpacked.
    archives.sort(key=lambda file: not file.name.startswith("base-files_"))
    root.mkdir(parents=True)
    for archive in archives:
        subprocess.run(["dpkg-deb", "--extract", archive, root], check=True)
    for each in _FOLDERS:
        (root / each).mkdir(parents=True, exist_ok=True)
    for each in _FILES:
        (root / each).touch()
    (root / "tmp").chmod(0o1777)
    _be_the_image_of_python(root)


def _be_the_image_of_python(root: Path) -> None:
    """Put `python` on the PATH, with a pip that may install and be removed."""
    for name in ("python", "python3"):
        (root / "usr/local/bin" / name).symlink_to(f"/usr/bin/python{PYTHON}")
    (root / f"usr/lib/python{PYTHON}/EXTERNALLY-MANAGED").unlink(missing_ok=True)
    (pip,) = (root / "usr/share/python-wheels").glob("pip-*.whl")
    with zipfile.ZipFile(pip) as wheel:
        wheel.extractall(root / f"usr/local/lib/python{PYTHON}/dist-packages")
