"""NodeResourcesFit: a pod's requests must fit into the free resources of its node.

All insufficient resources of a node are reported in one status. It is unresolvable if a request
exceeds the node's allocatable. Nodes are scored by one of three strategies, see `resource_scoring`.
`node_resources_fit_hints` has the queueing hints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby

import numpy as np

from kubesched.api import names
from kubesched.api.amounts import compared, quantity
from kubesched.api.requests import is_extended_resource
from kubesched.cluster.arrays import BoolArray, IndexArray, Int64Array
from kubesched.cluster.cluster import Cluster
from kubesched.cluster.extended_resources import may_be_devices
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_table import NodeTable
from kubesched.cluster.pod_info import PodInfo, RequestRules
from kubesched.cluster.pod_signature import PodSignature
from kubesched.config.args import LEAST_ALLOCATED, NodeResourcesFitArgs
from kubesched.config.validation_args import check_node_resources_fit_args
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.detail import Detail
from kubesched.framework.group import Assignments, GroupInfo
from kubesched.framework.plugin import (
    NOTHING_AGAINST,
    PlacementScore,
    PreFilterResult,
    RowFilter,
    RowScore,
    SignaturePreFilter,
    SignaturePreScore,
)
from kubesched.framework.registry import PluginContext
from kubesched.framework.status import SUCCESS, Code, Status
from kubesched.framework.verdict import ALL_PASS, Verdict, first_of, reject
from kubesched.plugins.device_counts import CountedDevices
from kubesched.plugins.device_selectors import compile_selector
from kubesched.plugins.freed_node import IsRowLocal
from kubesched.plugins.node_resources_fit_hints import FitHints
from kubesched.plugins.resource_scoring import (
    Amounts,
    Usage,
    most_allocated,
    strategy_scorer,
    usages,
    wanted_resources,
    weighted_mean,
)
from kubesched.plugins.row_scoring import least_allocated_row
from kubesched.queue.hints import Registrations

TOO_MANY_PODS = "Too many pods"
INT64_BITS = 63


class NodeResourcesFit(SignaturePreFilter, RowFilter, SignaturePreScore, RowScore, PlacementScore):
    """Compares requests with free resources."""

    name = "NodeResourcesFit"
    # Capacities near 2^63 wrap around when they are scored; that is an error, as in kube-scheduler.
    proven_range = False

    def __init__(
        self,
        args: NodeResourcesFitArgs,
        rules: RequestRules,
        cluster: Cluster,
        *,
        is_row_local: IsRowLocal = lambda _: True,
        resizes: bool = False,
    ) -> None:
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._resources = args.scoring_strategy.resources
        self._table = cluster.table
        self._strategy = args.scoring_strategy.type
        self._scorer = strategy_scorer(args.scoring_strategy)
        self._hints = FitHints(
            rules,
            cluster,
            checked=self._checked_requests,
            is_row_local=is_row_local,
            resizes=resizes,
        )

    @classmethod
    def create(cls, context: PluginContext) -> NodeResourcesFit:
        """Create the plugin."""
        args = context.profile.args(cls.name, NodeResourcesFitArgs)
        check_node_resources_fit_args(args)
        scored = args.scoring_strategy.resources
        kind = (
            NodeResourcesFitByDevices if any(may_be_devices(each.name) for each in scored) else cls
        )
        return kind(
            args,
            RequestRules.of(context.gates),
            context.cluster,
            is_row_local=lambda pod: context.evaluator.get().is_row_local_for(pod),
            resizes=context.gates.enabled("InPlacePodVerticalScalingSchedulerPreemption"),
        )

    def events_to_register(self) -> Registrations:
        """A deleted or scaled-down pod, an added or larger node."""
        return self._hints.registrations()

    def pre_filter(self, signature: PodSignature) -> PreFilterResult:  # noqa: ARG002 (every pod takes a place)
        """Filter every pod."""
        return NOTHING_AGAINST

    def filter(self, signature: PodSignature, nodes: NodeRows) -> Verdict:
        """Reject nodes with insufficient resources, naming all of them."""
        full = nodes.pod_count >= nodes.allowed_pods
        lacking: list[tuple[str, BoolArray]] = (
            [(TOO_MANY_PODS, full)] if np.count_nonzero(full) else []
        )
        impossible: BoolArray | None = None
        for name, amount in self._checked_requests(signature):
            number = nodes.table.resources.find(name)
            # Where a node offers none of it, devices may do, which is up to DynamicResources.
            is_delegated = name in nodes.table.device_resources
            if number is None:
                if is_delegated:
                    continue
                short = too_large = np.ones(len(nodes), dtype=np.bool_)
            else:
                allocatable = nodes.allocatable(number)
                short = _wanted(signature, amount) > allocatable - nodes.requested(number)
                if is_delegated:
                    short &= allocatable > 0
                if not np.count_nonzero(short):
                    continue
                too_large = short & (amount > allocatable)
            lacking.append((f"Insufficient {name}", short))
            impossible = too_large if impossible is None else impossible | too_large
        return insufficient(lacking, impossible)

    def row_filter(
        self, signature: PodSignature, table: NodeTable
    ) -> Callable[[int], Status | None]:
        """Compare one row with the requests."""
        checked = [
            (name, amount, _wanted(signature, amount))
            for name, amount in self._checked_requests(signature)
        ]

        def refuse(row: int) -> Status | None:
            lacking: list[str] = []
            code = Code.UNSCHEDULABLE
            if table.pod_count.item(row) >= table.allowed_pods.item(row):
                lacking.append(TOO_MANY_PODS)
            for name, amount, wanted in checked:
                number = table.resources.find(name)
                allocatable = -1 if number is None else table.allocatable.item(number, row)
                if allocatable <= 0 and name in table.device_resources:
                    continue
                if number is None or wanted > allocatable - table.requested.item(number, row):
                    lacking.append(f"Insufficient {name}")
                    if amount > allocatable:
                        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            return Status(code, tuple(lacking)) if lacking else None

        return refuse

    def details(self, state: CycleState, pod: PodInfo, nodes: NodeRows) -> Iterator[Detail]:  # noqa: ARG002
        """Compare requests with free and allocatable amounts; nodes with the most free first."""
        table, rows = nodes.table, nodes.row_numbers()
        full = nodes.pod_count >= nodes.allowed_pods
        for allowed, here in _by_value(rows[full], nodes.allowed_pods[full]):
            yield Detail(
                f"{allowed} pods is the node's limit",
                {"resource": names.PODS, "allocatable": allowed, "free": 0},
                TOO_MANY_PODS,
                here,
            )
        for name, amount in self._checked_requests(pod.signature):
            number = table.resources.find(name)
            if number is None:
                offered = free = np.zeros(len(nodes), dtype=np.int64)
            else:
                offered = nodes.allocatable(number)
                free = offered - nodes.requested(number)
            short = _wanted(pod.signature, amount) > free
            if name in table.device_resources:
                short &= offered > 0
            yield from _shortages(name, amount, rows[short], free[short], offered[short])

    def row_scorer(
        self, signature: PodSignature, table: NodeTable
    ) -> Callable[[int], int | None] | None:
        """Score one row, with the default strategy only."""
        if self._strategy != LEAST_ALLOCATED:
            return None
        return least_allocated_row(self._resources, signature.scoring_requests, table)

    def pre_score(self, signature: PodSignature) -> Status:  # noqa: ARG002 (pods without requests count too)
        """Score every pod."""
        return SUCCESS

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Score by the configured strategy."""
        wanted = wanted_resources(self._resources, signature.scoring_requests, nodes.table)
        return self._scorer(usages(wanted, nodes, non_zero=True), len(nodes))

    def score_placement(self, group: GroupInfo, placed: Assignments) -> tuple[int, Status]:  # noqa: ARG002
        """Score the share of the placement's resources that would be used, with any strategy.

        All nodes of the placement count as one, on which all pods of the group are.
        """
        return self._shares(_requests_of(placed.pods()), [placed])[0], SUCCESS

    def score_placements(
        self,
        group: GroupInfo,  # noqa: ARG002
        placed: Sequence[Assignments],
    ) -> tuple[Sequence[int], Status]:
        """Score placements on which the same pods are at once, usually all of them."""
        scores: list[int] = []
        for pods, some in groupby(placed, Assignments.pods):
            scores += self._shares(_requests_of(pods), [*some])
        return scores, SUCCESS

    def _shares(self, requests: dict[str, int], placed: Sequence[Assignments]) -> list[int]:
        """Return the used share of each placement's resources, with some requests in it."""
        rows = [each.placement.in_order(self._table.order) for each in placed]
        nodes = NodeRows(self._table, np.concatenate(rows))
        wanted = wanted_resources(self._resources, requests, self._table)
        sizes = np.array([len(each) for each in rows])
        used = [_in_all(each, sizes) for each in usages(wanted, nodes, non_zero=True)]
        shares: list[int] = weighted_mean(used, len(rows), most_allocated).tolist()
        return shares

    def _checked_requests(self, signature: PodSignature) -> list[tuple[str, int]]:
        """Return the checked requests: cpu, memory, ephemeral storage first, as in messages."""
        amounts = signature.requests.amounts
        first = [name for name in BASIC_RESOURCES if amounts.get(name, 0) > 0]
        others = [
            name
            for name, amount in amounts.items()
            if amount and name not in BASIC_RESOURCES and not self._is_ignored(name)
        ]
        return [(name, amounts[name]) for name in (*first, *others)]

    def _is_ignored(self, name: str) -> bool:
        return is_extended_resource(name) and (
            name in self._ignored or name.split("/", 1)[0] in self._ignored_groups
        )


def _wanted(signature: PodSignature, amount: int) -> int:
    """Return the additional requests of a pod; a deferred resize counts on its node already."""
    return 0 if signature.is_resize else amount


class NodeResourcesFitByDevices(NodeResourcesFit):
    """NodeResourcesFit whose scores count devices: they change as devices are allocated."""

    def __init__(
        self,
        args: NodeResourcesFitArgs,
        rules: RequestRules,
        cluster: Cluster,
        *,
        is_row_local: IsRowLocal = lambda _: True,
        resizes: bool = False,
    ) -> None:
        super().__init__(args, rules, cluster, is_row_local=is_row_local, resizes=resizes)
        self._devices = CountedDevices(cluster.table, cluster.devices, compile_selector)

    def epoch(self, signature: PodSignature, table: NodeTable) -> Hashable:  # noqa: ARG002
        """Return the state of devices, if the pod requests some by another name."""
        requests = signature.scoring_requests
        return self._devices.epoch(
            [each.name for each in self._resources if requests.get(each.name)]
        )

    def row_scorer(self, signature: PodSignature, table: NodeTable) -> None:  # noqa: ARG002
        """Return None: arrays score devices."""
        return

    def score(self, signature: PodSignature, nodes: NodeRows) -> Int64Array:
        """Score by the configured strategy."""
        requests = signature.scoring_requests
        wanted = wanted_resources(self._resources, requests, nodes.table, self._devices.of)
        return self._scorer(usages(wanted, nodes, non_zero=True), len(nodes))


BASIC_RESOURCES = (names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE)


def _shortages(
    name: str, amount: int, rows: IndexArray, free: Int64Array, offered: Int64Array
) -> Iterator[Detail]:
    """Return how much rows have of a resource, those with the most first."""
    alike: dict[tuple[int, int], list[int]] = {}
    for row, *key in zip(rows.tolist(), free.tolist(), offered.tolist(), strict=True):
        alike.setdefault((key[0], key[1]), []).append(row)
    for (left, whole), here in sorted(alike.items(), key=lambda item: (-item[0][0], -item[0][1])):
        asked, shown, of = compared(name, amount, max(left, 0), whole)
        overcommitted = f", {compared(name, -left)[0]} overcommitted" if left < 0 else ""
        text = f"{asked} requested, {shown} of {of} free{overcommitted}"
        if not whole:
            text = f"{asked} requested, the node has none"
        values = {
            "resource": name,
            "requested": quantity(name, amount),
            "free": quantity(name, left),
            "allocatable": quantity(name, whole),
        }
        yield Detail(text, values, f"Insufficient {name}", tuple(here))


def _by_value(rows: IndexArray, values: Int64Array) -> Iterator[tuple[int, tuple[int, ...]]]:
    for value in np.unique(values).tolist():
        yield value, tuple(rows[values == value].tolist())


def _requests_of(pods: Sequence[PodInfo]) -> dict[str, int]:
    """Return what pods request together, as scores count it."""
    requests: Counter[str] = Counter()
    for signature, count in Counter(pod.signature for pod in pods).items():
        for name, amount in signature.scoring_requests.items():
            requests[name] += amount * count
    return dict(requests)


def _in_all(used: Usage, sizes: Int64Array) -> Usage:
    """Return one resource summed over rows, of which the first so many belong together, and so on.

    Rows that offer none of it do not count.
    """
    ends = np.cumsum(sizes)

    def summed(amounts: Amounts) -> Int64Array:
        sums = np.concatenate([[0], np.cumsum(amounts, dtype=np.int64)])
        return sums[ends] - sums[ends - sizes]

    allocatable = summed(used.allocatable)
    requested = summed(np.where(used.allocatable != 0, used.requested, 0))
    return Usage(
        allocatable,
        np.maximum(allocatable, 1),
        requested,
        bool(allocatable.all()),
        used.request,
        used.weight,
    )


def insufficient(lacking: Sequence[tuple[str, BoolArray]], impossible: BoolArray | None) -> Verdict:
    """Return one status per row: bit k of a row's key means that resource k is insufficient."""
    if not lacking or not len(lacking[0][1]):
        return ALL_PASS
    flags = [short for _, short in lacking]
    if len(flags) == 1:
        return _lack_of_one(lacking[0], impossible)
    flags.append(np.zeros_like(flags[0]) if impossible is None else impossible)
    # Sorting whole columns is slow, but pods do not request that many resources.
    keys = _as_bits(flags) if len(flags) < INT64_BITS else np.array(flags).T
    distinct, answers = np.unique(keys, axis=0, return_inverse=True)
    passes = int(not np.any(distinct[0]))
    statuses = tuple(_status(key, lacking) for key in distinct[passes:])
    return Verdict(answers + (1 - passes), statuses)


def _lack_of_one(lack: tuple[str, BoolArray], impossible: BoolArray | None) -> Verdict:
    reason, short = lack
    if impossible is None or not impossible.any():
        return reject(short, Status(Code.UNSCHEDULABLE, (reason,)))
    never = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
    return first_of(reject(impossible, never), reject(short, Status(Code.UNSCHEDULABLE, (reason,))))


def _as_bits(flags: Sequence[BoolArray]) -> Int64Array:
    keys = np.zeros(len(flags[0]), dtype=np.int64)
    for bit, flag in enumerate(flags):
        keys |= flag.astype(np.int64) << bit
    return keys


def _status(key: np.int64 | BoolArray, lacking: Sequence[tuple[str, BoolArray]]) -> Status:
    if isinstance(key, np.ndarray):
        flags = key.tolist()
    else:
        flags = [bool(int(key) >> bit & 1) for bit in range(len(lacking) + 1)]
    reasons = tuple(reason for (reason, _), flag in zip(lacking, flags, strict=False) if flag)
    unresolvable = flags[-1]
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE
    return Status(code, reasons)
