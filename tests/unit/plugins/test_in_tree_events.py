"""What each plugin wants to hear of once it has turned a pod away, exactly."""

from __future__ import annotations

import pytest

from kubesched.plugins.in_tree import IN_TREE
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Registration, Registrations
from tests.support.scheduling import Lab

POD, NODE = Resource.POD, Resource.NODE

REGISTERED: dict[str, dict[Resource, Action]] = {
    "SchedulingGates": {POD: Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED},
    "NodeUnschedulable": {
        POD: Action.UPDATE_POD_TOLERATION,
        NODE: Action.ADD | Action.UPDATE_NODE_TAINT,
    },
    "NodeName": {NODE: Action.ADD},
    "TaintToleration": {
        POD: Action.UPDATE_POD_TOLERATION,
        NODE: Action.ADD | Action.UPDATE_NODE_TAINT,
    },
    "NodeAffinity": {NODE: Action.ADD | Action.UPDATE_NODE_LABEL},
    "NodePorts": {POD: Action.DELETE, NODE: Action.ADD},
    "NodeResourcesFit": {
        POD: Action.DELETE | Action.UPDATE_POD_SCALE_DOWN,
        NODE: Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
        Resource.DEVICE_CLASS: Action.ADD | Action.UPDATE,
    },
    "PodTopologySpread": {
        POD: Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE,
        NODE: Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT,
    },
    "InterPodAffinity": {
        POD: Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
        NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
    },
    "NodeDeclaredFeatures": {
        POD: Action.UPDATE,
        NODE: Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE,
    },
    "DynamicResources": {
        Resource.UNSCHEDULABLE_POD: Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
        NODE: Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE,
        Resource.RESOURCE_CLAIM: Action.ADD | Action.UPDATE | Action.DELETE,
        Resource.DEVICE_CLASS: Action.ADD | Action.UPDATE,
        Resource.RESOURCE_SLICE: Action.ADD | Action.UPDATE,
        Resource.DEVICE_TAINT_RULE: Action.ADD | Action.UPDATE | Action.DELETE,
    },
    "DefaultPreemption": {POD: Action.DELETE},
}

#: They turn no pod away, so nobody asks them.
SILENT = {
    "PrioritySort",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
}

#: Where the event alone says enough.
WITHOUT_HINT = {
    ("NodeName", NODE),
    ("NodePorts", NODE),
    ("DynamicResources", NODE),
    ("DynamicResources", Resource.DEVICE_CLASS),
    ("DynamicResources", Resource.RESOURCE_SLICE),
    ("DynamicResources", Resource.DEVICE_TAINT_RULE),
}

#: The plugins that look at volumes and claims say elsewhere what they register.
ELSEWHERE = {
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "GangScheduling",
}


def by_resource(registrations: Registrations) -> dict[str, Action]:
    """All actions registered for each kind of object."""
    assert registrations is not None
    found: dict[str, Action] = {}
    for each in registrations:
        resource, action = each.event.resource, each.event.action
        assert not found.get(resource, Action(0)) & action, f"{each.event} is registered twice"
        found[resource] = found.get(resource, Action(0)) | action
    return found


def test_every_plugin_is_in_the_table() -> None:
    assert set(IN_TREE) - ELSEWHERE == REGISTERED.keys() | SILENT


@pytest.mark.parametrize("name", REGISTERED)
def test_what_a_plugin_registers(name: str) -> None:
    assert by_resource(Lab().plugin(name).events_to_register()) == REGISTERED[name]


@pytest.mark.parametrize("name", sorted(SILENT))
def test_who_turns_no_pod_away_has_nothing_to_register(name: str) -> None:
    lab = Lab()
    assert name in lab.framework.plugins.instances
    assert name not in lab.framework.plugins.registrations()


@pytest.mark.parametrize("name", REGISTERED)
def test_hints_are_given_wherever_looking_at_the_objects_pays(name: str) -> None:
    for each in Lab().plugin(name).events_to_register():
        given = [each.hint is not None, each.signature_hint is not None]
        wanted = (name, each.event.resource) not in WITHOUT_HINT
        assert sum(given) == wanted, each.event


# --- what the queue makes of it ---------------------------------------------------------------


def _matching(plugin: str, event: ClusterEvent) -> list[Registration]:
    """What a plugin has registered that an event matches, and what was added for it."""
    registered = Lab().framework.plugins.registrations()[plugin]
    assert registered is not None
    return [each for each in registered if event.matches(each.event)]


@pytest.mark.parametrize(
    ("plugin", "event", "heard"),
    [
        ("NodeResourcesFit", ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), True),
        ("NodeResourcesFit", ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE), False),
        ("NodeResourcesFit", ClusterEvent(NODE, Action.UPDATE_NODE_CONDITION), False),
        ("NodeAffinity", ClusterEvent(NODE, Action.UPDATE_NODE_LABEL), True),
        ("NodeAffinity", ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), False),
        ("TaintToleration", ClusterEvent(NODE, Action.UPDATE_NODE_TAINT), True),
        (
            "TaintToleration",
            ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_TOLERATION),
            True,
        ),
        ("SchedulingGates", ClusterEvent(NODE, Action.ADD), False),
        ("NodeDeclaredFeatures", ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE), True),
        (
            "NodeDeclaredFeatures",
            ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL),
            True,
        ),
    ],
)
def test_what_a_pod_that_was_turned_away_hears_of(
    plugin: str, event: ClusterEvent, heard: bool
) -> None:
    assert bool(_matching(plugin, event)) is heard


@pytest.mark.parametrize(
    "plugin",
    [
        "NodeName",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "InterPodAffinity",
        "NodeDeclaredFeatures",
    ],
)
def test_whoever_waits_for_a_node_hears_of_one_that_loses_its_taint(plugin: str) -> None:
    """A new node is often tainted at first, and its addition then helps nobody."""
    matching = _matching(plugin, ClusterEvent(NODE, Action.UPDATE_NODE_TAINT))
    assert matching == [Registration(ClusterEvent(NODE, Action.UPDATE_NODE_TAINT))]
