"""Placements and refusals with random profiles, nodes and pods."""

from __future__ import annotations

from .drawn_pods import DrawnPods
from .one_by_one import OneByOne, Question, Scenario
from .session import Session
from .theme import Json


class PlacementScenario(Scenario):
    """Pods that ask for everything that plugins look at; an old one leaves for each new one."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._drawn = DrawnPods(self.rng)
        #: so many pods stay
        self._kept = self.rng.choice([40, 80, 160, 350])
        self._profile = self._drawn.profile()

    def profiles(self) -> list[Json]:
        """Return the default profile, often with other arguments, weights or plugins."""
        return [self._profile]

    def objects(self) -> list[Json]:
        """Return nodes."""
        return self._drawn.nodes()

    def question(self, session: Session) -> Question:
        """Return a pod."""
        return Question(self._drawn.pod())

    def change(self, session: Session) -> None:
        """Let a pod go if there are many."""
        names = sorted(each["metadata"]["name"] for each in session.copy.all_of("Pod"))
        if len(names) > self._kept:
            session.delete("Pod", self.rng.choice(names))


class PlacementTheme(OneByOne):
    """Compares placements."""

    name = "placement"
    scenario = PlacementScenario
