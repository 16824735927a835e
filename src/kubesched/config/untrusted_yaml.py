"""Loads untrusted YAML: every text gives values or a YAMLError, and never crashes the process.

    text ──> not too deep for the parser's stack ──> values ──> not too deep, too many or cyclic

libyaml's composer recurses once per level, so a hundred thousand brackets overflow its stack. Few
texts can be that deep, as a scan of brackets and line starts shows; only those are parsed event by
event first, which needs no stack. Aliases can make the values of a small text deep, huge or cyclic,
so the values are checked, too; and merge keys (``<<``), which are resolved before there are values,
are counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

import yaml

#: Deepest nesting that is accepted.
MAX_DEPTH: Final = 100
#: Aliases may add so many lists and maps to those that the text itself can hold.
MAX_ADDED: Final = 400_000
#: Depth that libyaml's composer handles without the check of events: a fiftieth of its stack.
_SURELY_FINE: Final = 2_000
#: A line that may begin so many block collections: each takes a column, or shares its parent's.
_DEEP_LINE: Final = re.compile(rf"^[ \t?:-]{{{_SURELY_FINE // 2}}}", re.MULTILINE)


_INT_TAG: Final = "tag:yaml.org,2002:int"
_FLOAT_TAG: Final = "tag:yaml.org,2002:float"
_SHOWN_LENGTH: Final = 80
_EXCESSIVE: Final = "document contains excessive aliasing"
#: YAML 1.1 has numbers to the base 60 (``12:30``): text for Kubernetes, and slow to read.
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")


class _KubernetesLoader(yaml.CSafeLoader):
    """Reads YAML as Kubernetes does: dates and times are text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (PyYAML's own class-level table)
        first: [
            *([("tag:yaml.org,2002:str", _BASE_60)] if first in "+-0123456789" else []),
            *(each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"),
        ]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        #: members that maps may still have, with those that merge keys add
        self._members_left = len(text) + MAX_ADDED

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Resolve merge keys; called for every map, and again each time that it is merged."""
        super().flatten_mapping(node)
        self._members_left -= len(node.value)
        if self._members_left < 0:
            raise yaml.YAMLError(_EXCESSIVE)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """Return a number, as PyYAML reads it but for those to the base 60."""
        text = self.construct_scalar(node)
        if ":" in text:
            raise ValueError(f"{text[:_SHOWN_LENGTH]!r} is not a number")
        is_whole = node.tag == _INT_TAG
        return self.construct_yaml_int(node) if is_whole else self.construct_yaml_float(node)


for _tag in (_INT_TAG, _FLOAT_TAG):
    _KubernetesLoader.add_constructor(_tag, _KubernetesLoader.construct_number)


def load_all(text: str) -> list[Any]:
    """Return the documents of a text; raises YAMLError, and nothing else, if it is invalid."""
    check_depth(text)
    try:
        documents = list(yaml.load_all(text, Loader=_KubernetesLoader))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as unfit:
        # A value that contradicts its tag: ``!!int x``, ``!!timestamp soon``.
        raise yaml.YAMLError(f"a value that is not what its tag says: {unfit}") from unfit
    except RecursionError as too_deep:
        raise yaml.YAMLError(_too_deep()) from too_deep
    for document in documents:
        check_values(document, limit=len(text) + MAX_ADDED)
    return documents


def load(text: str) -> Any:  # noqa: ANN401 (any value)
    """Return the only document of a text, None if it has none; raises YAMLError as `load_all`."""
    documents = load_all(text)
    if len(documents) > 1:
        raise yaml.YAMLError("expected a single document in the stream, but found another document")
    return documents[0] if documents else None


def problem(error: yaml.YAMLError) -> str:
    """Return the position and the reason of a YAML error, in one line.

    PyYAML's own message names the stream "<unicode string>"; the caller names the file.
    """
    if isinstance(error, yaml.reader.ReaderError):
        return f"character {error.position + 1}: {error.reason}"
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    context = f", {error.context}" if error.context and error.problem else ""
    return " ".join(f"{where}{error.problem or error.context}{context}".split())


def check_depth(text: str) -> None:
    """Raise YAMLError for a text that is nested too deep for libyaml's composer."""
    brackets = text.count("[") + text.count("{")
    if brackets <= _SURELY_FINE and not _DEEP_LINE.search(text):
        return
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise yaml.YAMLError(f"line {line}: {_too_deep()}")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def check_values(value: object, *, limit: float = math.inf) -> None:
    """Raise YAMLError for values that contain themselves, or are nested too deep, or too many."""
    found = 0
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        found += len(level)
        if found > limit:
            raise yaml.YAMLError(_EXCESSIVE)
        inside = (inner for each in level for inner in _inside(each))
        # Stop at the first value beyond the limit.
        level = list(inside if limit == math.inf else islice(inside, int(limit) + 1))
        if not level:
            return
    raise yaml.YAMLError(_too_deep())


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return (each for each in value.values() if isinstance(each, dict | list))
    if isinstance(value, list):
        return (each for each in value if isinstance(each, dict | list))
    return ()


def _too_deep() -> str:
    return f"nested more than {MAX_DEPTH} levels deep"
