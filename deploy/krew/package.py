#!/usr/bin/env python3
"""Make the krew plugin of a release: the archive, and the manifest that names it.

    wheel, kubectl-kubesched, LICENSE ──> kubesched-krew-VERSION.tar.gz ──┐
    kubesched.yaml (template) ────────────────────────────────────────────┴──> kubesched.yaml

The same wheel gives the same archive, bit for bit. After ``python -m build --wheel``:

    python3 deploy/krew/package.py dist/*.whl --uri URL --homepage URL -o dist/krew

Try it before it is published:

    cd dist/krew && kubectl krew install --manifest=kubesched.yaml --archive=kubesched-krew-*.gz
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import re
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TEMPLATE = HERE / "kubesched.yaml"
LAUNCHER = HERE / "kubectl-kubesched"
LICENSE = HERE.parents[1] / "LICENSE"
_WHEEL = re.compile(r"kubesched-(?P<version>[^-]+)-py3-none-any\.whl")
#: krew takes semantic versions only.
_SEMVER = re.compile(r"\d+\.\d+\.\d+")


def version_of(wheel: Path) -> str:
    """Return the version of a wheel; raises ValueError if krew could not use it."""
    found = _WHEEL.fullmatch(wheel.name)
    if found is None:
        raise ValueError(f"{wheel}: not a wheel of kubesched")
    version = found["version"]
    if not _SEMVER.fullmatch(version):
        raise ValueError(f"{wheel}: krew takes releases such as 1.2.3, not {version}")
    return version


def archive(wheel: Path) -> bytes:
    """Return the archive with everything that the plugin needs."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as files,
    ):
        for path, mode in ((LICENSE, 0o644), (LAUNCHER, 0o755), (wheel, 0o644)):
            entry = tarfile.TarInfo(path.name)
            data = path.read_bytes()
            entry.size, entry.mode = len(data), mode
            files.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def manifest(version: str, *, uri: str, digest: str, homepage: str) -> str:
    """Return the manifest of a release."""
    text = TEMPLATE.read_text().partition("\n")[2]
    values = {"VERSION": f"v{version}", "HOMEPAGE": homepage, "URI": uri, "SHA256": digest}
    for name, value in values.items():
        text = text.replace(f": {name}\n", f': "{value}"\n')
    return text


def main() -> int:
    """Write both files."""
    parser = argparse.ArgumentParser(description="Make the krew plugin of a release.")
    parser.add_argument("wheel", type=Path, help="wheel of the release")
    parser.add_argument("--uri", required=True, help="address of the folder of the archive")
    parser.add_argument("--homepage", required=True, help="address of the project")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder to write to")
    flags = parser.parse_args()
    try:
        version = version_of(flags.wheel)
        packed = archive(flags.wheel)
        flags.output.mkdir(parents=True, exist_ok=True)
        name = f"kubesched-krew-{version}.tar.gz"
        (flags.output / name).write_bytes(packed)
        uri, digest = f"{flags.uri.rstrip('/')}/{name}", hashlib.sha256(packed).hexdigest()
        text = manifest(version, uri=uri, digest=digest, homepage=flags.homepage)
        (flags.output / TEMPLATE.name).write_text(text)
    except (OSError, ValueError) as failed:
        print(f"Error: {failed}", file=sys.stderr)
        return 1
    print(f"{flags.output / name}\n{flags.output / TEMPLATE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
