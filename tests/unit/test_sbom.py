"""``tools/release/sbom.py``: bills of materials say what is in the wheels, in both formats."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from pathlib import Path

import pytest
from tools.release import sbom

EPOCH = 1_790_000_000


def wheel(folder: Path, name: str, *headers: str) -> Path:
    """A wheel of nothing but metadata."""
    file = folder / f"{name}-1.0-py3-none-any.whl"
    text = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *headers, ""])
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}-1.0.dist-info/METADATA", text)
    return file


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    """A program that needs one library at once, and that one another."""
    return [
        wheel(
            *(tmp_path, "program", "License-Expression: Apache-2.0"),
            "Requires-Dist: Some_Library>=1",
            "Requires-Dist: elsewhere; sys_platform == 'win32'",
            "Requires-Dist: tests; extra == 'dev'",
        ),
        wheel(
            *(tmp_path, "some_library", "License-Expression: MIT OR Apache-2.0"),
            "Requires-Dist: leaf",
        ),
        wheel(tmp_path, "leaf", "License-Expression: BSD-3-Clause"),
    ]


@pytest.fixture
def packages(wheels: list[Path]) -> list[sbom.Package]:
    return sbom.read(wheels)


class TestPackages:
    def test_are_what_the_metadata_says(
        self, wheels: list[Path], packages: list[sbom.Package]
    ) -> None:
        library = packages[-1]

        assert [each.name for each in packages] == ["leaf", "program", "some-library"]
        assert library.purl == "pkg:pypi/some-library@1.0"
        assert library.licence == "MIT OR Apache-2.0"
        assert library.sha256 == hashlib.sha256(wheels[1].read_bytes()).hexdigest()

    def test_need_what_is_installed_on_linux_without_extras(
        self, packages: list[sbom.Package]
    ) -> None:
        assert [each.needs for each in packages] == [(), ("some-library",), ("leaf",)]

    def test_without_a_known_licence_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(sbom.SbomError, match=r"mystery-1\.0.* states no SPDX expression"):
            sbom.read([wheel(tmp_path, "mystery", "License: see website")])

    def test_with_a_reviewed_licence_are_still_in_the_lock(self) -> None:
        locked = re.findall(r"^(\S+)==", sbom.LOCK.read_text(), re.MULTILINE)

        assert set(sbom.REVIEWED) <= set(locked)


class TestBills:
    def test_fit_their_schemas_and_are_the_same_bits_again(
        self, packages: list[sbom.Package], tmp_path: Path
    ) -> None:
        first = sbom.write(tmp_path, "first", packages, main="program", epoch=EPOCH)
        again = sbom.write(tmp_path, "again", packages, main="program", epoch=EPOCH)

        assert [file.name for file in first] == ["first.cdx.json", "first.spdx.json"]
        assert [file.read_bytes() for file in first] == [file.read_bytes() for file in again]

    def test_name_the_same_packages_and_hashes(self, packages: list[sbom.Package]) -> None:
        cyclonedx = sbom.cyclonedx(packages, main="program", epoch=EPOCH)
        spdx = sbom.spdx(packages, main="program", epoch=EPOCH)

        components = [cyclonedx["metadata"]["component"], *cyclonedx["components"]]
        first = {(each["purl"], each["hashes"][0]["content"]) for each in components}
        second = {
            (each["externalRefs"][0]["referenceLocator"], each["checksums"][0]["checksumValue"])
            for each in spdx["packages"]
        }
        assert first == second == {(each.purl, each.sha256) for each in packages}

    def test_say_what_depends_on_what(self, packages: list[sbom.Package]) -> None:
        cyclonedx = sbom.cyclonedx(packages, main="program", epoch=EPOCH)
        spdx = sbom.spdx(packages, main="program", epoch=EPOCH)

        needs = {each["ref"]: each["dependsOn"] for each in cyclonedx["dependencies"]}
        assert needs["pkg:pypi/program@1.0"] == ["pkg:pypi/some-library@1.0"]
        kinds = [each["relationshipType"] for each in spdx["relationships"]]
        assert kinds == ["DESCRIBES", "DEPENDS_ON", "DEPENDS_ON"]

    def test_that_are_none_are_refused(self, packages: list[sbom.Package], tmp_path: Path) -> None:
        cyclonedx = sbom.cyclonedx(packages, main="program", epoch=EPOCH)
        cyclonedx["components"][0]["hashes"][0]["alg"] = "ROT13"
        spdx = sbom.spdx(packages, main="program", epoch=EPOCH)
        spdx["packages"][0]["licenseDeclared"] = "no licence at all"
        file = tmp_path / "bill.spdx.json"
        file.write_text(json.dumps(spdx))

        with pytest.raises(sbom.SbomError, match="not CycloneDX"):
            sbom.check_cyclonedx(json.dumps(cyclonedx))
        with pytest.raises(sbom.SbomError, match="not SPDX"):
            sbom.check_spdx(file)
