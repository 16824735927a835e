"""The examples: their own tests pass, run as their readers would run them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from examples.yardstick import Arrays

import kubesched
from kubesched import kinds
from kubesched.plugin_loading import open_registry
from kubesched.plugins.in_tree import IN_TREE
from kubesched.testing import plugin_checks

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/plugin.py"))


@pytest.fixture(autouse=True)
def kinds_of_the_tree() -> Iterator[None]:
    """Take kinds out of the table again that examples watch."""
    yield
    for kind in [each for each in kinds.KINDS.values() if each.is_of_plugins]:
        kinds.remove(kind.name)


def test_there_are_some_of_each_form() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_a_plugin_with_a_docstring(example: Path) -> None:
    registry = open_registry(IN_TREE, [str(example / "plugin.py")])

    (name,) = set(registry) - set(IN_TREE)
    assert registry.points_of(name)
    assert registry[name].__doc__


@pytest.mark.parametrize("check", [check for _, check in plugin_checks(Arrays)])
def test_the_yardstick_keeps_its_promises(check: Callable[[], None]) -> None:
    check()


def test_their_tests_pass() -> None:
    """In a pytest of their own, so that nothing of ours helps them."""
    done = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-c", "/dev/null", "--rootdir", ".", "-p", "kubesched.testing.pytest_plugin"),
            "examples",
        ],
        cwd=ROOT,
        env={
            "PYTHONPATH": str(Path(kubesched.__file__).parents[1]),
            "PATH": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for example in EXAMPLES:
        assert (example / "test_plugin.py").exists()
