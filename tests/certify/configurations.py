"""Configurations: refused alike, written alike, and used for placements.

kube-scheduler and ours are given the same file. Both must refuse it with the same message, in which
parts may change places, or write the same text with --write-config-to. Profiles that both accept
then place pods, as in the theme placement.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.integration.configurations.asking import Answer, kube_scheduler_says, kubesched_says
from tests.integration.configurations.case import CONNECTION, HEADER, Case, Words

from .drawn_configurations import DrawnConfigurations
from .one_by_one import OneByOne, Question
from .placement import PlacementScenario
from .session import Session
from .shrinking import smallest
from .theme import Difference, Json

#: Configurations of a seed, and how many of kube-scheduler's processes run at a time.
CONFIGURATIONS: Final = 40
AT_ONCE: Final = 2
#: Where a value is: keys and indexes.
Path_ = tuple[str | int, ...]


class ProfileScenario(PlacementScenario):
    """Pods that name one of several profiles."""

    cases = 40

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.given: list[Json] = []

    def profiles(self) -> list[Json]:
        """Return accepted profiles; all nodes are looked at, so that answers are determined."""
        left_out = "percentageOfNodesToScore"
        return [
            {key: value for key, value in each.items() if key != left_out} for each in self.given
        ]

    def question(self, session: Session) -> Question:
        """Return a pod for one of the profiles."""
        found = super().question(session)
        name = self.rng.choice(self.given)["schedulerName"]
        found.pod["spec"]["schedulerName"] = name or "default-scheduler"
        return found


class ConfigurationTheme(OneByOne):
    """Compares what becomes of configurations."""

    name = "configurations"
    scenario = ProfileScenario

    def compare(self, seed: int) -> None:
        """Compare the configurations of a seed, and place pods with one that is accepted."""
        drawn = DrawnConfigurations(random.Random(seed))
        documents = [drawn.document() for _ in range(CONFIGURATIONS)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(self._theirs, documents))
        accepted: list[Json] = []
        for document, theirs in zip(documents, answers, strict=True):
            ours = self._ours(document)
            if _is_same(theirs, ours):
                self.tally.outcomes["accepted" if theirs.written else "refused"] += 1
                accepted += [document] if theirs.written else []
            else:
                self.tally.outcomes["different"] += 1
                self.tally.differences.append(self._shrunk(seed, document))
        usable = [each for each in accepted if each.get("profiles") and "extenders" not in each]
        if usable:
            scenario = ProfileScenario(seed)
            scenario.given = usable[0]["profiles"]
            self.compare_on(seed, scenario)

    def _theirs(self, document: Json) -> Answer:
        with tempfile.TemporaryDirectory() as folder:
            asked = Case(json.dumps(document))
            return kube_scheduler_says(self._assets / "kube-scheduler", Path(folder), asked)

    def _ours(self, document: Json) -> Answer:
        with tempfile.TemporaryDirectory() as folder:
            return kubesched_says(Path(folder), Case(json.dumps(document)))

    def _shrunk(self, seed: int, document: Json) -> Difference:
        """Leave out fields that make no difference to the difference."""

        def differs(leaves: list[tuple[Path_, object]]) -> bool:
            smaller = _connected(rebuilt(leaves))
            return not _is_same(self._theirs(smaller), self._ours(smaller))

        left = _connected(rebuilt(smallest(list(leaves_of(document)), differs)))
        theirs, ours = self._theirs(left), self._ours(left)
        return Difference(self.name, seed, [left], _shown(theirs), _shown(ours))


def _connected(document: Json) -> Json:
    """Return a configuration with what kube-scheduler needs to build its profiles."""
    client = {**CONNECTION, **document.get("clientConnection", {})}
    return {**HEADER, **document, "clientConnection": client}


def _is_same(theirs: Answer, ours: Answer) -> bool:
    """Tell whether answers agree; of several mistakes any may be named first."""
    return theirs.compared(Words.ANY_ORDER) == ours.compared(Words.ANY_ORDER)


def _shown(answer: Answer) -> str:
    return f"refused: {answer.error}" if answer.error else f"accepted:\n{answer.written}"


def leaves_of(value: Any, at: Path_ = ()) -> Iterator[tuple[Path_, object]]:
    """Yield the values of a document that have none below them, each with its place."""
    below = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in below:
        if isinstance(each, dict | list) and each:
            yield from leaves_of(each, (*at, key))
        else:
            yield (*at, key), each


def rebuilt(leaves: list[tuple[Path_, object]]) -> Json:
    """Return a document of some of its leaves; what is left of a list moves up."""
    tree: Json = {}
    for at, value in leaves:
        below: dict[Any, Any] = tree
        for key in at[:-1]:
            below = below.setdefault(key, {})
        below[at[-1]] = value

    def listed(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if value and all(isinstance(key, int) for key in value):
            return [listed(value[key]) for key in sorted(value)]
        return {key: listed(each) for key, each in value.items()}

    found: Json = listed(tree)
    return found
