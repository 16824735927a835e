"""A page of metrics, taken apart: families with type, help, label names, buckets and values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')

#: Label names with their values, in the order of the names.
Labels = tuple[tuple[str, str], ...]


@dataclass
class Family:
    """All series of one name."""

    type: str = ""
    help: str = ""
    #: (name of the sample, labels but for the bucket's bound) → value; without buckets
    values: dict[tuple[str, Labels], float] = field(default_factory=dict)
    #: labels → bounds of the buckets, as they are written, in their order
    bounds: dict[Labels, list[str]] = field(default_factory=dict)

    @property
    def label_names(self) -> set[tuple[str, ...]]:
        """The label names that series of this family have."""
        return {tuple(name for name, _ in labels) for _, labels in self.values}

    @property
    def counts(self) -> dict[Labels, float]:
        """What was counted: values of counters and gauges, numbers of observations."""
        return {
            labels: value for (name, labels), value in self.values.items() if name[-4:] != "_sum"
        }


def parse(text: str) -> dict[str, Family]:
    """Take a page apart; fail if it is not one."""
    families: dict[str, Family] = {}
    current = Family()
    for line in text.splitlines():
        if line.startswith("#"):
            _, what, name, rest = [*line.split(" ", 3), ""][:4]
            current = families.setdefault(name, Family())
            if what == "HELP":
                current.help = rest
            else:
                current.type = rest
        else:
            _add(current, line)
    return families


def _add(family: Family, line: str) -> None:
    match = _SAMPLE.match(line)
    assert match is not None, f"not a sample: {line}"
    name, inside, value = match.groups()
    labels = dict(_LABEL.findall(inside or ""))
    bound = labels.pop("le", None)
    key = tuple(sorted(labels.items()))
    if bound is None:
        family.values[name, key] = float(value)
    else:
        family.bounds.setdefault(key, []).append(bound)


def texts(labels: Labels) -> Iterator[str]:
    """The values of labels."""
    return (value for _, value in labels)
