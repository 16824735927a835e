"""What sentences of the documents name is there: files, headings, commands, flags, modules."""

from __future__ import annotations

import importlib
import re
import shlex

import pytest

from tests.documents.markdown import ROOT, Document, documents
from tests.documents.terminal import CommandFailedError
from tests.documents.unrun_commands import check_ours

DOCUMENTS = {each.name: each for each in documents()}
#: History names what was there then.
OF_TODAY = [each for each in DOCUMENTS.values() if each.name != "CHANGELOG.md"]
PARAMETERS = [pytest.param(each, id=each.name) for each in OF_TODAY]

FOLDERS = "benchmarks|deploy|docs|examples|src|tests|tools"


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_links_lead_somewhere(document: Document) -> None:
    assert not [
        f"{document.name}:{line}: {target}"
        for line, target in document.links
        if not target.startswith(("http://", "https://")) and not _leads_somewhere(document, target)
    ]


def _leads_somewhere(document: Document, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (ROOT / document.name).parent / path if path else ROOT / document.name
    if not file.exists():
        return False
    name = file.resolve().relative_to(ROOT).as_posix()
    return not anchor or (name in DOCUMENTS and anchor in DOCUMENTS[name].anchors)


@pytest.mark.parametrize("document", PARAMETERS)
def test_files_of_the_repository_are_there(document: Document) -> None:
    assert not [
        f"{document.name}:{line}: {code}"
        for line, code in document.spans
        if re.fullmatch(rf"({FOLDERS})/[\w./+-]+", code) and not (ROOT / code).exists()
    ]


@pytest.mark.parametrize("document", PARAMETERS)
def test_modules_and_what_is_in_them_can_be_imported(document: Document) -> None:
    for line, code in document.spans:
        if re.fullmatch(r"kubesched(\.\w+)+", code) and code != "kubesched.plugins":
            assert _can_be_imported(code), f"{document.name}:{line}: {code}"


def _can_be_imported(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return hasattr(importlib.import_module(module), attribute)
    return True


@pytest.mark.parametrize("document", PARAMETERS)
def test_commands_in_sentences_exist(document: Document) -> None:
    for line, code in document.spans:
        program, *arguments = code.split()
        if program in ("kubesched", "kube-scheduler") and arguments:
            words = [each for each in shlex.split(" ".join(arguments)) if each != "…"]
            try:
                check_ours(program, words)
            except CommandFailedError as wrong:
                pytest.fail(f"{document.name}:{line}: {wrong}")


@pytest.mark.parametrize("document", PARAMETERS)
def test_targets_and_scripts_in_sentences_exist(document: Document) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line, code in document.spans:
        where = f"{document.name}:{line}: {code}"
        match code.split():
            case ["make", target, *_]:
                assert target in targets, where
            case ["python", "-m", module, *_]:
                paths = [root / module.replace(".", "/") for root in (ROOT, ROOT / "src")]
                found = any(each.is_dir() or each.with_suffix(".py").is_file() for each in paths)
                assert found, where
            case ["python", script, *_] if script.endswith(".py"):
                assert (ROOT / script).is_file(), where
