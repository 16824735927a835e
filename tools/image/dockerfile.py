"""The instructions of a Dockerfile, as far as ours uses them.

    text ──parse──> Stage(base, name, [Instruction(word, argument), …]), …

Anything else raises DockerfileError, so that a Dockerfile that says more than the builder does is
noticed before it is built.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

#: What the builder of this folder can do.
WORDS = frozenset(
    ("ARG", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "LABEL", "RUN", "USER", "WORKDIR")
)
_FROM = re.compile(r"(?P<base>\S+)(?:\s+AS\s+(?P<name>\S+))?", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class DockerfileError(Exception):
    """An instruction that the builder does not know, or cannot follow."""


@dataclass(frozen=True)
class Instruction:
    """A word and what follows it, continued lines joined."""

    word: str
    argument: str


@dataclass
class Stage:
    """All between two FROMs."""

    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)


def parse(text: str) -> list[Stage]:
    """Return the stages of a Dockerfile."""
    stages: list[Stage] = []
    for instruction in instructions(text):
        if instruction.word == "FROM":
            found = _FROM.fullmatch(instruction.argument)
            if found is None:
                raise DockerfileError(f"FROM {instruction.argument}: not an image and a name")
            stages.append(Stage(found["base"], found["name"] or str(len(stages))))
        elif not stages:
            raise DockerfileError(f"{instruction.word} before FROM")
        else:
            stages[-1].instructions.append(instruction)
    return stages


def instructions(text: str) -> list[Instruction]:
    """Return all instructions in their order."""
    joined = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    found = []
    for line in filter(str.strip, joined.splitlines()):
        word, _, argument = line.strip().partition(" ")
        if word not in WORDS:
            raise DockerfileError(f"{word}: not an instruction that this builder knows")
        found.append(Instruction(word, argument.strip()))
    return found


def settings(argument: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return the names and values of an ENV or LABEL, with variables replaced."""
    pairs = (each.partition("=") for each in shlex.split(argument))
    return {name: expand(value, known) for name, _, value in pairs}


def expand(text: str, known: Mapping[str, str]) -> str:
    """Replace $NAME and ${NAME}; a name that is not known is empty, as in Docker."""
    return _VARIABLE.sub(lambda found: known.get(found[1] or found[2], ""), text)
