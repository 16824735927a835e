"""What all themes have in common: cases by seed, a tally, differences and how they are shown."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

Json = dict[str, Any]


@dataclass
class Difference:
    """Manifests about which the two schedulers differ, and both answers."""

    theme: str
    seed: int
    #: what one needs to try it again, as small as it gets
    manifests: Sequence[Json]
    theirs: str
    ours: str

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.theme}, seed {self.seed}:",
                *(json.dumps(each, sort_keys=True) for each in self.manifests),
                f"kube-scheduler: {self.theirs}",
                f"ours:           {self.ours}",
            ]
        )


@dataclass
class Tally:
    """What came of comparisons. A case is one pod, one group or one configuration."""

    #: what the cases came to
    outcomes: Counter[str] = field(default_factory=Counter)
    #: differences that docs/differences.md has, by the first cell of their row
    documented: Counter[str] = field(default_factory=Counter)
    #: differences that no rule explains
    differences: list[Difference] = field(default_factory=list)
    #: what kube-scheduler did not say again of the same state; watches overtake each other
    doubts: list[Difference] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """The number of cases."""
        return self.outcomes.total()

    def __str__(self) -> str:
        parts = [f"{self.cases} cases"]
        parts += [f"{what} {count}" for what, count in self.outcomes.most_common()]
        parts += [f"documented: {what} {count}" for what, count in self.documented.most_common()]
        parts += [f"not said twice {len(self.doubts)}"] if self.doubts else []
        return ", ".join([*parts, f"{len(self.differences)} differences"])


class Theme(AbstractContextManager["Theme"], ABC):
    """One kind of case; `with` starts and ends the servers that it needs."""

    name: ClassVar[str]

    def __init__(self, assets: Path) -> None:
        self._assets = assets
        self.tally = Tally()

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def compare(self, seed: int) -> None:
        """Compare the cases of a seed, and tally them; what differs is shrunk."""
