"""Whether something that happened may help pods that wait: the plugins' hints, asked with economy.

Thousands of pods may be parked when an event comes. Who listens to an event is remembered, and a
hint that looks at nothing but the signature is asked once for all pods of the signature.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations
from kubesched.queue.queued_pod import QueuedPod

_log = logging.getLogger(__name__)

#: A plugin of a profile: scheduler name and plugin name.
Subscriber = tuple[str, str]

#: Told of each hint that was asked: plugin, event, what it said, and seconds it took.
HintObserver = Callable[[str, str, str, float], None]
#: Told of each pre-hint that was asked: plugin, and whether it named the pods in question.
PreHintObserver = Callable[[str, bool], None]

_ANYTHING = (Registration(ClusterEvent(Resource.ANY, Action.ALL)),)


class Wake(IntEnum):
    """What a change means for a pod."""

    NO = 0
    #: it may help: the pod is tried again when its backoff is over
    AFTER_BACKOFF = 1
    #: it is what the pod was told to wait for
    AT_ONCE = 2


class Listeners:
    """What the plugins of all profiles registered."""

    def __init__(
        self,
        registrations: Mapping[str, Mapping[str, Registrations]],
        *,
        timer: Callable[[], float],
        observe: HintObserver | None = None,
        observe_pre_hint: PreHintObserver | None = None,
    ) -> None:
        #: scheduler name → plugin → what it wants to hear of
        self._registrations = registrations
        self._timer = timer
        self._observe = observe
        #: None if pre-hints are not asked
        self._observe_pre_hint = observe_pre_hint
        self._by_event: dict[ClusterEvent, dict[Subscriber, tuple[Registration, ...]]] = {}

    def of(self, event: ClusterEvent) -> Mapping[Subscriber, tuple[Registration, ...]]:
        """Return who wants to hear of an event, with the registrations that say so."""
        known = self._by_event.get(event)
        if known is None:
            heard = {
                (scheduler_name, plugin): tuple(
                    each
                    for each in (_ANYTHING if registered is None else registered)
                    if event.matches(each.event)
                )
                for scheduler_name, plugins in self._registrations.items()
                for plugin, registered in plugins.items()
            }
            known = {
                subscriber: matching
                for subscriber, matching in heard.items()
                if matching or event.is_wildcard
            }
            self._by_event[event] = known
        return known

    def ask_about(self, change: Change[Any]) -> Question:
        """Return a question about a change, to be asked for as many pods as there are."""
        return Question(change, self.of(change.event), timer=self._timer, observe=self._observe)

    def ask_pre_hints(self, change: Change[Any]) -> Question:
        """Return the same, for pods that plugins name if they can tell from the change alone."""
        question = self.ask_about(change)
        if self._observe_pre_hint is not None:
            question.narrow(self._observe_pre_hint)
        return question


class Question:
    """Whether one change helps; what is learned for one pod is used for the next."""

    def __init__(
        self,
        change: Change[Any],
        listeners: Mapping[Subscriber, tuple[Registration, ...]],
        *,
        timer: Callable[[], float],
        observe: HintObserver | None,
    ) -> None:
        self._change = change
        self._listeners = listeners
        self._timer = timer
        self._observe = observe
        self._by_signature: dict[tuple[int, PodSignature], bool] = {}
        self._is_wildcard = change.event.is_wildcard
        self._event_label = change.event.label
        #: plugin → the only pods that it is to be asked about, as namespace/name
        self._named: dict[Subscriber, set[str]] = {}

    def narrow(self, observe: PreHintObserver) -> None:
        """Leave it at the pods that pre-hints name, unless one of them names none or fails."""
        if self._is_wildcard or self._change.newest is None:
            return
        named: dict[Subscriber, set[str]] = {}
        for subscriber, registrations in self._listeners.items():
            for each in registrations:
                if each.pre_hint is None:
                    continue
                try:
                    found = each.pre_hint(self._change)
                except Exception:  # noqa: BLE001 (better to ask about all pods than to forget one)
                    _log.exception(
                        "PreQueueingHintFn failed, falling back to evaluate all pods: plugin=%s",
                        subscriber[1],
                    )
                    return
                observe(subscriber[1], found is not None)
                if found is None:
                    return
                named.setdefault(subscriber, set()).update(found)
        self._named = named

    def concerns(self, pod: PodInfo) -> bool:
        """Tell whether a pod is one that pre-hints named, or they named none."""
        return not self._named or any(pod.full_name in each for each in self._named.values())

    def answer(self, pod: QueuedPod) -> Wake:
        """Say what the change means for a pod."""
        if self._is_wildcard or not pod.was_rejected:
            return Wake.AFTER_BACKOFF
        scheduler_name = pod.info.pod.spec.scheduler_name
        for plugin in pod.pending_plugins:
            if self._helps((scheduler_name, plugin), pod.info):
                return Wake.AT_ONCE
        for plugin in pod.unschedulable_plugins:
            if self._helps((scheduler_name, plugin), pod.info):
                return Wake.AFTER_BACKOFF
        return Wake.NO

    def _helps(self, subscriber: Subscriber, pod: PodInfo) -> bool:
        if subscriber in self._named and pod.full_name not in self._named[subscriber]:
            return False
        for each in self._listeners.get(subscriber, ()):
            if self._asked(each, subscriber[1], pod):
                return True
        return False

    def _asked(self, registration: Registration, plugin: str, pod: PodInfo) -> bool:
        if registration.signature_hint is not None:
            key = id(registration), pod.signature
            known = self._by_signature.get(key)
            if known is None:
                known = self._evaluate(registration, plugin, pod)
                self._by_signature[key] = known
            return known
        return self._evaluate(registration, plugin, pod)

    def _evaluate(self, registration: Registration, plugin: str, pod: PodInfo) -> bool:
        started = self._timer()
        try:
            if registration.signature_hint is not None:
                helps = registration.signature_hint(pod.signature, self._change)
            else:
                helps = registration.hint is None or registration.hint(pod, self._change)
            said = "Queue" if helps else "QueueSkip"
        except Exception:  # noqa: BLE001 (better to try a pod in vain than to forget it)
            _log.exception(
                "QueueingHintFn returns error: event=%s plugin=%s pod=%s",
                self._event_label,
                plugin,
                pod.full_name,
            )
            helps, said = True, "Error"
        if self._observe is not None:
            self._observe(plugin, self._event_label, said, self._timer() - started)
        return helps
