"""Evaluates the plugins' queueing hints: whether a change may help a parked pod.

Thousands of pods may be parked when an event arrives. So the registrations that match an event are
cached, and a hint that depends only on the pod's signature is called once per signature. Pods that
are alike are screened: most events help none of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import IntEnum
from typing import Any

from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration, Registrations
from kubesched.queue.queued_pod import QueuedEntity, QueuedPod

_log = logging.getLogger(__name__)

#: A plugin of a profile: scheduler name and plugin name.
Subscriber = tuple[str, str]

#: Called after each hint: plugin, event, result, and duration in seconds.
HintObserver = Callable[[str, str, str, float], None]
#: Called after each pre-hint: plugin, and whether it returned the pods that are concerned.
PreHintObserver = Callable[[str, bool], None]

_ANYTHING = (Registration(ClusterEvent(Resource.ANY, Action.ALL)),)


class Wake(IntEnum):
    """What a change does to a parked pod."""

    NO = 0
    #: it may help: the pod is retried after its backoff
    AFTER_BACKOFF = 1
    #: a plugin that returned Pending waits for it: the pod is retried immediately
    AT_ONCE = 2


class Listeners:
    """The event registrations of the plugins of all profiles."""

    def __init__(
        self,
        registrations: Mapping[str, Mapping[str, Registrations]],
        *,
        timer: Callable[[], float],
        observe: HintObserver | None = None,
        observe_pre_hint: PreHintObserver | None = None,
        heeds_pre_hints: bool = True,
    ) -> None:
        #: scheduler name → plugin → its registrations
        self._registrations = registrations
        self._timer = timer
        self._observe = observe
        #: None if pre-hints are disabled
        self._observe_pre_hint = observe_pre_hint
        #: False if pre-hints are evaluated, and hints for all pods then nevertheless
        self._heeds_pre_hints = heeds_pre_hints
        self._by_event: dict[ClusterEvent, dict[Subscriber, tuple[Registration, ...]]] = {}

    def of(self, event: ClusterEvent) -> Mapping[Subscriber, tuple[Registration, ...]]:
        """Return the plugins that registered for an event, with the matching registrations."""
        cached = self._by_event.get(event)
        if cached is None:
            heard = {
                (scheduler_name, plugin): tuple(
                    each
                    for each in (_ANYTHING if registered is None else registered)
                    if event.matches(each.event)
                )
                for scheduler_name, plugins in self._registrations.items()
                for plugin, registered in plugins.items()
            }
            cached = {
                subscriber: matching
                for subscriber, matching in heard.items()
                if matching or event.is_wildcard
            }
            self._by_event[event] = cached
        return cached

    def evaluate(self, change: Change[Any]) -> HintEvaluation:
        """Return the evaluation of the hints for a change, to be used for any number of pods."""
        return HintEvaluation(
            change, self.of(change.event), timer=self._timer, observe=self._observe
        )

    def evaluate_pre_hints(self, change: Change[Any]) -> HintEvaluation:
        """Return the same, restricted to the pods that pre-hints derive from the change alone."""
        evaluation = self.evaluate(change)
        if self._observe_pre_hint is not None:
            evaluation.narrow(self._observe_pre_hint)
            if not self._heeds_pre_hints:
                return self.evaluate(change)
        return evaluation


class HintEvaluation:
    """Evaluates the hints for one change; results are cached per pod signature."""

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
        #: uids of pods that screens say nothing about, once that was asked
        self._apart_uids: set[str] | None = None
        #: plugin → the only pods that its hint is called for, as namespace/name
        self._named: dict[Subscriber, set[str]] = {}

    def narrow(self, observe: PreHintObserver) -> None:
        """Restrict hints to the pods that pre-hints return, unless one returns None or fails."""
        if self._is_wildcard or self._change.newest is None:
            return
        named: dict[Subscriber, set[str]] = {}
        for subscriber, registrations in self._listeners.items():
            for each in registrations:
                if each.pre_hint is None:
                    continue
                try:
                    found = each.pre_hint(self._change)
                except Exception:  # noqa: BLE001 (better to evaluate all pods than to miss one)
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
        """Return whether pre-hints returned the pod, or were not evaluated."""
        return not self._named or any(pod.full_name in each for each in self._named.values())

    def screened(self, alike: Mapping[str, QueuedEntity]) -> Iterable[QueuedEntity]:
        """Return those of several pods that are alike that the change may wake."""
        try:
            apart = self._apart()
        except Exception:  # noqa: BLE001 (better to evaluate all pods than to miss one)
            _log.exception("pods apart from a screen are unknown: event=%s", self._event_label)
            return alike.values()
        first = next((each for uid, each in alike.items() if uid not in apart), None)
        if not isinstance(first, QueuedPod) or self._may_wake(first):
            return alike.values()
        return [each for uid in apart if (each := alike.get(uid)) is not None]

    def _apart(self) -> Collection[str]:
        """Return the uids of pods that screens say nothing about."""
        if self._apart_uids is None:
            self._apart_uids = {
                uid
                for registrations in self._listeners.values()
                for each in registrations
                for uid in each.apart(self._change)
            }
        return self._apart_uids

    def _may_wake(self, pod: QueuedPod) -> bool:
        """Return False if the change wakes none of the pods that are like this one."""
        if self._is_wildcard or not pod.was_rejected or self._named:
            return True
        return any(
            self._may_help(each, plugin, pod.info)
            for plugin in pod.rejectors
            for each in self._listeners.get((pod.scheduler_name, plugin), ())
        )

    def _may_help(self, registration: Registration, plugin: str, pod: PodInfo) -> bool:
        if registration.signature_hint is not None:
            return self._result(registration, plugin, pod)
        screen = registration.screen
        return screen is None or self._timed(lambda: screen(pod, self._change), plugin, pod)

    def wake(self, pod: QueuedPod) -> Wake:
        """Return what the change does to a pod, by the hints of the plugins that rejected it."""
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
            if self._result(each, subscriber[1], pod):
                return True
        return False

    def _result(self, registration: Registration, plugin: str, pod: PodInfo) -> bool:
        if registration.signature_hint is not None:
            key = id(registration), pod.signature
            cached = self._by_signature.get(key)
            if cached is None:
                cached = self._evaluate(registration, plugin, pod)
                self._by_signature[key] = cached
            return cached
        return self._evaluate(registration, plugin, pod)

    def _evaluate(self, registration: Registration, plugin: str, pod: PodInfo) -> bool:
        by_signature, hint = registration.signature_hint, registration.hint
        if by_signature is not None:
            return self._timed(lambda: by_signature(pod.signature, self._change), plugin, pod)
        return self._timed(lambda: hint is None or hint(pod, self._change), plugin, pod)

    def _timed(self, ask: Callable[[], bool], plugin: str, pod: PodInfo) -> bool:
        started = self._timer()
        try:
            helps = ask()
            said = "Queue" if helps else "QueueSkip"
        except Exception:  # noqa: BLE001 (better to retry a pod in vain than to miss it)
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
