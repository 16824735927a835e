"""``tools/image``: what the builder makes of a Dockerfile before it mounts anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.image import build, debian
from tools.image.dockerfile import DockerfileError, Instruction, expand, parse, settings

ROOT = Path(__file__).resolve().parents[2]


class TestDockerfile:
    def test_has_a_stage_for_each_from(self) -> None:
        first, second = parse("FROM a:1 AS build\nRUN x\nFROM a:1\nUSER 1\n")

        assert (first.base, first.name, second.base, second.name) == ("a:1", "build", "a:1", "1")
        assert first.instructions == [Instruction("RUN", "x")]
        assert second.instructions == [Instruction("USER", "1")]

    def test_lines_are_joined_and_comments_are_none(self) -> None:
        (stage,) = parse("# about\nFROM a\nRUN x \\\n# within\n    && y\n")

        assert stage.instructions[0].argument.split() == ["x", "&&", "y"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("FROM a\nVOLUME /x\n", "VOLUME: not an instruction"),
            ("RUN x\n", "RUN before FROM"),
            ("FROM a b c\n", "not an image and a name"),
        ],
    )
    def test_what_the_builder_cannot_follow_is_refused(self, text: str, message: str) -> None:
        with pytest.raises(DockerfileError, match=message):
            parse(text)

    def test_variables_are_replaced(self) -> None:
        assert expand("/opt/bin:$PATH:${A}b$NONE", {"PATH": "/bin", "A": "a"}) == "/opt/bin:/bin:ab"
        assert settings('A=1 B="x $A"', {"A": "0"}) == {"A": "1", "B": "x 0"}

    def test_ours_is_understood_and_has_the_python_of_the_stand_in(self) -> None:
        for stage in parse((ROOT / "Dockerfile").read_text()):
            assert stage.base == f"python:{debian.PYTHON}-slim"


class TestIgnored:
    ignored = build.Ignored((ROOT / ".dockerignore").read_text())

    @pytest.mark.parametrize("path", ["src/kubesched/app.py", "deploy/image/x.txt", "LICENSE"])
    def test_lets_in_what_is_named(self, path: str) -> None:
        assert not self.ignored(Path(path))

    @pytest.mark.parametrize(
        "path", ["tests/x.py", ".git/config", "src/kubesched/__pycache__/app.pyc", "src/x.pyo"]
    )
    def test_leaves_out_everything_else(self, path: str) -> None:
        assert self.ignored(Path(path))


def test_layers_are_in_the_cache_folder_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBESCHED_CACHE", str(tmp_path))

    assert build.cache_folder() == tmp_path / "image"


def test_without_root_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    with pytest.raises(build.BuildError, match="needs Linux and root"):
        build.build()
