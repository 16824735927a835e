"""A watched cluster that no server feeds: tests tell it what happens, and what was found."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from kubesched.api.core import Node, Pod, PodCondition
from kubesched.client.access import ClusterAccess
from kubesched.client.informer import Handler
from kubesched.clock import VirtualClock
from kubesched.config.features import FeatureGates
from kubesched.config.types import SchedulerConfiguration
from kubesched.shadow.judging import JudgingHandler
from kubesched.shadow.report import ShadowFinding
from kubesched.shadow.watching import WatchedCluster
from tests.support.objects import on_node

GATES = FeatureGates.of({})


class ShadowLab:
    """Another scheduler at work, and what ours says to it."""

    def __init__(
        self,
        *nodes: Node,
        scheduler_names: tuple[str, ...] = (),
        gates: FeatureGates = GATES,
    ) -> None:
        self.clock = VirtualClock(1_000.0)
        self.findings: list[ShadowFinding] = []
        self.not_judged: list[str] = []
        self.versions = 0

        def judging(handler: Handler[Pod]) -> Handler[Pod]:
            self.handler = JudgingHandler(
                handler,
                lambda: self.watched,
                clock=self.clock,
                scheduler_names=scheduler_names,
                on_finding=self.findings.append,
                on_not_judged=self.not_judged.append,
            )
            return self.handler

        self.watched = WatchedCluster(
            ClusterAccess.plain("http://127.0.0.1:1"),
            SchedulerConfiguration.default(gates),
            gates,
            clock=self.clock,
            wrap_pods=judging,
        )
        for each in nodes:
            self.watched.cluster.put_node(each)

    def there(self, *pods: Pod) -> None:
        """Let pods be there from the beginning."""
        for each in pods:
            self.handler.on_add(each, True)

    def update(self, old: Pod, new: Pod, *, seen: bool = True) -> None:
        """Let news of a pod come and be applied."""
        self.arrive(old, new, seen=seen)
        self.apply()

    def arrive(self, old: Pod, new: Pod, *, seen: bool = True) -> None:
        """Let news of a pod come."""
        self.watched.backlog.put(partial(self.handler.on_update, old, new), seen=seen)

    def apply(self) -> None:
        """Apply all that has come."""
        self.watched.backlog.work(1.0)

    def bind(self, pod: Pod, node_name: str, *, seen: bool = True) -> None:
        """Let the other scheduler bind a pod."""
        self.update(pod, on_node(pod, node_name), seen=seen)

    def refuse(self, pod: Pod, message: str, nominated: str = "") -> Pod:
        """Let the other scheduler turn a pod away; return the pod with its condition."""
        condition = PodCondition("PodScheduled", "False", reason="Unschedulable", message=message)
        status = replace(pod.status, conditions=(condition,), nominated_node_name=nominated)
        refused = replace(pod, status=status)
        self.update(pod, refused)
        return refused

    def wait(self, seconds: float = 1.0) -> None:
        """Let time pass, and what was held back be reported."""
        self.clock.advance(seconds)
        self.handler.flush()

    @property
    def found(self) -> ShadowFinding:
        """The one finding."""
        (only,) = self.findings
        return only
