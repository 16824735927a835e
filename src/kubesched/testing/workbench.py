"""A cluster to test plugins and configurations on, with the real engine.

    nodes, pods ──> Cluster ──┐
    plugins, configuration ───┴─> DryRun ──> PodPlacement

A pod that is placed is assumed on its node, so the next one sees it. Ties are broken by a generator
with a fixed seed; failed expectations say so when a result is only chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Unpack, overload

from msgspec.structs import replace

from kubesched.api import names
from kubesched.api.core import Node, Pod
from kubesched.api.scheduling import PodGroup
from kubesched.clock import Clock, RealClock
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.object_store import HasMeta
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.config import loading
from kubesched.config.defaults import complete_profile
from kubesched.config.features import FeatureGates
from kubesched.config.profiles import PluginConfig, PluginRef, Plugins, PluginSet, Profile
from kubesched.config.types import SchedulerConfiguration
from kubesched.errors import ObjectError, UsageError
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import Plugin
from kubesched.framework.runtime import Framework
from kubesched.framework.status import Status
from kubesched.kinds import stores
from kubesched.metrics.recorder import Metrics
from kubesched.plugin_loading import guarded, open_registry
from kubesched.plugins.in_tree import IN_TREE
from kubesched.scheduler.dry_run import DryRun
from kubesched.snapshot import files
from kubesched.snapshot.filling import fill
from kubesched.testing.device_objects import (
    GPU,
    OWN_CLAIM,
    DeviceProperties,
    claiming,
    make_device_claim,
    make_device_class,
    make_devices,
    sharing,
    write_allocations,
)
from kubesched.testing.group_under_test import GroupOutcome, GroupUnderTest, make_pod_group
from kubesched.testing.objects import (
    NodeProperties,
    PodProperties,
    make_node,
    make_pod,
    read_manifests,
)
from kubesched.testing.placement import PluginScoreColumn, PodPlacement, PodPlacements


class Workbench:
    """The fixture `cluster`."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or RealClock()
        self._gates = FeatureGates.of({})
        #: the scheduler's metrics
        self.metrics = Metrics(self._gates)
        self.cluster = Cluster(RequestRules.of(self._gates))
        self._plugins: dict[str, tuple[type[Plugin], int, dict[str, Any] | None]] = {}
        self._without: list[str] = []
        self._configured: Profile | None = None
        self._files: tuple[str, ...] = ()
        #: built on first use, from the settings so far
        self._engine: DryRun | None = None
        #: whether settings changed since then
        self._is_outdated = False
        self._names = 0

    # --- plugins ----------------------------------------------------------------------------

    def use(
        self, plugin: type[Plugin], *, weight: int = 1, args: Mapping[str, Any] | None = None
    ) -> Workbench:
        """Enable a plugin at all its extension points, beside the default ones.

        `args` are as in ``pluginConfig``. Raises ConfigError if they cannot be used.
        """
        made = guarded(plugin, self._clock)
        self._plugins[made.name] = made, weight, dict(args) if args is not None else None
        self._is_outdated = True
        return self

    def without(self, *plugins: str) -> Workbench:
        """Disable default plugins; ``*`` disables all optional ones."""
        self._without += plugins
        self._is_outdated = True
        return self

    def use_config(self, file: str | Path, *, plugin_files: Sequence[str | Path] = ()) -> Workbench:
        """Use the first profile of a configuration file, and plugins of the given files."""
        self._configured = loading.load(file, gates=self._gates).profiles[0]
        self._files = tuple(map(str, plugin_files))
        self._is_outdated = True
        return self

    # --- nodes and pods ---------------------------------------------------------------------

    def node(self, name: str, **properties: Unpack[NodeProperties]) -> Node:
        """Add a node."""
        made = make_node(name, **properties)
        self.cluster.put_node(made)
        return made

    def nodes(
        self, count: int, *, zones: int = 0, prefix: str = "n", **properties: Unpack[NodeProperties]
    ) -> list[str]:
        """Add nodes ``n1``, ``n2``… in ``zone-1``, ``zone-2``… in turn; return their names."""
        made = []
        for number in range(1, count + 1):
            if zones:
                properties["zone"] = f"zone-{(number - 1) % zones + 1}"
            made.append(self.node(f"{prefix}{number}", **properties).metadata.name)
        return made

    def devices(
        self, node: str, count: int = 1, **properties: Unpack[DeviceProperties]
    ) -> list[str]:
        """Add devices to a node, of class ``gpu`` by default; return their names.

        The class is made if it is not there: it selects the devices of their driver.
        """
        made = make_devices(node, count, properties)
        name = properties.get("device_class", GPU)
        if self.cluster.devices.classes.get(name) is None:
            self.put(make_device_class(name, driver=made.spec.driver))
        before = self.cluster.devices.slices.get(made.metadata.name)
        if before is not None:
            raise UsageError(f"node {node} has devices of class {name} already: add them at once")
        self.put(made)
        return [each.name for each in made.spec.devices]

    def group(
        self,
        name: str,
        *,
        min_count: int | None = None,
        topology: str = "",
        priority: int = 0,
        disrupted_together: bool = False,
    ) -> GroupUnderTest:
        """Create a gang that needs `min_count` pods, or a basic group; then add its `pods`.

        Turns on the feature gates that it needs.
        """
        gates = {"GenericWorkload": True}
        if topology:
            gates["TopologyAwareWorkloadScheduling"] = True
        self.feature_gates(**gates)
        made = make_pod_group(
            name,
            min_count=min_count,
            topology=topology,
            priority=priority,
            disrupted_together=disrupted_together,
        )
        self.put(made)
        return GroupUnderTest(self, made)

    def feature_gates(self, **gates: bool) -> Workbench:
        """Turn feature gates on or off; raises ConfigError for those that cannot be set."""
        if any(self._gates.enabled(name) != value for name, value in gates.items()):
            self._gates = self._gates.replace(**gates)
            self._engine = None
        return self

    def pod(self, name: str = "", **properties: Unpack[PodProperties]) -> PodUnderTest:
        """Create a pending pod, or place one on its `node`."""
        made = make_pod(name or self._next_name(), **properties)
        made = sharing(made, properties.get("device_claims", ()))
        if "devices" in properties:
            claim = make_device_claim(
                f"{made.metadata.name}-{OWN_CLAIM}",
                properties["devices"],
                selector=properties.get("device_selector", ""),
                namespace=made.metadata.namespace,
            )
            made, claim = claiming(made, claim)
            self.put(claim)
        return self._taken(made)

    def pods(self, count: int, **properties: Unpack[PodProperties]) -> list[PodUnderTest]:
        """Create several pods that differ only in name."""
        return [self.pod(**properties) for _ in range(count)]

    def put(self, *objects: HasMeta) -> None:
        """Add objects other than nodes and pods: claims, volumes, classes, namespaces…"""
        by_type = {kind.type: store for kind, store in stores(self.cluster)}
        for each in objects:
            if type(each) not in by_type:
                raise UsageError(f"a {type(each).__name__} cannot be put into the cluster")
            by_type[type(each)].put(each)

    def from_manifests(self, source: str | Path) -> list[PodUnderTest]:
        """Add the nodes and pods of a YAML file, folder or text; return pending pods."""
        objects = list(read_manifests(source))
        for each in objects:
            if isinstance(each, Node):
                self.cluster.put_node(each)
        pods = [self._taken(each) for each in objects if isinstance(each, Pod)]
        return [each for each in pods if not each.object.spec.node_name]

    def from_snapshot(self, file: str | Path) -> list[PodUnderTest]:
        """Add everything in a file of ``kubesched snapshot``; return pending pods.

        Raises UsageError if something in it cannot be read: half a cluster proves nothing.
        """
        try:
            read = files.read(Path(file), strict=True)
        except ObjectError as unreadable:
            raise UsageError(str(unreadable)) from None
        filled = fill(self.cluster, read)
        left_out = filled.notes[len(read.notes) :]
        if left_out:
            raise UsageError(f"{file}: {left_out[0]}")
        return [PodUnderTest(self, each) for each in filled.pending.values()]

    def _taken(self, pod: Pod) -> PodUnderTest:
        node = pod.spec.node_name
        if node:
            if self.cluster.table.row_of(node) is None:
                raise UsageError(f"pod {pod.metadata.name} is on {node}, which does not exist")
            self.cluster.put_pod(pod)
        else:
            self.cluster.groups.put_pending(self.cluster.compiler.pending(pod))
        return PodUnderTest(self, pod)

    def _next_name(self) -> str:
        self._names += 1
        return f"pod-{self._names}"

    # --- scheduling -------------------------------------------------------------------------

    @property
    def framework(self) -> Framework:
        """The profile, ready to schedule."""
        return self._dry_run().framework_of(names.DEFAULT_SCHEDULER)

    @overload
    def schedule(self, pods: PodUnderTest) -> PodPlacement: ...

    @overload
    def schedule(self, pods: Sequence[PodUnderTest]) -> PodPlacements: ...

    def schedule(self, pods: PodUnderTest | Sequence[PodUnderTest]) -> PodPlacement | PodPlacements:
        """Schedule a pod, or several in sequence; decisions are final."""
        if isinstance(pods, PodUnderTest):
            return pods.placement
        placements = [each.placement for each in pods]
        labels = (node.metadata.labels or {} for node in self.cluster.table.nodes if node)
        zones = {each[names.LABEL_ZONE] for each in labels if names.LABEL_ZONE in each}
        return PodPlacements(placements, sorted(zones))

    def decide(self, pod: Pod) -> PodPlacement:
        """Schedule one pod, and assume it on its node."""
        info = self.cluster.compiler.pending(pod)
        decision, victims = self._dry_run().decide(self.framework, info)
        node, status = decision.node_name, decision.status
        is_error = not (status.ok or status.rejected)
        # The plugin that failed would fail again.
        scores, totals = ((), {}) if is_error else self._scores(info)
        refused = {} if is_error else self._refusals(info)
        placement = PodPlacement(
            pod=info.full_name,
            node=node,
            zone=self._zone(node),
            message="" if node else status.message,
            is_error=is_error,
            nominated_node=decision.nominated_node or "",
            victims=tuple([each.full_name for each in victims]),
            refused={name: status.message for name, status in refused.items()},
            details=self._details(info, refused),
            scores=scores,
            totals=totals,
        )
        if node:
            self.cluster.assume(info, node)
            return replace(placement, devices=self._reserved(info, node, decision.state))
        return placement

    def _reserved(self, pod: PodInfo, node: str, state: CycleState) -> tuple[str, ...]:
        """Choose the devices of a pod, and write them into its claims."""
        if not pod.pod.spec.resource_claims:
            return ()
        status = self.framework.reserve(state, pod, node)
        if not status.ok:
            raise UsageError(f"{pod.full_name} cannot be reserved on {node}: {status.message}")
        return write_allocations(self.cluster, pod.pod, state)

    def decide_group(self, under_test: GroupUnderTest) -> GroupOutcome:
        """Schedule a group as a whole, and assume its members on their nodes."""
        groups = self._dry_run().groups
        infos = [self.cluster.compiler.pending(each) for each in under_test.members]
        info = None if groups is None else groups.info(under_test.key, infos)
        if groups is None or info is None or not infos:
            raise UsageError(f"group {under_test.key.full_name} has no pods to schedule")
        decision = groups.decide(info)
        assigned = decision.assigned
        names = {each.pod.uid: each.node_name for each in assigned}
        outcome = GroupOutcome(
            group=under_test.key.full_name,
            nodes={each.pod.full_name: each.node_name for each in assigned},
            members=len(infos),
            message=decision.status.message if decision.gate.ok else "",
            gate=decision.gate.message,
            victims=tuple(each.full_name for each in decision.victims),
            pending={
                each.full_name: decision.message_of(each) for each in infos if each.uid not in names
            },
        )
        for each in assigned:
            self.cluster.assume(each.pod, each.node_name)
            self._reserved(each.pod, each.node_name, each.state)
        return outcome

    def domains(self, group: PodGroup, nodes: Iterable[str]) -> set[str]:
        """Return the values of a group's topology label on some nodes."""
        constraints = group.spec.scheduling_constraints
        key = constraints.topology[0].key if constraints and constraints.topology else ""
        rows = [row for name in nodes if (row := self.cluster.table.row_of(name)) is not None]
        labels = (self.cluster.table.node_at(row).metadata.labels or {} for row in rows)
        return {each.get(key, "") for each in labels}

    def _scores(self, info: PodInfo) -> tuple[tuple[PluginScoreColumn, ...], dict[str, int]]:
        evaluator, state = self.framework.evaluator, CycleState()
        try:
            feasible = evaluator.look(state, info)
            if isinstance(feasible, Diagnosis) or len(feasible) < 2:
                return (), {}
            rows = feasible.rows()
            found = evaluator.plugin_scores(state, info, rows)
        except AttemptError:
            return (), {}
        nodes = self._names_at(rows)
        columns = tuple(
            PluginScoreColumn(
                each.plugin, each.weight, dict(zip(nodes, each.normalized.tolist(), strict=True))
            )
            for each in found
        )
        totals = {n: sum(each.weight * each.scores[n] for each in columns) for n in nodes}
        return columns, totals

    def _details(self, info: PodInfo, refused: Mapping[str, Status]) -> dict[str, str]:
        """Return the numbers and names behind refusals."""
        found: dict[str, str] = {}
        if not refused:
            return found
        state, table = CycleState(), self.cluster.table
        with suppress(AttemptError):
            self.framework.evaluator.look(state, info)
        for name, status in refused.items():
            plugin, row = self.framework.plugins.instances.get(status.plugin), table.row_of(name)
            if plugin is not None and row is not None:
                details = plugin.details(state, info, NodeRows.one(table, row))
                told = [each.text for each in details if each.reason in ("", *status.reasons)]
                found |= {name: ", ".join(told)} if told else {}
        return found

    def _refusals(self, info: PodInfo) -> dict[str, Status]:
        """Return why nodes reject the pod, in the state before it was placed."""
        evaluator, table, state = self.framework.evaluator, self.cluster.table, CycleState()
        refused: dict[str, Status] = {}
        try:
            found = evaluator.look(state, info)
            if isinstance(found, Diagnosis) and found.pre_filter is not None:
                return {}
            feasible = set() if isinstance(found, Diagnosis) else set(found.rows().tolist())
            for row in table.order.rows().tolist():
                if row not in feasible:
                    status = evaluator.status_on(state, info, row)
                    if status is not None:
                        refused[table.name_at(row)] = status
        except AttemptError:
            return {}
        return refused

    def _names_at(self, rows: IndexArray) -> list[str]:
        return [self.cluster.table.name_at(row) for row in rows.tolist()]

    def _zone(self, node: str) -> str:
        row = self.cluster.table.row_of(node)
        labels = None if row is None else self.cluster.table.node_at(row).metadata.labels
        return (labels or {}).get(names.LABEL_ZONE, "")

    def _dry_run(self) -> DryRun:
        if self._engine is None or self._is_outdated:
            registry = open_registry(IN_TREE, self._files, clock=self._clock).with_plugins(
                each for each, _, _ in self._plugins.values()
            )
            config = SchedulerConfiguration(profiles=(self._configured or self._profile(),))
            if self._engine is None:
                self._engine = DryRun(
                    self.cluster, config, self._gates, registry=registry, metrics=self.metrics
                )
            else:
                self._engine.configure(config, registry)
            self._is_outdated = False
        return self._engine

    def _profile(self) -> Profile:
        added = tuple(
            PluginRef(name=name, weight=weight) for name, (_, weight, _) in self._plugins.items()
        )
        if "*" in self._without:
            needed = tuple(PluginRef(name=name) for name in ("PrioritySort", "DefaultBinder"))
            chosen = PluginSet(enabled=(*needed, *added), disabled=(PluginRef(name="*"),))
        else:
            off = tuple(PluginRef(name=name) for name in self._without)
            chosen = PluginSet(enabled=added, disabled=off)
        return complete_profile(
            Profile(scheduler_name=names.DEFAULT_SCHEDULER, plugins=Plugins(multi_point=chosen)),
            given_args=tuple(
                PluginConfig(name=name, args=args)
                for name, (_, _, args) in self._plugins.items()
                if args is not None
            ),
            gates=self._gates,
        )


class PodUnderTest:
    """A pod with expectations; scheduled when first checked."""

    def __init__(self, workbench: Workbench, pod: Pod) -> None:
        self._workbench = workbench
        self.object = pod
        self._placement: PodPlacement | None = None

    @property
    def placement(self) -> PodPlacement:
        """The result of scheduling it."""
        if self.object.spec.node_name:
            raise UsageError(f"pod {self.object.metadata.name} has its node already")
        if self._placement is None:
            self._placement = self._workbench.decide(self.object)
        return self._placement

    def lands_on(self, *nodes: str) -> PodPlacement:
        """Expect that it goes to this node, or to one of these."""
        __tracebackhide__ = True
        return self.placement.lands_on(*nodes)

    def avoids(self, *nodes: str) -> PodPlacement:
        """Expect that it is placed, but on none of these."""
        __tracebackhide__ = True
        return self.placement.avoids(*nodes)

    def stays_pending_because(self, reason: str) -> PodPlacement:
        """Expect that it is unschedulable, and that its condition has this text."""
        __tracebackhide__ = True
        return self.placement.stays_pending_because(reason)
