"""All configured extenders, as the scheduling and binding cycles call them.

    filter      in sequence, each with the nodes that the ones before it left
    prioritize  concurrently, scores are summed
    bind        the first that binds such pods, instead of the Bind plugins
    preempt     in sequence, each with the candidates that the ones before it left

Ignorable extenders come last; their failures are logged and ignored. Failures of the others are
raised as ClientError, except in prioritize, where every failure is ignored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Raw, Struct

from kubesched.api.core import Pod
from kubesched.config.extenders import calling_order
from kubesched.config.types import Extender
from kubesched.errors import ClientError, ExtenderError
from kubesched.framework.plugin import MAX_NODE_SCORE
from kubesched.framework.status import Status, unresolvable, unschedulable
from kubesched.scheduler import extender_wire as wire
from kubesched.scheduler.extender_http import HttpExtender
from kubesched.scheduler.extender_objects import ObjectSource, finish_all

_log = logging.getLogger(__name__)

#: Extenders score from 0 to this.
MAX_EXTENDER_PRIORITY: Final = 10

_SCALE: Final = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY


class ExtenderVerdict(Struct, frozen=True):
    """The nodes that the extenders left, and why they rejected the others."""

    #: in the order in which they were given
    feasible: list[str]
    #: rejected nodes for which an extender gave a reason
    rejected: dict[str, Status]


class Victims(Struct, frozen=True):
    """The victims on one node."""

    pods: Sequence[Pod]
    num_pdb_violations: int = 0


#: All pods on a node, None if there is no such node.
PodsOnNode = Callable[[str], Iterable[Pod] | None]


class Extenders(Protocol):
    """The calls of a scheduling cycle; failures are raised as ClientError."""

    #: whether any extender filters, preempts or scores, for any pods
    has_filters: bool
    has_preemptors: bool
    has_prioritizers: bool

    async def filter(self, pod: Pod, node_names: Sequence[str]) -> ExtenderVerdict:
        """Return the nodes that are feasible for the pod."""

    async def prioritize(self, pod: Pod, node_names: Sequence[str]) -> dict[str, int]:
        """Return the scores of nodes, in the scheduler's scale."""

    async def preempt(
        self, pod: Pod, candidates: Mapping[str, Victims], *, pods_on: PodsOnNode
    ) -> dict[str, Victims]:
        """Return the candidates that are left, with their victims."""


class BindingExtenders(Extenders, Protocol):
    """The calls of scheduling and binding cycles."""

    async def bind(self, pod: Pod, node_name: str) -> bool:
        """Have an extender bind the pod; False if none does: then plugins bind it."""


class HttpExtenders:
    """The configured extenders; false if there are none."""

    def __init__(
        self,
        configs: Sequence[Extender],
        objects: ObjectSource,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Raise ConfigError for an address or a certificate that cannot be used."""
        self._objects = objects
        self._extenders = tuple(
            HttpExtender(
                config, where=f"extenders[{configs.index(config)}]", environment=environment
            )
            for config in calling_order(configs)
        )
        self.has_filters = any(extender.filters for extender in self._extenders)
        self.has_preemptors = any(extender.preempts for extender in self._extenders)
        self.has_prioritizers = any(extender.prioritizes for extender in self._extenders)
        #: number of callers that wait for a response
        self._waiting = 0
        #: set when one of them got its response
        self._answered = asyncio.Event()

    def __len__(self) -> int:
        return len(self._extenders)

    async def aclose(self) -> None:
        """Close all connections; pending requests fail."""
        await asyncio.gather(*(extender.aclose() for extender in self._extenders))

    async def wait_until_unused(self) -> None:
        """Wait until no caller waits for a response, not even for one to a follow-up request."""
        while self._waiting:
            self._answered.clear()
            await self._answered.wait()

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            self._answered.set()

    def _interested(self, pod: Pod) -> list[HttpExtender]:
        return [extender for extender in self._extenders if extender.is_interested(pod)]

    # --- scheduling cycle -------------------------------------------------------------------

    async def filter(self, pod: Pod, node_names: Sequence[str]) -> ExtenderVerdict:
        """Have the extenders filter nodes."""
        with self._in_use():
            return await self._filter(pod, node_names)

    async def _filter(self, pod: Pod, node_names: Sequence[str]) -> ExtenderVerdict:
        feasible = list(node_names)
        given = frozenset(feasible)
        rejected: dict[str, Status] = {}
        for extender in self._interested(pod):
            if not feasible:
                break
            if not extender.filters:
                continue
            try:
                arguments = await self._arguments(extender, pod, feasible)
                answer = await extender.filter(arguments, feasible)
            except ClientError as error:
                _pass_over(extender, error, what="Skipping extender")
                continue
            statuses = _statuses(answer)
            rejected |= {node: status for node, status in statuses.items() if node in given}
            feasible = answer.nodes or []
        return ExtenderVerdict(feasible, rejected)

    async def prioritize(self, pod: Pod, node_names: Sequence[str]) -> dict[str, int]:
        """Sum the scores of the extenders, in the scheduler's scale.

        A node is in the result if any extender scored it, even with 0; an extender that is
        interested in the pod but does not score counts as 0 for all.
        """
        interested = self._interested(pod) if node_names else []
        scoring = [extender for extender in interested if extender.prioritizes]
        has_silent = len(scoring) < len(interested)
        totals = dict.fromkeys(node_names, 0) if has_silent else {}
        given = frozenset(node_names)
        with self._in_use():
            answers = await self._ask_for_scores(scoring, pod, node_names)
        for extender, answer in zip(scoring, answers, strict=True):
            for node, score in answer:
                if node in given:
                    total = totals.get(node, 0) + score * extender.weight * _SCALE
                    totals[node] = _wrapped(total)
        return totals

    async def _ask_for_scores(
        self, extenders: Sequence[HttpExtender], pod: Pod, node_names: Sequence[str]
    ) -> list[list[tuple[str, int]]]:
        # The same body serves all extenders that take nodes in the same form, concurrently.
        arguments: dict[bool, bytes | ClientError] = {}
        for extender in extenders:
            if extender.node_cache_capable not in arguments:
                try:
                    made: bytes | ClientError = await self._arguments(extender, pod, node_names)
                except ClientError as error:
                    made = error
                arguments[extender.node_cache_capable] = made
        return await asyncio.gather(
            *(
                _scores(extender, pod, arguments[extender.node_cache_capable])
                for extender in extenders
            )
        )

    async def _arguments(
        self, extender: HttpExtender, pod: Pod, node_names: Sequence[str]
    ) -> bytes:
        whole_pod = Raw(await self._objects.pod_json(pod))
        if extender.node_cache_capable:
            return wire.encode(wire.ExtenderArgs(pod=whole_pod, node_names=node_names))
        nodes = wire.node_list(await self._objects.nodes_json(node_names))
        return wire.encode(wire.ExtenderArgs(pod=whole_pod, nodes=nodes))

    # --- binding cycle ----------------------------------------------------------------------

    def binder(self, pod: Pod) -> HttpExtender | None:
        """Return the extender that binds the pod."""
        return next((extender for extender in self._interested(pod) if extender.binds), None)

    async def bind(self, pod: Pod, node_name: str) -> bool:
        """Have an extender bind the pod; False if none does: then plugins bind it."""
        for extender in self._interested(pod):
            if not extender.binds:
                continue
            try:
                with self._in_use():
                    await extender.bind(pod, node_name)
            except ClientError as error:
                _pass_over(extender, error, what="Skipping extender in bind")
                continue
            return True
        return False

    # --- preemption -------------------------------------------------------------------------

    async def preempt(
        self, pod: Pod, candidates: Mapping[str, Victims], *, pods_on: PodsOnNode
    ) -> dict[str, Victims]:
        """Have the extenders filter candidates and victims."""
        victims = dict(candidates)
        for extender in self._interested(pod):
            if not victims:
                break
            if not extender.preempts:
                continue
            try:
                with self._in_use():
                    victims = await self._preempt_with(extender, pod, victims, pods_on)
            except ClientError as error:
                _pass_over(extender, error, what="Skipped extender", level=logging.DEBUG)
        return victims

    async def _preempt_with(
        self,
        extender: HttpExtender,
        pod: Pod,
        victims: Mapping[str, Victims],
        pods_on: PodsOnNode,
    ) -> dict[str, Victims]:
        answer = await extender.preempt(await self._preemption_arguments(extender, pod, victims))
        narrowed: dict[str, Victims] = {}
        # Known nodes first, in their order: an extender's response has none.
        known = [node for node in victims if node in answer]
        for node in (*known, *(node for node in answer if node not in victims)):
            found = _found_victims(extender, node, answer[node], pods_on)
            if found.pods:
                narrowed[node] = found
            elif extender.ignorable:
                _log.debug(
                    "Ignored node for which the extender didn't report victims: "
                    "node=%s extender=%s",
                    node,
                    extender.name,
                )
            else:
                raise ExtenderError(f'expected at least one victim pod on node "{node}"')
        return narrowed

    async def _preemption_arguments(
        self, extender: HttpExtender, pod: Pod, victims: Mapping[str, Victims]
    ) -> bytes:
        whole_pod = Raw(await self._objects.pod_json(pod))
        by_node = sorted(victims.items())  # as Go writes maps
        if extender.node_cache_capable:
            by_uid = {
                node: wire.MetaVictims(
                    pods=tuple(wire.MetaPod(uid=pod.metadata.uid) for pod in each.pods),
                    num_pdb_violations=each.num_pdb_violations,
                )
                for node, each in by_node
            }
            return wire.encode(
                wire.ExtenderPreemptionArgs(pod=whole_pod, node_name_to_meta_victims=by_uid)
            )
        whole = {
            node: wire.FullVictims(
                pods=[Raw(text) for text in await self._whole_pods(each.pods)],
                num_pdb_violations=each.num_pdb_violations,
            )
            for node, each in by_node
        }
        return wire.encode(wire.ExtenderPreemptionArgs(pod=whole_pod, node_name_to_victims=whole))

    async def _whole_pods(self, pods: Iterable[Pod]) -> list[bytes]:
        return await finish_all(map(self._objects.pod_json, pods))


def _pass_over(
    extender: HttpExtender, error: ClientError, *, what: str, level: int = logging.INFO
) -> None:
    """Log the failure of an ignorable extender, raise that of another."""
    if not extender.ignorable:
        raise error
    _log.log(
        level,
        "%s as it returned error and has ignorable flag set: extender=%s err=%s",
        what,
        extender.name,
        error,
    )


def _statuses(answer: wire.FilterAnswer) -> dict[str, Status]:
    """Return the statuses of the nodes that an extender rejected; the last one counts."""
    return {
        **{node: unschedulable(message) for node, message in answer.failed.items()},
        **{node: unresolvable(message) for node, message in answer.unresolvable.items()},
    }


async def _scores(
    extender: HttpExtender, pod: Pod, arguments: bytes | ClientError
) -> list[tuple[str, int]]:
    """Return the scores of an extender; none if it fails."""
    try:
        if isinstance(arguments, ClientError):
            raise arguments
        return await extender.prioritize(arguments)
    except ClientError as error:
        _log.debug(
            "Failed to run extender's priority function. No score given by this extender.: "
            "err=%s pod=%s/%s extender=%s",
            error,
            pod.metadata.namespace,
            pod.metadata.name,
            extender.name,
        )
        return []


def _found_victims(
    extender: HttpExtender, node: str, claimed: wire.MetaVictims, pods_on: PodsOnNode
) -> Victims:
    """Return the victims that an extender named by their uids."""
    pods = pods_on(node)
    if pods is None:
        raise ExtenderError(f'nodeinfo not found for node name "{node}"')
    by_uid = {pod.metadata.uid: pod for pod in pods}
    for each in claimed.pods:
        if each.uid not in by_uid:
            # The braces are kube-scheduler's: it prints the whole entry.
            raise ExtenderError(
                f"extender: {extender.name} claims to preempt pod (UID: &{{{each.uid}}}) "
                f"on node: {node}, but the pod is not found on that node"
            )
    return Victims([by_uid[each.uid] for each in claimed.pods], claimed.num_pdb_violations)


def _wrapped(number: int) -> int:
    """Wrap a sum to 64 bits as Go does, so that no response can break the arithmetic."""
    return (number + 2**63) % 2**64 - 2**63
