"""Bills of materials of a release: CycloneDX and SPDX, of the packages that the image installs.

    deploy/image/requirements.txt ──pip download──> wheels ──┐
    kubesched-VERSION-py3-none-any.whl ──────────────────────┴─> packages ──> .cdx.json, .spdx.json

Names, versions, licences and dependencies are those of the wheels' own metadata, hashes are those
of the files, and pip refuses files that the lock does not know; there is a bill for each machine.
The operating system and Python come with the base image and are not listed. The same release gives
the same bits; both files are checked against their schemas before they are written.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "deploy" / "image" / "requirements.txt"
#: Those that images are built for.
MACHINES = ("aarch64", "x86_64")
PYTHON = "3.13"

#: Licences of packages whose metadata has no SPDX expression, read in their licence files.
REVIEWED = {
    "argcomplete": "Apache-2.0",
    "h11": "MIT",
    "jsonpointer": "BSD-3-Clause",
    "markdown-it-py": "MIT",
    "mdurl": "MIT",
    "pyyaml": "MIT",
    "rich": "MIT",
    "uvloop": "MIT OR Apache-2.0",
}

#: Where markers of dependencies are evaluated: in the image.
_ENVIRONMENT = {
    "extra": "",
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": f"{PYTHON}.0",
    "python_version": PYTHON,
    "sys_platform": "linux",
}
_NAMESPACE = uuid.UUID("6f5a6a0e-37a5-5f0e-9d5c-5d8d1ce5a6d9")
_SCOPE = "Python packages of the image; the base image brings Python and the operating system"
_TOOL = "kubesched-sbom"

Document = dict[str, Any]


class SbomError(Exception):
    """Why there is no bill of materials: one line for the caller of the script."""


@dataclass(frozen=True)
class Package:
    """A distribution in the image."""

    name: str
    version: str
    #: an SPDX expression
    licence: str
    file: str
    sha256: str
    #: names of the packages that it needs, as far as they are in the image
    needs: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Return the package's URL, by which scanners of vulnerabilities know it."""
        return f"pkg:pypi/{self.name}@{self.version}"


def download(folder: Path, machine: str, lock: Path = LOCK) -> None:
    """Download the wheels that the image of a machine installs; no other than the lock allows."""
    platforms = (f"{each}_{machine}" for each in ("manylinux_2_28", "manylinux_2_17"))
    options = (
        *("--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"),
        *("--only-binary=:all:", "--implementation=cp", f"--python-version={PYTHON}"),
        # An old pip compares with its own Python instead.
        "--ignore-requires-python",
        *(f"--platform={each}" for each in platforms),
        f"--platform=manylinux2014_{machine}",
    )
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        *options,
        "--dest",
        str(folder),
        "-r",
        str(lock),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no output"]
        raise SbomError(f"pip download for {machine} failed: {said[-1]}")


def read(wheels: Iterable[Path]) -> list[Package]:
    """Return what the metadata of wheels says, by name; raises SbomError for unknown licences."""
    files = list(wheels)
    found = {file: _metadata(file) for file in files}
    names = {canonicalize_name(each["Name"]) for each in found.values()}
    packages = (_package(file, metadata, names) for file, metadata in found.items())
    return sorted(packages, key=lambda each: each.name)


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (
            each for each in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", each)
        )
        return Parser().parsestr(archive.read(name).decode(), headersonly=True)


def _package(file: Path, metadata: Message, names: set[NormalizedName]) -> Package:
    name = canonicalize_name(metadata["Name"])
    licence = metadata["License-Expression"] or REVIEWED.get(name)
    if not licence:
        raise SbomError(f"{file.name} states no SPDX expression: read its licence, add it here")
    wanted = map(Requirement, metadata.get_all("Requires-Dist") or ())
    needs = {
        canonicalize_name(each.name)
        for each in wanted
        if each.marker is None or each.marker.evaluate(_ENVIRONMENT)
    }
    return Package(
        name=name,
        version=metadata["Version"],
        licence=licence,
        file=file.name,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        needs=tuple(sorted(needs & names)),
    )


def _identity(packages: list[Package], kind: str) -> str:
    """Return a number that only this content has."""
    content = "\n".join(f"{each.purl} {each.sha256}" for each in packages)
    return str(uuid.uuid5(_NAMESPACE, f"{kind}\n{content}"))


def _time(epoch: int) -> str:
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def cyclonedx(packages: list[Package], *, main: str, epoch: int) -> Document:
    """Return a bill in CycloneDX 1.6."""

    def component(each: Package) -> Document:
        return {
            "type": "application" if each.name == main else "library",
            "bom-ref": each.purl,
            "name": each.name,
            "version": each.version,
            "purl": each.purl,
            "hashes": [{"alg": "SHA-256", "content": each.sha256}],
            "licenses": [{"expression": each.licence}],
            "properties": [{"name": "kubesched:file", "value": each.file}],
        }

    by_name = {each.name: each for each in packages}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{_identity(packages, 'cyclonedx')}",
        "version": 1,
        "metadata": {
            "timestamp": _time(epoch),
            "tools": {"components": [{"type": "application", "name": _TOOL}]},
            "component": {**component(by_name[main]), "description": _SCOPE},
        },
        "components": [component(each) for each in packages if each.name != main],
        "dependencies": [
            {"ref": each.purl, "dependsOn": [by_name[name].purl for name in each.needs]}
            for each in packages
        ],
    }


def spdx(packages: list[Package], *, main: str, epoch: int) -> Document:
    """Return a bill in SPDX 2.3."""

    def reference(name: str) -> str:
        return f"SPDXRef-Package-{name}"

    def package(each: Package) -> Document:
        return {
            "SPDXID": reference(each.name),
            "name": each.name,
            "versionInfo": each.version,
            "packageFileName": each.file,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "checksums": [{"algorithm": "SHA256", "checksumValue": each.sha256}],
            "licenseConcluded": "NOASSERTION",
            "licenseDeclared": each.licence,
            "copyrightText": "NOASSERTION",
            "externalRefs": [
                {
                    "referenceCategory": "PACKAGE-MANAGER",
                    "referenceType": "purl",
                    "referenceLocator": each.purl,
                }
            ],
        }

    def relationship(one: str, kind: str, other: str) -> Document:
        return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}

    (version,) = (each.version for each in packages if each.name == main)
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{main}-{version}",
        "documentNamespace": f"urn:uuid:{_identity(packages, 'spdx')}",
        "comment": _SCOPE,
        "creationInfo": {"created": _time(epoch), "creators": [f"Tool: {_TOOL}"]},
        "packages": [package(each) for each in packages],
        "relationships": [
            relationship("SPDXRef-DOCUMENT", "DESCRIBES", reference(main)),
            *(
                relationship(reference(each.name), "DEPENDS_ON", reference(name))
                for each in packages
                for name in each.needs
            ),
        ],
    }


def check_cyclonedx(text: str) -> None:
    """Raise SbomError unless a text is a bill in CycloneDX 1.6."""
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415  of the development environment
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault is not None:
        raise SbomError(f"not CycloneDX: {str(fault).splitlines()[0]}")


def check_spdx(file: Path) -> None:
    """Raise SbomError unless a file is a bill in SPDX 2.3."""
    from spdx_tools.spdx.parser.error import SPDXParsingError  # noqa: PLC0415
    from spdx_tools.spdx.parser.parse_anything import parse_file  # noqa: PLC0415
    from spdx_tools.spdx.validation.document_validator import (  # noqa: PLC0415
        validate_full_spdx_document,
    )

    try:
        faults = validate_full_spdx_document(parse_file(str(file)))
    except SPDXParsingError as error:
        raise SbomError(f"not SPDX: {error}") from error
    if faults:
        raise SbomError(f"not SPDX: {faults[0].validation_message}")


def write(output: Path, stem: str, packages: list[Package], *, main: str, epoch: int) -> list[Path]:
    """Write both files after they are checked; return their paths."""
    bills = {
        "cdx": cyclonedx(packages, main=main, epoch=epoch),
        "spdx": spdx(packages, main=main, epoch=epoch),
    }
    texts = {kind: json.dumps(bill, indent=2) + "\n" for kind, bill in bills.items()}
    check_cyclonedx(texts["cdx"])
    with tempfile.TemporaryDirectory(prefix="kubesched-sbom-") as scratch:
        file = Path(scratch) / "bill.spdx.json"
        file.write_text(texts["spdx"])
        check_spdx(file)
    written = []
    for kind, text in texts.items():
        written.append(output / f"{stem}.{kind}.json")
        written[-1].write_text(text)
    return written


def make(wheel: Path, output: Path, *, epoch: int, lock: Path = LOCK) -> list[Path]:
    """Write the bills of a release, for each machine; return their paths."""
    written = []
    for machine in MACHINES:
        with tempfile.TemporaryDirectory(prefix="kubesched-wheels-") as scratch:
            download(Path(scratch), machine, lock)
            packages = read([wheel, *Path(scratch).glob("*.whl")])
        (version,) = (each.version for each in packages if each.name == "kubesched")
        stem = f"kubesched-{version}-linux-{machine}"
        written += write(output, stem, packages, main="kubesched", epoch=epoch)
    return written
