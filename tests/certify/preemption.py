"""Preemption: priorities, disruption budgets, nominated pods; the same node and the same victims.

A node is full of pods of several priorities. Victims without a grace period are gone at once, and
the preemptor is bound; others terminate until the test ends them, and later pods meet the
nomination.
"""

from __future__ import annotations

import time
from typing import Final

from .drawn_pods import APPS, DrawnPods
from .one_by_one import EVICTION_SECONDS, NEVER, PRIORITIES, OneByOne, Question, Scenario
from .session import Session
from .theme import Json

#: So many questions are asked while victims terminate.
NOMINATED_FOR: Final = 4


class PreemptionScenario(Scenario):
    """Pods of several priorities on full nodes."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._drawn = DrawnPods(self.rng, most_nodes=10)
        self._profile = self._drawn.profile()
        self._started = 0
        self._waited = 0
        self._nodes: list[str] = []

    def profiles(self) -> list[Json]:
        """Return the default profile, often with other arguments, weights or plugins."""
        return [self._profile]

    def objects(self) -> list[Json]:
        """Return nodes, budgets, and pods that fill the nodes."""
        nodes = self._drawn.nodes()
        self._nodes = [each["metadata"]["name"] for each in nodes]
        apps = self.rng.sample(APPS, self.rng.randint(0, 4))
        budgets = [self._budget(app) for app in apps]
        fill = [
            self._placed_on(name) for name in self._nodes for _ in range(self.rng.randint(2, 9))
        ]
        return [*nodes, *budgets, *fill]

    def _budget(self, app: str) -> Json:
        """Return a budget; of several for one pod, kube-scheduler takes any first."""
        allowed = self.rng.choice([0, 0, 1, 2])
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{app}"},
            "spec": {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1},
            "status": {
                "disruptionsAllowed": allowed,
                "currentHealthy": 1 + allowed,
                "desiredHealthy": 1,
                "expectedPods": 1 + allowed,
            },
        }

    def _placed_on(self, node_name: str) -> Json:
        pod = self._drawn.pod()
        pod["spec"]["nodeName"] = node_name
        # When one of two pods of a node with the same host port goes, kube-scheduler takes the port
        # for free. A scheduler never comes to that state.
        pod["spec"]["containers"][0].pop("ports", None)
        pod["spec"]["priorityClassName"] = self.rng.choice(["low", "low", "middle", "high"])
        pod["spec"]["terminationGracePeriodSeconds"] = self.rng.choice([0, 0, 0, 0, 0, 30])
        return {**pod, "status": self._start()}

    def _start(self) -> Json:
        """Return a start of its own: of pods with the same, either may be the more important."""
        self._started += 1
        minutes, seconds = divmod(self._started, 60)
        return {"startTime": f"2026-01-01T{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}Z"}

    def question(self, session: Session) -> Question:
        """Return a pod that may preempt, or may not.

        While pods are nominated, only the last may: evictions have kube-scheduler try nominated
        pods again, and those may evict others then.
        """
        pod = self._drawn.pod()
        drawn = self.rng.choice(["low", "middle", "middle", "high", "high"])
        never = 0 < self._waited < NOMINATED_FOR or self.rng.random() < 0.1
        pod["spec"]["priorityClassName"] = drawn + (NEVER if never else "")
        return Question(pod)

    def placed(self, session: Session, pod: Json) -> None:
        """Start a pod, as a kubelet would."""
        patch = {"status": self._start()}
        started = session.patch("Pod", pod["metadata"]["name"], patch, "status")
        super().placed(session, started)

    def nominated(self, session: Session, pod: Json) -> None:
        """Start the pod if its victims are gone and it is bound; else let it wait."""
        name = pod["metadata"]["name"]
        newest = session.events.latest[name]
        if newest["spec"].get("nodeName"):
            self.placed(session, newest)
        else:
            session.take_over([name])

    def change(self, session: Session) -> None:
        """End victims after some questions; keep pods of low priority coming."""
        self._follow(session)
        pods = session.copy.all_of("Pod")
        waiting = [each for each in pods if not each["spec"].get("nodeName")]
        self._waited = self._waited + 1 if waiting else 0
        if self._waited > NOMINATED_FOR:
            self._end_victims(session, waiting)
        elif not waiting and len(pods) > 5 * len(self._nodes):
            important = [each for each in pods if each["spec"]["priority"] > PRIORITIES["low"]]
            session.delete("Pod", self.rng.choice(important or pods)["metadata"]["name"])
        if not waiting and self.rng.random() < 0.7:
            session.create(self._placed_on(self.rng.choice(self._nodes)))

    def _follow(self, session: Session) -> None:
        """Take over what became of nominated pods that kube-scheduler tried again."""
        while session.events.next(0) is not None:
            pass
        for pod in session.copy.all_of("Pod"):
            if not pod["spec"].get("nodeName"):
                self.nominated(session, pod)

    def _end_victims(self, session: Session, waiting: list[Json]) -> None:
        """End pods that are being deleted, as kubelets would; nominated pods are bound then.

        Only one that still fits where it is nominated to is waited for.
        """
        if len(waiting) > 1 or self.rng.random() < 0.5:
            # kube-scheduler may have tried them again.
            for pod in waiting:
                session.delete("Pod", pod["metadata"]["name"])
            session.refresh("Pod")
            waiting = []
        for pod in session.copy.all_of("Pod"):
            if "deletionTimestamp" in pod["metadata"]:
                session.delete("Pod", pod["metadata"]["name"])
        for pod in sorted(waiting, key=lambda each: -each["spec"]["priority"]):
            name, node_name = pod["metadata"]["name"], pod["status"]["nominatedNodeName"]
            session.copy.remove("Pod", name)
            if node_name in session.copy.answer(pod, node_name).feasible:
                self._wait_until_bound(session, name)
            newest = session.events.latest[name]
            if newest["spec"].get("nodeName"):
                self.placed(session, newest)
            else:
                session.delete("Pod", name)

    def _wait_until_bound(self, session: Session, name: str) -> None:
        deadline = time.monotonic() + EVICTION_SECONDS
        while not session.events.latest[name]["spec"].get("nodeName"):
            left = deadline - time.monotonic()
            assert session.events.next(left), f"{name} was not bound where it was nominated to"


class PreemptionTheme(OneByOne):
    """Compares preemption."""

    name = "preemption"
    scenario = PreemptionScenario
