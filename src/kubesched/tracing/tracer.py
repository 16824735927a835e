"""Makes spans of what the scheduler does: an observer of attempts, plugins and requests.

The attempt in progress is in a context variable. Tasks inherit it, so a plugin that waits and a
request that is sent while a pod is bound find the attempt that they belong to, although many
bindings are under way. What is done after the attempt ended belongs to none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Final

from kubesched.api.core import Pod
from kubesched.clock import Clock
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.group import GroupInfo
from kubesched.framework.observing import Sample
from kubesched.framework.status import Code, Status
from kubesched.observer import AttemptResult, GroupMemberResult, SchedulerObserver
from kubesched.queue.queued_pod import QueuedPod
from kubesched.tracing.spans import CLIENT, Attributes, SpanIds, SpanRecord

_SECOND_NS: Final = 1_000_000_000
#: Successful work that takes less has no span: it is part of what is around it.
SHORTEST_S: Final = 10e-6


_AS_EXPECTED: Final = (Code.SUCCESS, Code.SKIP)


class _TracedAttempt:
    """A sampled attempt."""

    __slots__ = (
        "about",
        "binding_id",
        "cycle_id",
        "decided_ns",
        "has_ended",
        "is_group",
        "is_member",
        "parent_id",
        "point_id",
        "root_id",
        "start_ns",
        "trace_id",
    )

    def __init__(self, ids: SpanIds, start_ns: int) -> None:
        self.trace_id = ids.trace()
        self.root_id, self.cycle_id, self.binding_id = ids.span(), ids.span(), ids.span()
        #: of the span that is in progress
        self.parent_id = self.cycle_id
        #: of the extension point in progress, once one of its plugins has ended
        self.point_id = b""
        self.start_ns = self.decided_ns = start_ns
        #: attributes of the attempt, known when it is decided
        self.about: Attributes = ()
        self.has_ended = False
        #: whether it is an attempt at a group, or one member of a group that was decided
        self.is_group = self.is_member = False

    def of_member(self, ids: SpanIds, now_ns: int) -> _TracedAttempt:
        """Return the part of a group's trace in which one member is bound."""
        member = _TracedAttempt(ids, now_ns)
        member.trace_id, member.root_id = self.trace_id, self.root_id
        member.parent_id, member.is_member = member.binding_id, True
        return member


class AttemptTracer(SchedulerObserver):
    """Traces a share of all attempts."""

    def __init__(
        self, add: Callable[[SpanRecord], None], clock: Clock, *, share: float, seed: int = 3
    ) -> None:
        """`add` takes spans that have ended."""
        self._add = add
        self._now = clock.monotonic
        #: from the monotonic clock to the time of day
        self._offset_s = clock.time() - clock.monotonic()
        self._ids = SpanIds()
        self._sample = Sample(share, seed=seed)
        self._current: ContextVar[_TracedAttempt | None] = ContextVar("attempt", default=None)
        #: returns the attempt in progress if it is traced
        self.current: Callable[[], _TracedAttempt | None] = self._current.get
        self._is_detached = False
        #: whether the last attempt that began is traced
        self.is_sampled = False

    def detach(self) -> None:
        """Trace nothing in a forked copy."""
        self._is_detached = True

    def _ns(self, at_s: float) -> int:
        return int((at_s + self._offset_s) * _SECOND_NS)

    # --- attempts ---------------------------------------------------------------------------

    def deciding(self) -> None:
        """Begin a trace, if the attempt is one of the sample."""
        sample = self._sample
        sample.left -= 1
        if sample.left or self._is_detached:
            if self.is_sampled:
                self.is_sampled = False
                self._current.set(None)
            return
        sample.draw()
        self.is_sampled = True
        self._current.set(_TracedAttempt(self._ids, self._ns(self._now())))

    def asking(self, profile: str, pod: Pod) -> None:  # noqa: ARG002 (the base's)
        """Begin a trace, if the attempt is one of the sample."""
        self.deciding()

    def decided(self, profile: str, pod: QueuedPod, result: AttemptResult) -> None:
        """End the scheduling cycle, and the attempt if there is no node."""
        attempt = self._traced()
        if attempt is None:
            return
        meta, status = pod.info.pod.metadata, result.status
        counts = (
            ("nodes.evaluated", result.evaluated_nodes),
            ("nodes.feasible", result.feasible_nodes),
        )
        self._end_cycle(attempt, counts)
        attempt.about = (
            ("k8s.pod.name", meta.name),
            ("k8s.namespace.name", meta.namespace),
            ("k8s.pod.uid", meta.uid),
            ("scheduler.profile", profile),
            ("scheduler.attempt", pod.attempts),
        )
        if result.node_name:
            attempt.about += (("k8s.node.name", result.node_name),)
        else:
            self._end(attempt, status.code.label, _error(status))

    def group_decided(
        self, profile: str, group: GroupInfo, members: Sequence[tuple[QueuedPod, GroupMemberResult]]
    ) -> None:
        """End the attempt at a group; its members are bound one by one, each with its own span."""
        attempt = self._traced()
        if attempt is None:
            return
        placed = sum(result.binds for _, result in members)
        self._end_cycle(attempt, ())
        attempt.about = (
            ("scheduler.group", str(group.key)),
            ("scheduler.profile", profile),
            ("scheduler.members", len(members)),
            ("scheduler.members.placed", placed),
        )
        attempt.is_group = True
        self._end(attempt, "Success" if placed else "Unschedulable", "")

    def binding(self, pod: QueuedPod) -> None:
        """Begin the binding cycle; each member of a group has its own."""
        attempt = self._current.get()
        if attempt is not None and attempt.is_group:
            member = attempt.of_member(self._ids, self._ns(self._now()))
            meta = pod.info.pod.metadata
            member.about = (("k8s.pod.name", meta.name), ("k8s.namespace.name", meta.namespace))
            self._current.set(member)

    def raised(self, pod: QueuedPod, bug: Exception) -> None:
        """End the attempt with a bug."""
        attempt = self._traced()
        if attempt is not None:
            attempt.about = attempt.about or (("k8s.pod.uid", pod.info.uid),)
            self._end(attempt, "Error", f"{type(bug).__name__}: {bug}")

    def bound(self, pod: QueuedPod, node_name: str) -> None:  # noqa: ARG002 (the base's)
        """End the binding cycle and the attempt."""
        self._end_binding("Success", "")

    def returned(self, pod: PodInfo, status: Status) -> None:  # noqa: ARG002 (the base's)
        """End the binding cycle and the attempt with a failure."""
        self._end_binding(status.code.label, status.message)

    def _traced(self) -> _TracedAttempt | None:
        attempt = self._current.get()
        return None if attempt is None or attempt.has_ended else attempt

    def _end_cycle(self, attempt: _TracedAttempt, about: Attributes) -> None:
        attempt.decided_ns = self._ns(self._now())
        attempt.parent_id, attempt.point_id = attempt.binding_id, b""
        self._add(
            SpanRecord(
                "SchedulingCycle",
                attempt.trace_id,
                attempt.cycle_id,
                attempt.root_id,
                attempt.start_ns,
                attempt.decided_ns,
                about,
            )
        )

    def _end_binding(self, result: str, error: str) -> None:
        attempt = self._traced()
        if attempt is None:
            return
        now_ns = self._ns(self._now())
        self._add(
            SpanRecord(
                "BindingCycle",
                attempt.trace_id,
                attempt.binding_id,
                attempt.root_id,
                attempt.decided_ns,
                now_ns,
                attempt.about if attempt.is_member else (),
                error,
            )
        )
        if attempt.is_member:
            attempt.has_ended = True
        else:
            self._end(attempt, result, error)

    def _end(self, attempt: _TracedAttempt, result: str, error: str) -> None:
        attempt.has_ended = True
        self._add(
            SpanRecord(
                "Attempt",
                attempt.trace_id,
                attempt.root_id,
                b"",
                attempt.start_ns,
                self._ns(self._now()),
                (*attempt.about, ("scheduler.result", result)),
                error,
            )
        )

    # --- plugins ----------------------------------------------------------------------------

    def called(self, plugin: str, code: Code, started_s: float, ended_s: float) -> None:
        """Record a plugin's work at the extension point in progress; one that skips had none."""
        if ended_s - started_s < SHORTEST_S and code in _AS_EXPECTED:
            return
        attempt = self._traced()
        if attempt is None or code is Code.SKIP:
            return
        if not attempt.point_id:
            attempt.point_id = self._ids.span()
        self._add_work(
            plugin, attempt, self._ids.span(), attempt.point_id, (started_s, ended_s, code)
        )

    def passed(self, point: str, code: Code, started_s: float, ended_s: float) -> None:
        """Record the end of an extension point."""
        attempt = self._traced()
        if attempt is None:
            return
        if attempt.point_id or ended_s - started_s >= SHORTEST_S or code not in _AS_EXPECTED:
            span_id, attempt.point_id = attempt.point_id or self._ids.span(), b""
            self._add_work(point, attempt, span_id, attempt.parent_id, (started_s, ended_s, code))

    def _add_work(
        self,
        name: str,
        attempt: _TracedAttempt,
        span_id: bytes,
        parent_id: bytes,
        work: tuple[float, float, Code],
    ) -> None:
        started_s, ended_s, code = work
        self._add(
            SpanRecord(
                name,
                attempt.trace_id,
                span_id,
                parent_id,
                self._ns(started_s),
                self._ns(ended_s),
                () if code is Code.SUCCESS else (("scheduler.code", code.label),),
            )
        )

    # --- requests ---------------------------------------------------------------------------

    def begin_request(self, method: str, path: str) -> TracedRequest | None:
        """Return the trace of a request, None if it belongs to no traced attempt."""
        attempt = self._traced()
        return None if attempt is None else TracedRequest(self, attempt, method, path)

    def ended(self, request: TracedRequest, code: int) -> None:
        """Record the end of a request; code 0: there was no answer."""
        attempt = request.attempt
        self._add(
            SpanRecord(
                f"HTTP {request.method}",
                attempt.trace_id,
                request.span_id,
                request.parent_id,
                self._ns(request.started_s),
                self._ns(self._now()),
                (
                    ("http.request.method", request.method),
                    ("url.path", request.path.partition("?")[0]),
                    ("http.response.status_code", code),
                ),
                "" if 0 < code < 400 else f"HTTP {code}" if code else "no answer",
                CLIENT,
            )
        )

    def new_request(self) -> tuple[bytes, float]:
        """Return a span id, and the time."""
        return self._ids.span(), self._now()


class TracedRequest:
    """A request of a traced attempt."""

    __slots__ = ("_tracer", "attempt", "method", "parent_id", "path", "span_id", "started_s")

    def __init__(
        self, tracer: AttemptTracer, attempt: _TracedAttempt, method: str, path: str
    ) -> None:
        self._tracer = tracer
        self.attempt = attempt
        self.method, self.path = method, path
        self.parent_id = attempt.parent_id
        self.span_id, self.started_s = tracer.new_request()

    @property
    def header(self) -> str:
        """The header line by which the API server continues the trace: W3C's traceparent."""
        return f"traceparent: 00-{self.attempt.trace_id.hex()}-{self.span_id.hex()}-01\r\n"

    def end(self, code: int) -> None:
        """Record the end; code 0: there was no answer."""
        self._tracer.ended(self, code)


def _error(status: Status) -> str:
    return "" if status.rejected else status.message
