"""Tells the history of a pod: follows the state of a recording, and notes what concerns the pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from kubesched import garbage
from kubesched.api.core import Pod, PodSpec
from kubesched.cluster.pod_groups import named_group
from kubesched.cluster.pod_info import RequestRules
from kubesched.config.extenders import with_extender_effects
from kubesched.config.types import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.history.attempts import claims_of, devices_of, known_at, victims_of
from kubesched.history.mentions import TELL_EVERY, Mentions, Progress
from kubesched.history.report import (
    AttemptKnown,
    EventKind,
    GroupAttempt,
    HistoryEvent,
    PodHistory,
    PodLife,
)
from kubesched.plugins.in_tree import IN_TREE
from kubesched.recording.entries import (
    Answered,
    AnyEntry,
    Asking,
    Assumed,
    CheckpointEnd,
    ClaimDecided,
    Configured,
    Decided,
    Entry,
    Forgotten,
    Gone,
    GroupDecided,
    Moved,
    Nominated,
    Pending,
    Put,
    Raised,
    Removed,
    Returned,
    Unnominated,
    VolumeAssumed,
)
from kubesched.recording.reader import Recording
from kubesched.replay.deciding import Decider, configuration_of, gates_of
from kubesched.replay.replaying import shown
from kubesched.replay.state import ReplayState


class _Life:
    """One pod, as far as it is followed."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        #: as last recorded
        self.pod: Pod | None = None
        self.node = ""
        self.is_assumed = False
        self.attempts = 0
        self.group = ""
        self.events: list[HistoryEvent] = []


class PodHistorian:
    """Follows a recording, and writes down what happens to some pods."""

    def __init__(
        self,
        recording: Recording,
        mentions: Mentions,
        *,
        registry: Registry = IN_TREE,
        progress: Progress = lambda _: None,
    ) -> None:
        """`progress` is called from time to time with the number of entries done."""
        self._recording = recording
        self._last = mentions.last
        self._progress = progress
        self._gates = gates_of(recording.header.gates)
        self._number, self._entries = recording.state(before=mentions.first)
        self._state = ReplayState(RequestRules.of(self._gates))
        self._cluster = self._state.cluster
        config = self._configuration(recording.header_at(self._number).config)
        self._decider = Decider(self._cluster, config, self._gates, registry)
        self._lives = {uid: _Life(uid) for uid in mentions.uids}
        self._is_checkpoint = True
        #: uid of the pod that extenders are asked about, and their answers
        self._asked = ""
        self._answers: list[Answered] = []
        self._at = 0
        #: entries that are told before, and after, the state has changed
        self._before: dict[type[Entry], Callable[[Any], None]] = {
            Asking: self._asking,
            Answered: self._answered,
            Decided: self._decided,
            GroupDecided: self._group_decided,
            Raised: self._raised,
            Returned: self._returned,
            Moved: self._moved,
            Forgotten: self._forgotten,
            Unnominated: self._unnominated,
            Gone: self._gone,
            Removed: self._removed,
            ClaimDecided: self._claim_decided,
            Configured: self._configured,
        }
        self._after: dict[type[Entry], Callable[[Any], None]] = {
            Put: self._put,
            Pending: self._pending,
            Assumed: self._assumed,
            Nominated: self._nominated,
            VolumeAssumed: self._volume_assumed,
        }

    def tell(self, namespace: str, name: str) -> PodHistory:
        """Return the history; raises ObjectError if the recording cannot be read."""
        with garbage.paused():
            for entry in self._entries:
                self._take(entry)
                if self._is_checkpoint:
                    self._is_checkpoint = not isinstance(entry, CheckpointEnd)
                    continue
                if self._number >= self._last:
                    break
                self._number += 1
                if self._number % TELL_EVERY == 0:
                    self._progress(self._number)
        recording = self._recording
        return PodHistory(
            pod=f"{namespace}/{name}",
            recording=str(recording.parts[-1].path),
            start=shown(recording.start),
            end=shown(recording.end),
            lives=tuple(_told(life) for life in self._lives.values()),
            redacted=recording.header.redacted,
            notes=tuple(_notes(recording)),
        )

    def _take(self, entry: AnyEntry) -> None:
        self._at = max(self._at, entry.at)
        kind = type(entry)
        before = self._before.get(kind)
        if before is not None:
            before(entry)
        self._state.apply(entry)
        after = self._after.get(kind)
        if after is not None:
            after(entry)

    def _note(self, life: _Life, kind: EventKind, text: str, **details: Any) -> None:  # noqa: ANN401 (fields of an event)
        event = HistoryEvent(entry=self._number, time=self._time(), kind=kind, text=text, **details)
        life.events.append(event)

    def _time(self) -> str:
        recording = self._recording
        return shown(recording.start if self._is_checkpoint else recording.time_of(self._at))

    def _configuration(self, config: dict[str, object]) -> SchedulerConfiguration:
        return with_extender_effects(configuration_of(config, self._gates))

    # --- the object -------------------------------------------------------------------------

    def _pending(self, entry: Pending) -> None:
        life = self._lives.get(entry.pod.metadata.uid)
        if life is None:
            return
        before, life.pod = life.pod, entry.pod
        if before is not None:
            self._note_changes(life, before, entry.pod)
            return
        when = "pending when the recording begins" if self._is_checkpoint else "pending"
        gates = ", ".join(each.name for each in entry.pod.spec.scheduling_gates)
        self._note(life, EventKind.SEEN, f"{when}, with gates {gates}" if gates else when)

    def _put(self, entry: Put) -> None:
        life = self._lives.get(entry.object.metadata.uid) if entry.kind == "Pod" else None
        if life is None:
            return
        before, life.pod = life.pod, entry.object
        node = entry.object.spec.node_name
        if not life.node:
            self._note(life, EventKind.BOUND, self._how_bound(node), node=node)
        elif life.is_assumed:
            self._note(life, EventKind.BOUND, f"to {node}, as the watch confirms", node=node)
        life.node, life.is_assumed = node, False
        if before is not None:
            self._note_changes(life, before, entry.object)

    def _how_bound(self, node: str) -> str:
        if self._is_checkpoint:
            return f"on {node} when the recording begins"
        return f"to {node}, and not by this scheduler"

    def _note_changes(self, life: _Life, before: Pod, after: Pod) -> None:
        if after.metadata.deletion_timestamp and not before.metadata.deletion_timestamp:
            self._note(life, EventKind.TERMINATING, "the pod is being deleted")
        changed = [
            what
            for what, differs in (
                ("spec", _without_node(before) != _without_node(after)),
                ("labels", before.metadata.labels != after.metadata.labels),
            )
            if differs
        ]
        if changed:
            self._note(life, EventKind.CHANGED, f"its {' and '.join(changed)} changed")

    def _gone(self, entry: Gone) -> None:
        if life := self._lives.get(entry.uid):
            self._note(life, EventKind.REMOVED, "deleted while it was pending")

    def _removed(self, entry: Removed) -> None:
        life = self._lives.get(entry.uid) if entry.kind == "Pod" else None
        if life is not None:
            self._note(life, EventKind.REMOVED, f"deleted, or ended, on {life.node}")
            life.node = ""

    # --- the queue --------------------------------------------------------------------------

    def _moved(self, entry: Moved) -> None:
        text = f"to {entry.queue}, by {entry.event}"
        if entry.plugin:
            text += f"; gated by {entry.plugin}"
        for life in self._concerned(entry.uids):
            self._note(
                life,
                EventKind.MOVED,
                text,
                queue=entry.queue,
                event=entry.event,
                by=entry.plugin,
            )

    def _concerned(self, uids: Iterable[str]) -> list[_Life]:
        lives = self._lives
        return [lives[uid] for uid in uids if uid in lives]

    # --- attempts ---------------------------------------------------------------------------

    def _configured(self, entry: Configured) -> None:
        self._decider.configure(self._configuration(entry.config))

    def _asking(self, entry: Asking) -> None:
        self._asked, self._answers = entry.uid, []

    def _answered(self, entry: Answered) -> None:
        self._answers.append(entry)

    def _decided(self, entry: Decided) -> None:
        life = self._lives.get(entry.uid)
        if life is not None:
            pod = self._state.pod_of(entry)
            answers = self._answers if self._asked == entry.uid else []
            framework = self._decider.framework_of(entry.profile)
            known = known_at(self._cluster, framework, pod, entry, answers)
            self._note_attempt(life, known)
        self._asked, self._answers = "", []
        if entry.victims:
            where = f" on {entry.nominated}" if entry.nominated else ""
            self._note_victims(entry.victims, f"{entry.namespace}/{entry.name}", where)

    def _note_attempt(self, life: _Life, known: AttemptKnown) -> None:
        life.attempts = max(life.attempts, known.number)
        text = f"placed on {known.node}" if known.node else known.message or known.code
        self._note(
            life, EventKind.ATTEMPT, f"{known.number}: {text}", node=known.node, attempt=known
        )

    def _group_decided(self, entry: GroupDecided) -> None:
        key = f"{entry.group_kind}/{entry.namespace}/{entry.name}"
        group = GroupAttempt(
            group=key,
            members=len(entry.members),
            placed=sum(bool(each.node) for each in entry.members),
        )
        mine = [each for each in entry.members if each.uid in self._lives]
        pods = {pod.uid: pod for pod in self._state.pods_of(entry)} if mine else {}
        for member in mine:
            life = self._lives[member.uid]
            life.group = key
            known = AttemptKnown(
                number=member.attempt,
                profile=entry.profile,
                code=member.code,
                node=member.node,
                message=member.message,
                nodes=len(self._cluster.table),
                nominated=member.nominated,
                victims=victims_of(self._cluster, entry.victims),
                group=group,
                claims=claims_of(self._cluster, pods[member.uid]),
            )
            self._note_attempt(life, known)
        self._note_victims(entry.victims, key, "")

    def _raised(self, entry: Raised) -> None:
        if life := self._lives.get(entry.uid):
            known = AttemptKnown(
                number=entry.attempt,
                profile=entry.profile,
                code="Error",
                message=entry.error,
                nodes=len(self._cluster.table),
                note="the attempt raised an exception: a bug",
            )
            self._note_attempt(life, known)

    def _note_victims(self, uids: Iterable[str], preemptor: str, where: str) -> None:
        for life in self._concerned(uids):
            text = f"of {preemptor}, which preempts{where}"
            self._note(life, EventKind.VICTIM, text, by=preemptor, node=life.node)

    # --- what follows an attempt ------------------------------------------------------------

    def _assumed(self, entry: Assumed) -> None:
        if life := self._lives.get(entry.uid):
            when = " when the recording begins" if self._is_checkpoint else ""
            life.pod = entry.pod or life.pod
            life.node, life.is_assumed = entry.node, True
            self._note(life, EventKind.ASSUMED, f"on {entry.node}{when}; binding", node=entry.node)

    def _forgotten(self, entry: Forgotten) -> None:
        if life := self._lives.get(entry.uid):
            self._note(life, EventKind.FORGOTTEN, f"no longer assumed on {life.node}")
            life.node, life.is_assumed = "", False

    def _returned(self, entry: Returned) -> None:
        if life := self._lives.get(entry.uid):
            self._note(life, EventKind.RETURNED, f"not bound: {entry.message}", by=entry.plugin)

    def _nominated(self, entry: Nominated) -> None:
        life = self._lives.get(entry.uid)
        if life is None:
            return
        # A new version of the pod is nominated by clearing the nomination of the old one.
        last = life.events[-1] if life.events else None
        if last is not None and (last.kind, last.node, last.time) == (
            EventKind.UNNOMINATED,
            entry.node,
            self._time(),
        ):
            life.events.pop()
            return
        when = " when the recording begins" if self._is_checkpoint else ""
        self._note(life, EventKind.NOMINATED, f"to {entry.node}{when}", node=entry.node)

    def _unnominated(self, entry: Unnominated) -> None:
        if life := self._lives.get(entry.uid):
            node = self._cluster.nominator.node_of(entry.uid) or ""
            self._note(life, EventKind.UNNOMINATED, f"no longer nominated to {node}", node=node)

    def _claim_decided(self, entry: ClaimDecided) -> None:
        for life in self._lives.values():
            if life.pod is None or not life.pod.spec.resource_claims:
                continue
            for claim in self._cluster.devices.claims.of_pod(life.pod):
                if claim.metadata.uid == entry.uid:
                    devices = ", ".join(devices_of(entry.allocation))
                    text = f"{devices} for claim {claim.metadata.name}"
                    self._note(life, EventKind.DEVICES, text)

    def _volume_assumed(self, entry: VolumeAssumed) -> None:
        """Tell of a volume, or of the node that one is to be made for."""
        if entry.kind != "PersistentVolume" or entry.object.spec.claim_ref is None:
            return
        reference = entry.object.spec.claim_ref
        for life in self._lives.values():
            if life.pod is None or life.pod.metadata.namespace != reference.namespace:
                continue
            claims = {
                each.persistent_volume_claim.claim_name
                for each in life.pod.spec.volumes
                if each.persistent_volume_claim is not None
            }
            if reference.name in claims:
                text = f"{entry.object.metadata.name} for claim {reference.name}"
                self._note(life, EventKind.VOLUME, text)


def _without_node(pod: Pod) -> PodSpec:
    return replace(pod.spec, node_name="")


def _told(life: _Life) -> PodLife:
    pod = life.pod
    group = named_group(pod) if pod is not None else None
    return PodLife(
        uid=life.uid,
        priority=(pod.spec.priority or 0) if pod is not None else 0,
        scheduler_name=pod.spec.scheduler_name if pod is not None else "",
        group=life.group or (str(group) if group is not None else ""),
        attempts=life.attempts,
        node=life.node,
        events=tuple(life.events),
    )


def _notes(recording: Recording) -> Iterable[str]:
    yield from recording.notes
    if recording.damage:
        yield f"the recording is damaged after entry {recording.entries}: {recording.damage}"
    elif recording.cut_off:
        yield "the recording is cut off, or still being written"
    if recording.header.kubesched_recording < 2:
        yield "the recording is of an older version, and has no moves between queues"
