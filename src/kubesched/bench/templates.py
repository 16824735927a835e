"""Objects from files: YAML that is a Go template, as in scheduler_perf.

    node-{{.Index}}: {{DivideInt 30000 .Count}} ──(index, count, params)──> YAML ──> object

A file without actions is parsed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kubesched.bench.go_template import GoTemplate
from kubesched.bench.operations import JsonObject
from kubesched.config import untrusted_yaml
from kubesched.errors import ConfigError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: Maps whose keys are data; everywhere else a key is a field name.
_DATA = frozenset(
    {"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData", "limits"}
    | {"requests", "capacity", "allocatable", "attributes", "counters", "overhead"}
)


class FileTemplate:
    """An object in a file; called with index and count."""

    def __init__(self, path: Path, params: Mapping[str, object] | None = None) -> None:
        """`params` are fields beside the index and the count."""
        self._path = path
        self._params = dict(params or {})
        self._template = GoTemplate(_read(path), where=str(path))
        self._constant = self._decode(0, 1) if self._template.is_constant else None

    def __call__(self, index: int, count: int) -> JsonObject:
        """Create the object; a constant one is the same object each time."""
        return self._constant or self._decode(index, count)

    def __repr__(self) -> str:
        return f"FileTemplate({str(self._path)!r})"

    def _decode(self, index: int, count: int) -> JsonObject:
        text = self._template.render({"Index": index, "Count": count, **self._params})
        try:
            # Derived from the safe loader, in C.
            decoded = yaml.load(text, Loader=_LOADER)  # noqa: S506
        except yaml.YAMLError as wrong:
            reason = untrusted_yaml.problem(wrong)
            raise ConfigError(f"{self._path}: this is not YAML: {reason}") from None
        if not isinstance(decoded, dict):
            raise ConfigError(f"{self._path}: this is not an object")
        lowered: JsonObject = _with_lower_first(decoded)
        return lowered


@cache
def _without_params(path: Path) -> FileTemplate:
    return FileTemplate(path)


def file_template(path: Path, params: Mapping[str, object] | None = None) -> FileTemplate:
    """Read a template; one without parameters is cached."""
    return FileTemplate(path, params) if params else _without_params(path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as wrong:
        raise ConfigError(f"{path}: this is not YAML: {wrong}") from None
    except OSError as failed:
        raise ConfigError(f"{path}: {failed.strerror}") from None


def _with_lower_first(value: Any) -> Any:  # noqa: ANN401  any part of an object
    """Lower-case field names as in the API: scheduler_perf's reader ignores case."""
    if isinstance(value, list):
        return [_with_lower_first(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        _lower_first(str(key)): inner if key in _DATA else _with_lower_first(inner)
        for key, inner in value.items()
    }


def _lower_first(name: str) -> str:
    return name[:1].lower() + name[1:]
