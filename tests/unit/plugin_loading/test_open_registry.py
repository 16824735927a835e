"""Plugins in files and packages: found, loaded when needed, refused with what is wrong where."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from kubesched.errors import ConfigError
from kubesched.plugin_loading import ENTRY_POINTS, OpenRegistry, open_registry
from kubesched.plugins.in_tree import IN_TREE

PLUGIN = '''
from __future__ import annotations

from kubesched.framework.node_by_node import NodeFilter, NodeScore
from kubesched.plugin_loading import Arguments


class Base(NodeFilter):
    """Has neither a name nor what it needs."""


class Mine(Base):
    class Args(Arguments):
        limit: int = 1

    def __init__(self, args: Args) -> None:
        self.args = args

    def filter_node(self, pod, node):
        return None


class Other(NodeScore):
    name = "Second"

    def score_node(self, pod, node):
        return 1


NOTHING = 1
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN)
    return path


def load(*files: object, entry_points: tuple[EntryPoint, ...] = ()) -> OpenRegistry:
    return open_registry(IN_TREE, [str(each) for each in files], entry_points=entry_points)


def refusal(*files: object) -> str:
    with pytest.raises(ConfigError) as refused:
        load(*files)
    return str(refused.value)


# --- files ------------------------------------------------------------------------------------


def test_all_plugins_of_a_file_are_found(file: Path) -> None:
    registry = load(file)

    assert set(registry) - set(IN_TREE) == {"Mine", "Second"}
    assert registry.points_of("Mine") == frozenset({"filter"})
    assert registry.points_of("Second") == frozenset({"score"})
    assert registry.points_of("NodeName") == IN_TREE.points_of("NodeName")
    assert registry.points_of("Third") is None


def test_one_of_them_can_be_named(file: Path) -> None:
    assert set(load(f"{file}:Other")) - set(IN_TREE) == {"Second"}


def test_files_of_the_same_name_do_not_get_mixed_up(tmp_path: Path, file: Path) -> None:
    other = tmp_path / "sub" / "mine.py"
    other.parent.mkdir()
    other.write_text(PLUGIN.replace("Mine", "Yours").replace('"Second"', '"Third"'))

    assert set(load(file, other)) - set(IN_TREE) == {"Mine", "Second", "Yours", "Third"}


def test_a_file_given_twice_is_loaded_once(file: Path) -> None:
    assert "Mine" in load(file, file)


def test_a_name_may_be_there_only_once(tmp_path: Path, file: Path) -> None:
    copy = tmp_path / "copy.py"
    copy.write_text(PLUGIN)
    assert refusal(file, copy) == f"{copy}: a plugin named Mine already exists"
    copy.write_text(PLUGIN.replace("Mine", "NodeName"))
    assert refusal(copy) == f"{copy}: a plugin named NodeName already exists"


def test_what_is_wrong_with_a_reference_is_told(tmp_path: Path, file: Path) -> None:
    assert refusal(tmp_path / "no.py") == f"open {tmp_path}/no.py: no such file or directory"
    assert refusal(f"{file}:Nobody") == (
        f"plugin file {file} has no class Nobody; its plugins are Mine, Other"
    )
    assert refusal(f"{file}:NOTHING").startswith(f"{file}:NOTHING is no plugin")
    assert refusal(f"{file}:Base") == f"{file}:Base: plugin Base lacks filter_node"
    assert refusal(tmp_path).startswith(f"open {tmp_path}: is a directory")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\nclass (", "{file}:2: SyntaxError: invalid syntax"),
        ("x = 1\n\nimport no_such_module", "{file}:3: ModuleNotFoundError: No module named"),
        ("def f():\n    1 / 0\nf()", "{file}:2: ZeroDivisionError: division by zero"),
    ],
)
def test_a_file_that_cannot_be_imported_names_the_line(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)

    assert refusal(path).startswith(f"plugin file {path}: {said.format(file=path)}")


def test_a_file_without_plugins_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("from kubesched.framework.node_by_node import NodeFilter\n")

    assert "defines no plugin" in refusal(path)
    text = path.rename(tmp_path / "empty.txt")
    assert "its name must end in .py" in refusal(text)


# --- packages ---------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An importable module; its name."""
    name = "package_of_the_test"
    (tmp_path / f"{name}.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def offered(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group=ENTRY_POINTS)


def test_what_a_package_offers_is_imported_when_it_is_named(package: str) -> None:
    registry = load(entry_points=(offered("Mine", f"{package}:Mine"),))

    assert "Mine" in registry
    assert registry.points_of("NodeName")
    assert package not in sys.modules
    assert registry.points_of("Mine") == frozenset({"filter"})
    assert package in sys.modules
    assert registry["Mine"].name == "Mine"


@pytest.mark.parametrize(
    ("name", "attribute", "said"),
    [
        ("Mine", "Nobody", "cannot be imported: .*: AttributeError"),
        ("Yours", "Mine", "leads to the plugin Mine: both must have the same name"),
        ("NOTHING", "NOTHING", "is no plugin"),
        ("Base", "Base", "plugin Base lacks filter_node"),
    ],
)
def test_a_broken_package_matters_only_to_those_who_name_it(
    package: str, name: str, attribute: str, said: str
) -> None:
    registry = load(entry_points=(offered(name, f"{package}:{attribute}"),))

    assert registry.points_of("NodeName")
    with pytest.raises(ConfigError, match=said):
        registry.points_of(name)


def test_a_name_offered_twice_is_nobody_s(package: str) -> None:
    both = (offered("Mine", f"{package}:Mine"), offered("Mine", "another:Mine"))

    with pytest.raises(ConfigError, match="offered by several packages: another:Mine, package_of"):
        load(entry_points=both).points_of("Mine")


def test_a_file_outranks_a_package_and_the_tree_outranks_both(file: Path) -> None:
    points = (offered("Mine", "no.such:Mine"), offered("NodeName", "no.such:NodeName"))

    registry = load(file, entry_points=points)

    assert registry.points_of("Mine") == frozenset({"filter"})
    assert registry["NodeName"] is IN_TREE["NodeName"]


def test_packages_are_found_by_their_entry_points(
    tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "somebodys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kubesched.plugins]\nMine = {package}:Mine\n")

    assert open_registry(IN_TREE).points_of("Mine") == frozenset({"filter"})
