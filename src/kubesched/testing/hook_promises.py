"""Promises of plugins beside filters and scores: Reserve, and event registrations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from kubesched.api.core import Pod
from kubesched.cluster.pod_info import PodInfo
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import Plugin, Reserve
from kubesched.framework.status import Code
from kubesched.kinds import stores
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration
from kubesched.testing.asking import PluginAnswer
from kubesched.testing.trial import PluginTrial, Promises

PROMISES: Final = Promises()


# --- Reserve ----------------------------------------------------------------------------------


@PROMISES.by(Reserve)
def check_reserve(trial: PluginTrial) -> None:
    """Unreserve takes back what Reserve did, and does no harm without it or a second time."""
    plugin, cluster = trial.plugin_as(Reserve), trial.cluster
    evaluator = trial.together.evaluator
    for pod in trial.pods(8):
        state = CycleState()
        try:
            found = evaluator.look(state, pod)
        except AttemptError:
            continue
        if isinstance(found, Diagnosis) or not trial.asker.is_asked_about(pod):
            continue
        node = trial.table.name_at(int(found.rows()[0]))
        before = _all_answers(trial)
        _unreserve(trial, state, pod, node)
        _expect(trial, before, "after unreserve without reserve", pod)
        cluster.assume(pod, node)
        status = plugin.reserve(state, pod, node)
        if not (status.ok or status.rejected or status.code is Code.ERROR):
            what = f"reserve said {status.code.label}, expected Success, a rejection or an error"
            trial.fail(what, pod=pod, node=node)
        _unreserve(trial, state, pod, node)
        _unreserve(trial, state, pod, node)
        cluster.forget(pod.uid)
        _expect(trial, before, "after reserve and unreserve", pod)


def _unreserve(trial: PluginTrial, state: CycleState, pod: PodInfo, node: str) -> None:
    plugin: Any = trial.plugin
    try:
        # Unguarded: the runtime ignores a failure here.
        trial.subject.plugin.unreserve(plugin, state, pod, node)  # type: ignore[attr-defined]
    except Exception as bug:  # noqa: BLE001 (a plugin may raise anything)
        what = f"unreserve raised {type(bug).__name__}: {bug}"
        trial.fail(what, pod=pod, node=node, cause=bug)


def _all_answers(trial: PluginTrial) -> dict[str, PluginAnswer]:
    rng_state = trial.rng.getstate()
    trial.rng.seed(0)  # the same pods each time
    asked = {pod.full_name: trial.asker.ask(pod) for pod in trial.pods(12)}
    trial.rng.setstate(rng_state)
    return asked


def _expect(trial: PluginTrial, before: dict[str, PluginAnswer], when: str, pod: PodInfo) -> None:
    for name, after in _all_answers(trial).items():
        expected = before[name]
        what = f"{when}, about {name}"
        trial.compare(after.rejections, expected.rejections, what, pod=pod)
        trial.compare(after.scores, expected.scores, what, pod=pod)


# --- events -----------------------------------------------------------------------------------


@PROMISES.by(Plugin)
def check_registrations(trial: PluginTrial) -> None:
    """What a plugin registers is None or Registrations, with at most one hint each."""
    registered: Any = trial.subject.plugin.events_to_register(trial.plugin)
    if registered is None:
        return
    for each in registered:
        if not isinstance(each, Registration):
            trial.fail(f"events_to_register returned {each!r}, expected Registrations")
        if each.hint is not None and each.signature_hint is not None:
            trial.fail(f"the registration for {each.event.label} has two hints")


@PROMISES.by(Plugin)
def check_hints(trial: PluginTrial) -> None:
    """A hint answers True or False for any change."""
    pods = trial.pods()
    registered: Any = trial.subject.plugin.events_to_register(trial.plugin)
    for registration in registered or ():
        if not isinstance(registration, Registration):
            continue  # the previous check reports it
        for change in _changes(trial, registration.event, pods):
            for pod in pods:
                _ask_hint(trial, registration, change, pod)


def _ask_hint(trial: PluginTrial, asked: Registration, change: Change[Any], pod: PodInfo) -> None:
    answer: object = True
    is_kept_out = False
    try:
        if asked.hint is not None:
            answer = asked.hint(pod, change)
        elif asked.signature_hint is not None:
            answer = asked.signature_hint(pod.signature, change)
        if asked.screen is not None and pod.uid not in asked.apart(change):
            is_kept_out = not asked.screen(pod, change)
    except Exception as bug:  # noqa: BLE001 (a plugin may raise anything)
        what = f"its hint for {change.event.label} raised {type(bug).__name__}: {bug}"
        trial.fail(what, pod=pod, cause=bug)
    if not isinstance(answer, bool):
        what = f"its hint for {change.event.label} said {answer!r}, expected True or False"
        trial.fail(what, pod=pod)
    if answer and is_kept_out:
        what = f"its screen for {change.event.label} said no, and its hint said yes"
        trial.fail(what, pod=pod)


def _changes(
    trial: PluginTrial, wanted: ClusterEvent, asking: list[PodInfo]
) -> Iterator[Change[Struct]]:
    """Return changes of all kinds of objects that a plugin registered for."""
    for resource, objects in _objects(trial, asking):
        for action in Action:
            event = ClusterEvent(resource, action)
            if not event.matches(wanted) or len(objects) == 0:
                continue
            old, new = trial.rng.choice(objects), trial.rng.choice(objects)
            if action is Action.ADD:
                yield Change(event, new=new)
            elif action is Action.DELETE:
                yield Change(event, old=old)
            elif action not in (Action.UPDATE, Action.ALL) or resource not in _BY_ASPECT:
                yield Change(event, old=old, new=new)
                yield Change(event, old=new, new=new)


#: Resources of which an update is told by what changed.
_BY_ASPECT: Final = (
    Resource.NODE,
    Resource.ASSIGNED_POD,
    Resource.UNSCHEDULED_POD,
    Resource.TARGET_POD,
)


def _objects(trial: PluginTrial, asking: list[PodInfo]) -> Iterator[tuple[str, list[Any]]]:
    world = trial.world
    waiting: list[Pod] = [each.pod for each in asking]
    yield Resource.NODE, [*world.nodes.values()]
    yield Resource.ASSIGNED_POD, [*world.placed.values()]
    yield Resource.UNSCHEDULED_POD, waiting
    yield Resource.TARGET_POD, waiting
    for kind, store in stores(trial.cluster):
        yield kind.event_resource, [*store]
