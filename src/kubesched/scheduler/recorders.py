"""Records events on pods, each from the scheduler that the pod names."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.api.core import Pod
from kubesched.client.event_wire import EventType
from kubesched.client.events import EventRecorder
from kubesched.client.meta import ObjectReference


class Recorders:
    """The recorders of all profiles, by scheduler name."""

    def __init__(self, recorders: Mapping[str, EventRecorder]) -> None:
        self._recorders = recorders

    def normal(self, pod: Pod, *, reason: str, action: str, note: str) -> None:
        """Record an event of type Normal."""
        self._record(pod, "Normal", reason=reason, action=action, note=note)

    def warning(self, pod: Pod, *, reason: str, action: str, note: str) -> None:
        """Record an event of type Warning."""
        self._record(pod, "Warning", reason=reason, action=action, note=note)

    def preempted(
        self, victim: Pod, *, by: ObjectReference, scheduler_name: str, note: str
    ) -> None:
        """Record the preemption of a victim, from the preemptor's scheduler."""
        recorder = self._recorders.get(scheduler_name)
        if recorder is not None:
            recorder.record(
                reference(victim),
                "Preempted",
                type="Normal",
                action="Preempting",
                note=note,
                related=by,
            )

    def _record(self, pod: Pod, kind: EventType, *, reason: str, action: str, note: str) -> None:
        recorder = self._recorders.get(pod.spec.scheduler_name)
        if recorder is not None:
            recorder.record(reference(pod), reason, type=kind, action=action, note=note)


def reference(pod: Pod) -> ObjectReference:
    """Return a reference to a pod, as events carry it."""
    meta = pod.metadata
    return ObjectReference(
        kind="Pod",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        api_version="v1",
        resource_version=meta.resource_version,
    )
