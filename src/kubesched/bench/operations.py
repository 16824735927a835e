"""The operations of a workload, with scheduler_perf's names.

    built-in workloads ──┐
                         ├──> BenchWorkload: operations ──> executor
    performance-config ──┘

An operation is data; its ``template`` creates the object for an index and a count. All numbers are
resolved when an operation is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

JsonObject = dict[str, Any]

#: Creates the object for an index (0 … count-1) and a count.
Template = Callable[[int, int], JsonObject]
Labels = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class LabelNodes:
    """Labels nodes with the values in turn."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LabelNodesUniquely:
    """Labels every node with a unique value."""

    key: str


@dataclass(frozen=True, kw_only=True)
class AllocateOnNodes:
    """Adds allocatable resources, and CSI drivers with volume limits."""

    allocatable: Labels = field(default_factory=dict)
    #: driver -> its allocatable, as in a CSINode
    csi_drivers: Mapping[str, JsonObject] = field(default_factory=dict)
    migrated_plugins: tuple[str, ...] = ()


NodePreparation = LabelNodes | LabelNodesUniquely | AllocateOnNodes


@dataclass(frozen=True, kw_only=True)
class CreateNodes:
    """Nodes, each with a hostname label."""

    count: int
    template: Template
    preparation: NodePreparation | None = None


@dataclass(frozen=True, kw_only=True)
class CreateNamespaces:
    """Namespaces ``prefix-0`` … ``prefix-<count-1>``."""

    prefix: str
    count: int
    template: Template | None = None


@dataclass(frozen=True, kw_only=True)
class CreatePods:
    """Pods, created as fast as possible; waits until all of them are bound."""

    count: int
    template: Template
    #: "" for its own, named after the operation's position
    namespace: str = ""
    collect_metrics: bool = False
    skip_wait: bool = False
    #: how long to delete and recreate bound pods; 0 to create once
    steady_for_s: float = 0.0
    #: whether the next pod is created when the previous one is bound, to measure an idle scheduler
    one_by_one: bool = False
    volume: Template | None = None
    claim: Template | None = None

    @property
    def needs_scheduler(self) -> bool:
        """Whether pods are created when others are bound, so not before there is a scheduler."""
        return self.one_by_one or self.steady_for_s > 0


@dataclass(frozen=True, kw_only=True)
class DeletePods:
    """Deletes pods that were created before."""

    namespace: str
    labels: Labels = field(default_factory=dict)
    skip_wait: bool = False
    #: 0 for all at once
    per_second: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Churn:
    """Creates objects until the end, in the background; may delete them again."""

    mode: Literal["create", "recreate"]
    templates: tuple[Template, ...]
    #: 0 for without limit
    number: int = 0
    interval_s: float = 0.5
    namespace: str = ""


@dataclass(frozen=True, kw_only=True)
class CreateAny:
    """Objects of any kind."""

    template: Template
    count: int = 1
    namespace: str = ""


@dataclass(frozen=True, kw_only=True)
class CreateResourceDriver:
    """Devices on all nodes whose names match a pattern, in one slice each."""

    driver: str
    nodes: str
    devices_per_node: int


@dataclass(frozen=True, kw_only=True)
class AllocateClaims:
    """Gives each claim of a namespace devices, in place of the scheduler."""

    namespace: str


@dataclass(frozen=True, kw_only=True)
class UpdateAny:
    """Replaces objects of any kind, and their status."""

    template: Template
    count: int = 1
    namespace: str = ""
    #: 0 for all at once
    per_second: float = 0.0
    subresources: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Barrier:
    """Waits for pods that were created without waiting for them."""

    #: empty for all namespaces with such pods
    namespaces: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    stage: Literal["Scheduled", "Attempted"] = "Scheduled"


@dataclass(frozen=True, kw_only=True)
class Sleep:
    """Waits."""

    duration_s: float


@dataclass(frozen=True, kw_only=True)
class StartCollecting:
    """From here on pods of these namespaces are counted."""

    name: str
    namespaces: tuple[str, ...]
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StopCollecting:
    """Ends what StartCollecting began."""


Operation = (
    CreateNodes
    | CreateNamespaces
    | CreatePods
    | DeletePods
    | Churn
    | CreateAny
    | CreateResourceDriver
    | AllocateClaims
    | UpdateAny
    | Barrier
    | Sleep
    | StartCollecting
    | StopCollecting
)


@dataclass(frozen=True, kw_only=True)
class BenchWorkload:
    """Operations to run in sequence, and the scheduler's configuration."""

    name: str
    operations: tuple[Operation, ...]
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    #: scheduler_perf's threshold in pods/s for kube-scheduler on its own machines, 0 for none
    threshold: float = 0.0
    #: the base KubeSchedulerConfiguration
    scheduler_config: Path | None = None

    @property
    def node_count(self) -> int:
        """How many nodes there will be."""
        return sum(each.count for each in self.operations if isinstance(each, CreateNodes))

    @property
    def pod_count(self) -> int:
        """The number of pods to create, measured or not."""
        return sum(each.count for each in self.operations if isinstance(each, CreatePods))
