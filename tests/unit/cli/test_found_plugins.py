"""Plugin files are read again with the configuration; a broken one leaves the one of before."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from kubesched.cli import found_plugins
from kubesched.cli.found_plugins import plugins_read_again
from kubesched.errors import ConfigError


@pytest.fixture(autouse=True)
def nothing_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_plugins, "_found", {})


def written(file: Path, says: str) -> Path:
    text = f"""\
    from kubesched.framework.node_by_node import NodeFilter

    class Mine(NodeFilter):
        name = "Mine"
        says = {says!r}

        def filter_node(self, pod, node):
            return self.says
    """
    file.write_text(textwrap.dedent(text))
    return file


def says(files: tuple[str, ...]) -> object:
    return found_plugins.found_plugins(files)["Mine"].says  # type: ignore[attr-defined]


def test_a_changed_file_takes_effect_however_soon_it_changed(tmp_path: Path) -> None:
    file = written(tmp_path / "mine.py", "one")
    files = (str(file),)
    registry = found_plugins.found_plugins(files)
    assert says(files) == "one"

    written(file, "two")  # of the same length, within the same second
    with plugins_read_again():
        pass

    assert says(files) == "two"
    assert found_plugins.found_plugins(files) is registry


@pytest.mark.parametrize("broken", ["def (", "import nothing_of_that_name", "x = 1"])
def test_a_broken_file_is_refused_in_one_line_and_the_old_one_stays(
    tmp_path: Path, broken: str
) -> None:
    file = written(tmp_path / "mine.py", "one")
    files = (str(file),)
    assert says(files) == "one"

    file.write_text(broken)
    with pytest.raises(ConfigError) as refused, plugins_read_again():
        pytest.fail("must not come to that")

    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert says(files) == "one"


def test_if_the_configuration_is_refused_the_old_plugins_stay_too(tmp_path: Path) -> None:
    file = written(tmp_path / "mine.py", "one")
    files = (str(file),)
    assert says(files) == "one"

    written(file, "two")
    meanwhile = []

    def configure() -> None:
        with plugins_read_again():
            meanwhile.append(says(files))
            raise ConfigError("no such field")

    with pytest.raises(ConfigError, match="no such field"):
        configure()

    assert meanwhile == ["two"]
    assert says(files) == "one"


def test_one_broken_file_keeps_all_as_they_were(tmp_path: Path) -> None:
    good, bad = written(tmp_path / "good.py", "one"), tmp_path / "bad.py"
    bad.write_text(good.read_text().replace("Mine", "Other"))
    files = (str(good), str(bad))
    assert says(files) == "one"

    written(good, "two")
    bad.write_text("def (")
    with pytest.raises(ConfigError), plugins_read_again():
        pytest.fail("must not come to that")

    assert says(files) == "one"
