"""Who hears of an event, and what hints make of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from kubesched.cluster.pod_info import PodInfo
from kubesched.cluster.pod_signature import PodSignature
from kubesched.queue.events import NODE_ADD, NODE_DELETE, UNSCHEDULABLE_TIMEOUT
from kubesched.queue.hints import Change, Registration, Registrations
from kubesched.queue.waking import Listeners, Wake
from tests.support.objects import node
from tests.support.queueing import queued

LISTENERS = Listeners(
    {
        "default": {"Fit": [Registration(NODE_ADD)], "Anything": None, "Nothing": []},
        "batch": {"Fit": [Registration(NODE_DELETE)]},
    },
    timer=lambda: 0.0,
)


class Hints:
    """A hint with given results that records its calls."""

    def __init__(self, *helped: str) -> None:
        self.helped = helped
        self.called: list[str] = []

    def by_pod(self, pod: PodInfo, change: Change[Any]) -> bool:
        self.called.append(pod.uid)
        return pod.uid in self.helped

    def by_signature(self, signature: PodSignature, change: Change[Any]) -> bool:
        self.called.append("signature")
        return bool(self.helped)


def _wakes(
    registrations: dict[str, Registrations],
    *names: str,
    rejected_by: set[str],
    pending: frozenset[str] = frozenset(),
) -> list[Wake]:
    pods = [queued(name) for name in names]
    listeners = Listeners({pods[0].info.pod.spec.scheduler_name: registrations}, timer=lambda: 0.0)
    evaluation = listeners.evaluate(Change(NODE_ADD))
    for each in pods:
        each.unschedulable_plugins, each.pending_plugins = set(rejected_by), set(pending)
    return [evaluation.wake(each) for each in pods]


def test_listeners_are_plugins_of_profiles() -> None:
    assert LISTENERS.of(NODE_ADD).keys() == {("default", "Fit"), ("default", "Anything")}
    assert LISTENERS.of(NODE_DELETE).keys() == {("default", "Anything"), ("batch", "Fit")}
    assert LISTENERS.of(NODE_ADD).keys() == {("default", "Fit"), ("default", "Anything")}


def test_wildcards_concern_every_plugin() -> None:
    assert len(LISTENERS.of(UNSCHEDULABLE_TIMEOUT)) == 4


def test_without_a_hint_the_event_alone_wakes() -> None:
    fit: dict[str, Registrations] = {"Fit": [Registration(NODE_ADD)]}
    assert _wakes(fit, "a", rejected_by={"Fit"}) == [Wake.AFTER_BACKOFF]
    assert _wakes(fit, "a", rejected_by={"Other"}) == [Wake.NO]


def test_a_hint_decides_for_each_pod() -> None:
    hints = Hints("b")
    fit: dict[str, Registrations] = {"Fit": [Registration(NODE_ADD, hint=hints.by_pod)]}
    assert _wakes(fit, "a", "b", rejected_by={"Fit"}) == [Wake.NO, Wake.AFTER_BACKOFF]
    assert hints.called == ["a", "b"]


def test_a_signature_hint_is_called_once_per_signature() -> None:
    hints = Hints("anybody")
    fit: dict[str, Registrations] = {
        "Fit": [Registration(NODE_ADD, signature_hint=hints.by_signature)]
    }
    assert _wakes(fit, "a", "b", "c", rejected_by={"Fit"}) == [Wake.AFTER_BACKOFF] * 3
    assert hints.called == ["signature"]


def _screened(*registrations: Registration, rejected_by: str = "Fit") -> list[str]:
    """Return which of three pods that are alike may be woken."""
    pods = {name: queued(name) for name in ("a", "b", "c")}
    for each in pods.values():
        each.unschedulable_plugins = {rejected_by}
    scheduler_name = pods["a"].info.pod.spec.scheduler_name
    listeners = Listeners(
        {scheduler_name: {"Fit": registrations, "Other": [Registration(NODE_ADD)]}},
        timer=lambda: 0.0,
    )
    evaluation = listeners.evaluate(Change(NODE_ADD))
    return [each.key for each in evaluation.screened(pods)]


def _screen(answer: bool, *apart: str) -> Registration:
    hints = Hints("a", "b", "c")
    return Registration(
        NODE_ADD,
        hint=hints.by_pod,
        screen=lambda _pod, _change: answer,
        apart=lambda _change: apart,
    )


def test_pods_that_a_screen_keeps_out_are_not_asked_about() -> None:
    assert _screened(_screen(True)) == ["a", "b", "c"]
    assert _screened(_screen(False)) == []
    assert _screened(_screen(False), _screen(True)) == ["a", "b", "c"]


def test_a_screen_says_nothing_about_pods_apart() -> None:
    assert _screened(_screen(False, "b", "elsewhere")) == ["b"]
    assert _screened(_screen(True, "b")) == ["a", "b", "c"]
    assert _screened(_screen(False, "c", "b", "a")) == ["a", "b", "c"]


def test_without_a_screen_pods_are_asked_about_one_by_one() -> None:
    assert _screened(Registration(NODE_ADD, hint=Hints().by_pod)) == ["a", "b", "c"]
    assert _screened(Registration(NODE_ADD)) == ["a", "b", "c"]
    assert _screened(_screen(False), rejected_by="Other") == ["a", "b", "c"]


def test_a_signature_hint_screens_as_well() -> None:
    assert _screened(Registration(NODE_ADD, signature_hint=Hints().by_signature)) == []
    helping = Registration(NODE_ADD, signature_hint=Hints("any").by_signature)
    assert _screened(helping) == ["a", "b", "c"]


def test_a_screen_that_raises_lets_everything_through(caplog: pytest.LogCaptureFixture) -> None:
    def broken(pod: PodInfo, change: Change[Any]) -> bool:
        raise ValueError("no")

    assert _screened(Registration(NODE_ADD, screen=broken)) == ["a", "b", "c"]
    assert "QueueingHintFn returns error" in caplog.text


def test_so_does_one_that_cannot_tell_who_is_apart(caplog: pytest.LogCaptureFixture) -> None:
    def broken(change: Change[Any]) -> list[str]:
        raise ValueError("no")

    keeps_out = Registration(NODE_ADD, screen=lambda _pod, _change: False, apart=broken)
    assert _screened(keeps_out) == ["a", "b", "c"]
    assert "pods apart from a screen are unknown" in caplog.text


def test_one_registration_whose_hint_returns_true_is_enough() -> None:
    hints = Hints()
    registered: dict[str, Registrations] = {
        "Fit": [
            Registration(NODE_ADD, hint=hints.by_pod),
            Registration(NODE_DELETE),
            Registration(NODE_ADD),
        ]
    }
    assert _wakes(registered, "a", rejected_by={"Fit"}) == [Wake.AFTER_BACKOFF]


@pytest.mark.parametrize(
    ("helped_by", "wake"),
    [
        ({"Claims"}, Wake.AT_ONCE),
        ({"Fit", "Claims"}, Wake.AT_ONCE),
        ({"Fit"}, Wake.AFTER_BACKOFF),
        (set(), Wake.NO),
    ],
)
def test_an_event_for_a_pending_plugin_wakes_the_pod_immediately(
    helped_by: set[str], wake: Wake
) -> None:
    registered: dict[str, Registrations] = {
        plugin: [Registration(NODE_ADD, hint=Hints(*(["a"] * (plugin in helped_by))).by_pod)]
        for plugin in ("Fit", "Claims")
    }
    called = _wakes(registered, "a", rejected_by={"Fit"}, pending=frozenset({"Claims"}))
    assert called == [wake]


def test_a_hint_that_fails_wakes_the_pod(caplog: pytest.LogCaptureFixture) -> None:
    def broken(pod: PodInfo, change: Change[Any]) -> bool:
        raise ValueError("a bug")

    fit: dict[str, Registrations] = {"Fit": [Registration(NODE_ADD, hint=broken)]}
    assert _wakes(fit, "a", rejected_by={"Fit"}) == [Wake.AFTER_BACKOFF]
    assert "plugin=Fit pod=default/a" in caplog.text


def test_every_event_wakes_a_pod_that_failed_with_an_error() -> None:
    assert _wakes({}, "a", rejected_by=set()) == [Wake.AFTER_BACKOFF]


def test_hints_are_timed_and_counted() -> None:
    told: list[tuple[str, str, str, float]] = []
    readings = iter(range(100))
    each = queued("a")
    each.unschedulable_plugins = {"Fit"}
    listeners = Listeners(
        {"default-scheduler": {"Fit": [Registration(NODE_ADD, hint=Hints().by_pod)]}},
        timer=lambda: float(next(readings)),
        observe=lambda *called: told.append(called),
    )
    assert listeners.evaluate(Change(NODE_ADD)).wake(each) is Wake.NO
    assert told == [("Fit", "NodeAdd", "QueueSkip", 1.0)]


# --- pre-hints --------------------------------------------------------------------------------


class Narrowed:
    """What pre-hints of some plugins leave of pods that all of these plugins rejected."""

    def __init__(self, called: bool = True, **named: Collection[str] | Exception | None) -> None:
        self.hints = {plugin: Hints("a", "b", "c") for plugin in (*named, "Plain")}
        self.observed: list[tuple[str, bool]] = []
        registrations: dict[str, Registrations] = {
            plugin: [Registration(NODE_ADD, self.hints[plugin].by_pod, pre_hint=saying(found))]
            for plugin, found in named.items()
        }
        registrations["Plain"] = [Registration(NODE_ADD, self.hints["Plain"].by_pod)]
        self.pods = {name: queued(name) for name in "abc"}
        scheduler_name = self.pods["a"].info.pod.spec.scheduler_name
        self.listeners = Listeners(
            {scheduler_name: registrations},
            timer=lambda: 0.0,
            observe_pre_hint=(lambda *said: self.observed.append(said)) if called else None,
        )
        self.evaluation = self.listeners.evaluate_pre_hints(Change(NODE_ADD, new=node("n")))

    def concerned(self) -> str:
        return "".join(
            name for name, each in self.pods.items() if self.evaluation.concerns(each.info)
        )

    def called(self, *rejected_by: str) -> dict[str, str]:
        """Return the pods that each plugin's hint is called for."""
        for each in self.pods.values():
            for plugin in rejected_by:
                each.unschedulable_plugins = {plugin}
                self.evaluation.wake(each)
        return {plugin: "".join(self.hints[plugin].called) for plugin in rejected_by}


def saying(found: Collection[str] | Exception | None) -> Callable[[Change[Any]], Any]:
    def pre_hint(change: Change[Any]) -> Collection[str] | None:
        if isinstance(found, Exception):
            raise found
        return found

    return pre_hint


A, B = ("default/a",), ("default/b",)


def test_hints_are_called_for_the_pods_that_pre_hints_return() -> None:
    narrowed = Narrowed(One=A, Two=B)
    assert narrowed.concerned() == "ab"
    assert narrowed.called("One", "Two", "Plain") == {"One": "a", "Two": "b", "Plain": "abc"}
    assert narrowed.observed == [("One", True), ("Two", True)]


@pytest.mark.parametrize("found", [None, RuntimeError("bug")], ids=["all pods", "a failure"])
def test_a_pre_hint_that_cannot_tell_leaves_all_pods(found: Exception | None) -> None:
    narrowed = Narrowed(One=A, Two=found)
    assert narrowed.concerned() == "abc"
    assert narrowed.called("One", "Two") == {"One": "abc", "Two": "abc"}
    assert narrowed.observed == [("One", True), *([("Two", False)] if found is None else [])]


def test_a_pre_hint_may_return_no_pod() -> None:
    assert Narrowed(One=()).concerned() == ""


def test_without_pre_hints_hints_are_called_for_all_pods() -> None:
    assert Narrowed().concerned() == "abc"
    assert Narrowed(called=False, One=A).concerned() == "abc"


def test_events_without_an_object_are_for_all_pods() -> None:
    narrowed = Narrowed(One=A)
    for event in (NODE_ADD, UNSCHEDULABLE_TIMEOUT):
        evaluation = narrowed.listeners.evaluate_pre_hints(Change(event))
        assert all(evaluation.concerns(each.info) for each in narrowed.pods.values())
