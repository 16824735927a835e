"""Where things are: one class a name, tests beside their module, shared helpers in support."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import kubesched

TESTS = Path(__file__).resolve().parents[1]
UNIT = TESTS / "unit"
SOURCE = Path(kubesched.__file__).parent
TEST_FILES = [str(path.relative_to(UNIT)) for path in sorted(UNIT.rglob("test_*.py"))]

#: Test files of no single module → what they are about.
TOPICS = {
    "cel/library/test_libraries.py": "the functions of all libraries",
    "cli/test_every_command.py": "what holds for all commands",
    "client/test_garbage.py": "reference cycles that the client must not leave",
    "client/test_public_names.py": "what the package offers",
    "documents/test_blocks.py": "the blocks of all documents",
    "documents/test_references.py": "what the sentences of all documents name",
    "explain/test_vectors.py": "explanations of the conformance cases",
    "framework/test_decision_path.py": "caches against the full evaluation, over all modules",
    "test_envtest.py": "the folder tools/envtest",
    "test_examples.py": "the folder examples",
    "test_image_builder.py": "the folder tools/image",
    "test_krew.py": "the folder deploy/krew",
    "test_layout.py": "the folders src and tests",
    "test_monitoring.py": "the folder deploy/monitoring",
    "test_packaging.py": "what is shipped besides the code",
    "test_release_workflow.py": "the file .github/workflows/release.yml",
    "test_sbom.py": "the bills of materials of tools/release",
    "test_views.py": "everything that follows the cluster, at once",
}
#: Packages of the engine: a reader finds the specification of each of their modules by its name.
ENGINE = ("cluster", "framework", "plugins", "queue", "scheduler")
#: Modules of the engine without a test file → where they are specified.
SPECIFIED_ELSEWHERE = {
    "cluster/arrays.py": "types only",
    "framework/answers.py": "framework/test_plan.py",
    "framework/attempt_error.py": "two exceptions",
    "framework/plugin.py": "the conformance checks of testing/",
    "plugins/device_allocation.py": "plugins/test_dynamic_resources.py",
    "plugins/freed_node.py": "plugins/test_victims.py",
    "plugins/lost_pods.py": "plugins/test_victims.py",
    "plugins/verdicts.py": "plugins/test_victims.py",
    "plugins/victim_trials.py": "plugins/test_victims.py",
    "plugins/volume_binder.py": "plugins/test_volume_binding_reserve.py",
    "plugins/volume_index.py": "plugins/test_volume_matching.py",
    "plugins/volume_placement.py": "plugins/test_volume_binding_machine.py",
    "scheduler/checked_state.py": "an enumeration",
    "scheduler/extender_access.py": "scheduler/test_extender_http.py",
    "scheduler/group_dry_run.py": "explain/test_groups.py",
    "scheduler/group_handler.py": "scheduler/test_group_scheduling.py",
    "scheduler/outside.py": "fields only",
    "scheduler/profiles.py": "scheduler/test_engine.py",
}
#: Packages that are commands as well, and as such whole: their modules may be asked from outside.
COMMANDS = {"tests.certify", "tests.chaos", "tests.conformance", "tests.documents", "tests.soak"}


def modules_beside(test_file: str) -> set[str]:
    """The names of the modules of the package that a test file's folder stands for."""
    folder = Path(test_file).parent
    package = TESTS / folder if str(folder) == "documents" else SOURCE / folder
    return {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }


@pytest.mark.parametrize("test_file", TEST_FILES)
def test_a_test_file_is_named_after_its_module_or_is_a_known_topic(test_file: str) -> None:
    """``test_<module>.py``, or ``test_<module>_<aspect>.py`` if one file would be too long."""
    subject = Path(test_file).stem.removeprefix("test_")
    is_about_a_module = any(
        subject == module or subject.startswith(f"{module}_")
        for module in modules_beside(test_file)
    )

    assert is_about_a_module != (test_file in TOPICS)


def test_every_topic_has_its_file() -> None:
    assert TOPICS.keys() <= set(TEST_FILES)


def test_a_module_of_the_engine_has_a_test_file() -> None:
    tested = {Path(each).parent / Path(each).stem.removeprefix("test_") for each in TEST_FILES}
    untested = {
        str(module)
        for package in ENGINE
        for path in (SOURCE / package).glob("*.py")
        if not path.stem.startswith("__")
        and not any(
            test.parent == Path(package) and f"{test.name}_".startswith(f"{path.stem}_")
            for test in tested
        )
        for module in [path.relative_to(SOURCE)]
    }

    assert untested <= SPECIFIED_ELSEWHERE.keys()


def test_what_is_specified_elsewhere_is_there() -> None:
    for where in SPECIFIED_ELSEWHERE.values():
        assert not where.endswith(".py") or (UNIT / where).is_file()


def imported(path: Path) -> Iterator[str]:
    """The modules under tests that a file imports by their whole names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from ([node.module] if node.module.startswith("tests.") else [])


@pytest.mark.parametrize("folder", ["unit", "integration", "browser", "support"])
def test_what_several_folders_use_is_in_support(folder: str) -> None:
    """What one folder's tests share is beside them, and imported relatively."""
    found = {
        f"{path.relative_to(TESTS)}: {module}"
        for path in (TESTS / folder).rglob("*.py")
        for module in imported(path)
        if ".".join(module.split(".")[:2]) not in {"tests.support", *COMMANDS}
    }

    assert not found


def test_no_two_classes_have_the_same_name() -> None:
    """A reader who searches for a class finds one definition."""
    modules = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(str(path.relative_to(SOURCE)))

    assert not {name: paths for name, paths in modules.items() if len(paths) > 1}
