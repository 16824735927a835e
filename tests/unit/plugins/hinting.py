"""How tests ask a plugin's hints: what changed, and whether that helps a pod that waits.

    helps(Lab(), "NodePorts", pod(ports=[80]), deleted(pod("other", node="n1", ports=[80])))

The question goes the queue's way, through what the plugin registers: a change that it does not want
to hear of is a mistake of the test, and fails.
"""

from __future__ import annotations

from typing import Any

from kubesched.api.core import Node, Pod
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Change, Registration
from tests.support.scheduling import Lab


def added(new: Pod | Node) -> Change[Any]:
    """A node came, or a pod came to its node."""
    return Change(ClusterEvent(_resource(new), Action.ADD), new=new)


def deleted(old: Pod | Node) -> Change[Any]:
    """A node is gone, or a pod from where it was or was nominated to."""
    return Change(ClusterEvent(_resource(old), Action.DELETE), old=old)


def updated(action: Action, old: Pod | Node, new: Pod | Node) -> Change[Any]:
    """A node or a pod that has one changed in some respect."""
    return Change(ClusterEvent(_resource(new), action), old=old, new=new)


def changed_itself(action: Action, old: Pod, new: Pod) -> Change[Pod]:
    """The waiting pod itself changed in some respect."""
    return Change(ClusterEvent(Resource.TARGET_POD, action), old=old, new=new)


def _resource(subject: Pod | Node) -> Resource:
    return Resource.NODE if isinstance(subject, Node) else Resource.ASSIGNED_POD


def registration(lab: Lab, plugin: str, event: ClusterEvent) -> Registration:
    """Return the one thing that a plugin registered for an event."""
    registered = lab.plugin(plugin).events_to_register()
    matching = [each for each in registered if event.matches(each.event)]
    assert len(matching) == 1, f"{plugin} registered {len(matching)} times for {event}"
    assert isinstance(matching[0], Registration)
    return matching[0]


def helps(lab: Lab, plugin: str, waiting: Pod, change: Change[Any]) -> bool:
    """Tell whether a change helps a pod that the plugin turned away."""
    found = registration(lab, plugin, change.event)
    assert found.hint is None or found.signature_hint is None
    info = lab.pending(waiting)
    if found.signature_hint is not None:
        return found.signature_hint(info.signature, change)
    helped = found.hint is None or found.hint(info, change)
    if helped and found.screen is not None and info.uid not in found.apart(change):
        assert found.screen(info, change), "a screen lets through what the hint says yes to"
    return helped
