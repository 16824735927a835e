"""Markdown documents as their readers see them: what is a command, what a file, what neither.

    Document.read ──> Block (console, sh: commands; a named file; a manifest; an excerpt; text)

Code blocks are fenced and name their language, and that says what they are:

    console            a terminal: lines after ``$`` are commands, the others what they print.
                       ``…`` stands for any text, alone on a line for any lines
    sh                 commands, of which the output is not shown
    python, yaml, …    after a line that ends in "`name`:" the contents of a file of that name;
                       else Python is an excerpt of the source, and YAML is objects of Kubernetes
    text               diagrams, lines of logs: nothing that a reader could run or save

Where that is not enough, HTML comments in front of a block say more: `NOTES` has them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

#: ``<!-- key: value -->`` in front of a block -> what it tells.
NOTES: Final = {
    "not run": "why the commands of the block cannot be run in a test; they are checked otherwise",
    "exit code": "what the block's last command ends with, if that is not 0",
    "goes on": "the block's last command does not end by itself; what it says when it is ready",
    "ended": "a program that goes on no longer, because the reader pressed Ctrl-C",
    "cluster": "what is in the reader's cluster: a file of manifests, from the root",
}

_COMMENT: Final = re.compile(r"\s*<!--\s*(?P<key>[a-z ]+?)\s*(?::\s*(?P<value>.*?))?\s*-->\s*")
_FENCE: Final = re.compile(r"(?P<indent>\s*)(?P<marks>```+)(?P<language>\S*)\s*")
_NAMED: Final = re.compile(r"`(?P<name>[\w./-]+\.[a-z]+)`(?: becomes)?:$")
_HEADING: Final = re.compile(r"#{1,6} (?P<title>.+)")
_LINK: Final = re.compile(r"!?\[[^]]*\]\((?P<target>[^)\s]+)\)")
_SPAN: Final = re.compile(r"`(?P<code>[^`\n]+(?:\n[^`\n]+)?)`")
_PROGRAMS: Final = frozenset(
    [
        "aws",
        "bash",
        "cd",
        "cp",
        "curl",
        "docker",
        "export",
        "gcloud",
        "helm",
        "k3s",
        "kind",
        "kube-scheduler",
        "kubeadm",
        "kubectl",
        "kubesched",
        "make",
        "minikube",
        "mkdir",
        "mv",
        "pip",
        "pytest",
        "python",
        "python3",
        "sed",
    ]
)


class DocumentError(Exception):
    """A document cannot be read as a reader would; says where and what to do."""


class Kind(Enum):
    """What a reader does with a block."""

    COMMANDS = "runs it"
    FILE = "saves it under its name"
    MANIFEST = "applies it"
    EXCERPT = "finds it in the source"
    TEXT = "reads it"


@dataclass(frozen=True)
class Command:
    """A command and what it prints, None if that is not shown."""

    where: str
    text: str
    shown: tuple[str, ...] | None


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    where: str
    language: str
    text: str
    #: what the line before it calls it, "" if it does not
    file: str = ""
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """What a reader does with it; raises if that cannot be known."""
        match self.language:
            case "console" | "sh":
                return Kind.COMMANDS
            case "text":
                self._must_be_text()
                return Kind.TEXT
            case "":
                raise DocumentError(f"{self.where}: a block without a language")
            case _ if self.file:
                return Kind.FILE
            case "python":
                return Kind.EXCERPT
            case "yaml":
                return Kind.MANIFEST
            case language:
                raise DocumentError(f"{self.where}: a block of {language} that is no named file")

    def commands(self) -> list[Command]:
        """The commands of a block of them, in order."""
        found = list(self._session() if self.language == "console" else self._script())
        if not found:
            raise DocumentError(f"{self.where}: {self.language} without a command")
        return found

    def _session(self) -> Iterator[Command]:
        lines = self.text.splitlines()
        if lines and not lines[0].startswith("$ "):
            raise DocumentError(f"{self.where}: the first line is no command, `$ …`")
        rest = list(reversed(lines))
        while rest:
            command = rest.pop().removeprefix("$ ")
            while command.endswith("\\"):
                command += "\n" + rest.pop()
            shown: list[str] = []
            while rest and not rest[-1].startswith("$ "):
                shown.append(rest.pop())
            yield Command(self.where, command, tuple(shown) if any(shown) else None)

    def _script(self) -> Iterator[Command]:
        for line in self.text.replace("\\\n", "\\\0").splitlines():
            if line.startswith("$ "):
                raise DocumentError(f"{self.where}: a prompt in sh; write console")
            if line.strip() and not line.startswith("#"):
                yield Command(self.where, line.replace("\0", "\n"), None)

    def _must_be_text(self) -> None:
        for line in self.text.splitlines():
            words = line.split(maxsplit=1)
            if words and words[0] in {"$", *_PROGRAMS}:
                raise DocumentError(f"{self.where}: a command in a block of text: {line.strip()}")


@dataclass(frozen=True)
class Document:
    """A Markdown file, taken apart."""

    name: str
    blocks: tuple[Block, ...]
    #: notes about the whole document
    notes: dict[str, str]
    #: anchors of its headings
    anchors: frozenset[str]
    #: line -> target, of all links and pictures
    links: tuple[tuple[int, str], ...]
    #: line -> text, of all code in sentences
    spans: tuple[tuple[int, str], ...]

    @classmethod
    def read(cls, path: Path) -> Document:
        """Read a file of the repository."""
        return cls.parse(path.relative_to(ROOT).as_posix(), path.read_text())

    @classmethod
    def parse(cls, name: str, text: str) -> Document:
        """Take a document apart; raise if one of its blocks is not fenced."""
        blocks: list[Block] = []
        prose: list[str] = []
        notes: dict[str, str] = {}
        about_all: dict[str, str] = {}
        lines = enumerate(text.splitlines(), 1)
        for number, line in lines:
            where = f"{name}:{number}"
            if comment := _COMMENT.fullmatch(line):
                key, value = comment["key"], comment["value"] or ""
                if key not in NOTES or not value:
                    raise DocumentError(f"{where}: a comment that tells nothing: {line.strip()}")
                (about_all if key == "cluster" else notes)[key] = value
                prose.append("")
            elif fence := _FENCE.fullmatch(line):
                inside = list(_until_closed(lines, fence, where))
                named = _NAMED.search(next((each for each in reversed(prose) if each), ""))
                file = named["name"] if named and fence["language"] not in _NO_FILES else ""
                content = "".join(f"{each}\n" for each in inside)
                blocks.append(Block(where, fence["language"], content, file, notes))
                notes = {}
                prose.extend(["", *("" for _ in inside), ""])
            else:
                if line.startswith("    ") and not (prose and prose[-1]):
                    raise DocumentError(f"{where}: a block by indentation; fence it with ```")
                if line and notes:
                    raise DocumentError(f"{where}: notes that no block follows: {notes}")
                prose.append(line)
        return cls(name, tuple(blocks), about_all, *_of_prose(prose))


_NO_FILES: Final = frozenset({"console", "sh", "text"})


def documents() -> list[Document]:
    """All documents of the repository."""
    paths = (
        path
        for path in sorted(ROOT.rglob("*.md"))
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    )
    return [Document.read(path) for path in paths]


def _until_closed(
    lines: Iterator[tuple[int, str]], fence: re.Match[str], where: str
) -> Iterator[str]:
    for _, line in lines:
        if line.strip() == fence["marks"]:
            return
        yield line.removeprefix(fence["indent"])
    raise DocumentError(f"{where}: a block without an end")


def _of_prose(
    prose: list[str],
) -> tuple[frozenset[str], tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]]:
    anchors: list[str] = []
    for line in prose:
        if heading := _HEADING.fullmatch(line):
            slug = _slug(heading["title"])
            again = anchors.count(slug)
            anchors.append(f"{slug}-{again}" if again else slug)
    text = "\n".join(prose)
    return (
        frozenset(anchors),
        tuple((_line(text, each), each["target"]) for each in _LINK.finditer(text)),
        tuple((_line(text, each), " ".join(each["code"].split())) for each in _SPAN.finditer(text)),
    )


def _line(text: str, found: re.Match[str]) -> int:
    return text.count("\n", 0, found.start()) + 1


def _slug(title: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
