"""Pods one after the other on a cluster that fills up and stays full.

    Scenario(seed) ──> objects ──> Session ──> question ──> both answers ──> the same? ──> changes
                                                                               │ no
              said again on a cluster that is made anew of the manifests? <────┘
                       │ no: counted as a doubt       │ yes: shrunk

Where there is one best node, both must choose it; where several are equally good, the real one must
choose one of ours, and claims must get the same there; where none fits, both must say the same,
nominate the same node and evict the same pods.

kube-scheduler learns of changes by watches that overtake each other. So a difference counts if
kube-scheduler repeats it on a new cluster in the same state, or if our answer there is another one:
then ours depends on the history of the cluster.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, Self

from kubesched.cluster.cluster import Cluster
from kubesched.framework.cycle_state import CycleState
from tests.integration.control_plane import ControlPlane
from tests.integration.scheduler_process import configuration

from .copied_cluster import Answer
from .session import NAMESPACE, PODS, Session, bare
from .shrinking import smallest
from .theme import Difference, Json, Theme

#: What evictions of kube-scheduler may take that ours decided for.
EVICTION_SECONDS: Final = 5.0
#: Priority classes of all clusters. For each there is one of the same value that never preempts.
PRIORITIES: Final = {"low": 10, "middle": 100, "high": 1000}
NEVER: Final = "-never"
GATE: Final = "example.com/wait"


class Question(NamedTuple):
    """A pod to place, and the objects that it comes with."""

    pod: Json
    objects: tuple[Json, ...] = ()


class Asked(NamedTuple):
    """A question, the state in which it was asked, and the answers."""

    state: list[Json]
    question: Question
    ours: Answer
    theirs: Answer


class Scenario(ABC):
    """A random cluster, and what is asked about it."""

    #: pods that are asked about
    cases: ClassVar[int] = 200

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    #: whether a pod that was refused is tried again while it is looked at
    retries: ClassVar[bool] = True

    def profiles(self) -> list[Json]:
        """Return the profiles of both schedulers; none for the default one."""
        return []

    @abstractmethod
    def objects(self) -> list[Json]:
        """Return what there is before the first question."""

    @abstractmethod
    def question(self, session: Session) -> Question:
        """Return the next question."""

    def submit(self, session: Session, question: Question) -> Json:
        """Create what is asked about; return the pod."""
        for each in question.objects:
            session.create(each)
        return session.plane.request("POST", PODS, question.pod)

    def our_claims(
        self,
        state: CycleState,
        cluster: Cluster,
        node_name: str,
    ) -> Mapping[str, object]:
        """Return what ours gives the claims of a pod on a node.

        Raises ObjectError with the message if they could not be written.
        """
        return {}

    def their_claims(self, session: Session, pod: Json) -> Mapping[str, object]:
        """Return what kube-scheduler gave the claims of a pod."""
        return {}

    def documented(self, ours: Answer, theirs: Answer, session: Session) -> str:
        """Return the documented difference that explains another answer, "" if none does."""
        return ""

    def placed(self, session: Session, pod: Json) -> None:
        """Take over a pod that has a node now."""
        session.copy.put("Pod", pod)

    def refused(self, session: Session, question: Question, pod: Json) -> None:
        """Take back a pod that has none, and its objects."""
        session.delete("Pod", pod["metadata"]["name"])
        for each in question.objects:
            session.delete(each["kind"], each["metadata"]["name"])

    def nominated(self, session: Session, pod: Json) -> None:
        """Take over a pod that is nominated, or bound by now."""
        session.take_over([pod["metadata"]["name"]])

    @abstractmethod
    def change(self, session: Session) -> None:
        """Change the cluster before the next question."""


class OneByOne(Theme):
    """A theme of scenarios."""

    scenario: ClassVar[type[Scenario]]

    def __init__(self, assets: Path) -> None:
        super().__init__(assets)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._plane = self._stack.enter_context(ControlPlane(self._assets))
        self._plane.create_namespace(NAMESPACE)
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        path = f"/api/v1/namespaces/{NAMESPACE}"
        self._plane.request("PATCH", path, label, content_type="application/merge-patch+json")
        for name, value in PRIORITIES.items():
            for suffix, policy in (("", "PreemptLowerPriority"), (NEVER, "Never")):
                body = {"metadata": {"name": name + suffix}, "value": value}
                body["preemptionPolicy"] = policy
                self._plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", body)
        self._stack.enter_context(self.controllers(self._plane))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def controllers(self, plane: ControlPlane) -> Iterator[None]:
        """Run what the clusters need beside a scheduler."""
        yield

    def compare(self, seed: int) -> None:
        """Compare on the cluster of a seed."""
        self.compare_on(seed, self.scenario(seed))

    def compare_on(self, seed: int, scenario: Scenario) -> None:
        """Compare on a cluster."""
        settings = self._configuration(scenario)
        session = Session(self._plane, settings)
        asked: Asked | None = None
        try:
            for each in scenario.objects():
                session.create(each)
            with session.events.watching(), self._kube_scheduler(scenario, settings):
                for _ in range(scenario.cases):
                    scenario.change(session)
                    question = scenario.question(session)
                    state = session.state()
                    ours, theirs, pod = self._ask(scenario, session, question)
                    if not self._is_explained(scenario, session, ours, theirs):
                        asked = Asked(state, question, ours, theirs)
                        break
                    self._go_on(scenario, session, question, pod)
            if asked is None:
                session.copy.cluster.validate()
        finally:
            session.clear()
        if asked is not None:
            self._judge(seed, scenario, settings, asked)

    def _configuration(self, scenario: Scenario) -> Json:
        kubeconfig = self._plane.scheduler_kubeconfig
        backoff = 1 if scenario.retries else 600
        return configuration(
            kubeconfig,
            *scenario.profiles(),
            percentageOfNodesToScore=100,
            podInitialBackoffSeconds=backoff,
            podMaxBackoffSeconds=600,
        )

    def _kube_scheduler(self, scenario: Scenario, settings: Json) -> AbstractContextManager[object]:
        retries = str(scenario.retries).lower()
        flag = f"--feature-gates=SchedulerPopFromBackoffQ={retries}"
        return self._plane.run_kube_scheduler(settings, flag)

    def _ask(
        self, scenario: Scenario, session: Session, question: Question
    ) -> tuple[Answer, Answer, Json]:
        """Return both answers, and the pod once it is settled."""
        created = scenario.submit(session, question)
        return self._answers(scenario, session, created)

    def _answers(
        self, scenario: Scenario, session: Session, created: Json
    ) -> tuple[Answer, Answer, Json]:
        pod = session.events.settled(created["metadata"]["uid"])
        node_name = pod["spec"].get("nodeName", "")
        nominated = pod["status"].get("nominatedNodeName", "")
        ours = session.copy.answer(created, node_name or nominated, scenario.our_claims)
        if node_name:
            claims = scenario.their_claims(session, pod)
            return ours, Answer(frozenset((node_name,)), claims=claims), pod
        message = next(
            each["message"]
            for each in pod["status"]["conditions"]
            if each["type"] == "PodScheduled"
        )
        theirs = Answer(messages=frozenset((message,)), nominated=nominated)
        if nominated:
            # A victim may terminate already: it is not deleted once more.
            ours = ours._replace(victims=frozenset(filter(session.is_alive, ours.victims)))
            theirs = theirs._replace(victims=self._victims(session, pod, ours))
        return ours, theirs, pod

    def _victims(self, session: Session, pod: Json, ours: Answer) -> frozenset[str]:
        """Return the pods that are evicted, once those that ours decided for are.

        On other nodes, pods are evicted for pods that were nominated before and are tried again.
        """
        deadline, name = time.monotonic() + EVICTION_SECONDS, pod["metadata"]["name"]
        node_name = pod["status"]["nominatedNodeName"]
        while True:
            evicted = session.evicted(node_name)
            left = [each for each in evicted if each in session.events.latest]
            if ours.victims <= evicted.keys() and not any(
                evicted[each]["metadata"]["deletionGracePeriodSeconds"] == 0 for each in left
            ):
                newest = session.events.latest[name]
                if left or newest["spec"].get("nodeName") or not session.are_gone(node_name):
                    return frozenset(evicted)
            if session.events.next(deadline - time.monotonic()) is None:
                return frozenset(evicted)

    def _is_explained(
        self, scenario: Scenario, session: Session, ours: Answer, theirs: Answer
    ) -> bool:
        """Count an outcome; tell whether it is the same, or a documented difference."""
        if ours.agrees_with(theirs):
            self.tally.outcomes[_outcome(ours, theirs)] += 1
            return True
        if documented := scenario.documented(ours, theirs, session):
            self.tally.outcomes[_outcome(ours, theirs)] += 1
            self.tally.documented[documented] += 1
            return True
        return False

    def _go_on(self, scenario: Scenario, session: Session, question: Question, pod: Json) -> None:
        if pod["spec"].get("nodeName"):
            scenario.placed(session, pod)
        elif pod["status"].get("nominatedNodeName"):
            session.take_over(session.evicted())
            scenario.nominated(session, pod)
        else:
            scenario.refused(session, question, pod)

    # --- differences ------------------------------------------------------------------------

    def _judge(
        self,
        seed: int,
        scenario: Scenario,
        settings: Json,
        asked: Asked,
    ) -> None:
        """Ask once more, on a cluster made of manifests; shrink what differs again."""
        state, question, ours, theirs = asked
        found = Difference(self.name, seed, [], str(theirs), str(ours))
        found.manifests = _manifests(settings, state, question)
        again, real = self._replay(scenario, settings, state, question)
        # On a new cluster, kube-scheduler tries nominated pods before it gets to the question.
        has_nominated = any(
            each["kind"] == "Pod" and not each["spec"].get("nodeName") for each in state
        )
        if has_nominated or again.agrees_with(real):
            if again.decision() == ours.decision():
                self.tally.doubts.append(found)
            else:
                found.ours += f"; on a new cluster: {again}"
                self.tally.differences.append(found)
            return
        self.tally.outcomes["different"] += 1

        def differs(some: list[Json]) -> bool:
            mine, their = self._replay(scenario, settings, some, question)
            return not mine.agrees_with(their)

        left = smallest(state, differs)
        mine, their = self._replay(scenario, settings, left, question)
        found.manifests = _manifests(settings, left, question)
        found.theirs, found.ours = str(their), str(mine)
        self.tally.differences.append(found)

    def _replay(
        self, scenario: Scenario, settings: Json, state: list[Json], question: Question
    ) -> tuple[Answer, Answer]:
        """Ask both on a cluster that is made for it."""
        session = Session(self._plane, settings)
        try:
            session.recreate(state)
            with session.events.watching():
                created = scenario.submit(session, question)
                with self._kube_scheduler(scenario, settings):
                    mine, real, _ = self._answers(scenario, session, created)
                return mine, real
        finally:
            session.clear()


def _outcome(ours: Answer, theirs: Answer) -> str:
    if theirs.nominated:
        return "preemption"
    if not theirs.nodes:
        return "no node"
    return "one of several nodes" if len(ours.nodes) > 1 else "one best node"


def _manifests(settings: Json, state: list[Json], question: Question) -> list[Json]:
    return [*settings["profiles"], *map(bare, state), *question.objects, question.pod]
