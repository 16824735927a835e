"""What each plugin wants to hear of once it has turned a pod away, exactly."""

from __future__ import annotations

import pytest

from kubesched.config.features import FeatureGates
from kubesched.plugins.in_tree import IN_TREE
from kubesched.queue.events import Action, ClusterEvent, Resource
from kubesched.queue.hints import Registration, Registrations
from tests.support.scheduling import Lab

ASSIGNED, TARGET, NODE = Resource.ASSIGNED_POD, Resource.TARGET_POD, Resource.NODE

REGISTERED: dict[str, dict[Resource, Action]] = {
    "SchedulingGates": {TARGET: Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED},
    "NodeUnschedulable": {
        TARGET: Action.UPDATE_POD_TOLERATION,
        NODE: Action.ADD | Action.UPDATE_NODE_TAINT,
    },
    "NodeName": {NODE: Action.ADD},
    "TaintToleration": {
        TARGET: Action.UPDATE_POD_TOLERATION,
        NODE: Action.ADD | Action.UPDATE_NODE_TAINT,
    },
    "NodeAffinity": {NODE: Action.ADD | Action.UPDATE_NODE_LABEL},
    "NodePorts": {ASSIGNED: Action.DELETE, NODE: Action.ADD},
    "DeferredPodScheduling": {NODE: Action.ADD | Action.UPDATE_NODE_PREEMPTION_POLICY},
    "NodeResourcesFit": {
        ASSIGNED: Action.DELETE | Action.UPDATE_POD_SCALE_DOWN,
        TARGET: Action.UPDATE_POD_SCALE_DOWN,
        NODE: Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
        Resource.DEVICE_CLASS: Action.ADD | Action.UPDATE,
    },
    "PodTopologySpread": {
        ASSIGNED: Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
        TARGET: Action.UPDATE_POD_TOLERATION | Action.UPDATE_POD_LABEL,
        NODE: Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT,
    },
    "InterPodAffinity": {
        ASSIGNED: Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
        TARGET: Action.UPDATE_POD_LABEL,
        NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
    },
    "NodeDeclaredFeatures": {
        TARGET: Action.UPDATE,
        NODE: Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE,
    },
    "DynamicResources": {
        TARGET: Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
        NODE: Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE,
        Resource.RESOURCE_CLAIM: Action.ADD | Action.UPDATE | Action.DELETE,
        Resource.DEVICE_CLASS: Action.ADD | Action.UPDATE,
        Resource.RESOURCE_SLICE: Action.ADD | Action.UPDATE,
        Resource.DEVICE_TAINT_RULE: Action.ADD | Action.UPDATE | Action.DELETE,
    },
    "DefaultPreemption": {ASSIGNED: Action.DELETE},
}

#: Plugins that reject no pod, so their registrations do not matter.
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
    ("SchedulingGates", TARGET),
    ("TaintToleration", TARGET),
    ("NodeResourcesFit", TARGET),
    ("InterPodAffinity", TARGET),
    ("DynamicResources", NODE),
    ("DynamicResources", Resource.DEVICE_CLASS),
    ("DynamicResources", Resource.RESOURCE_SLICE),
    ("DynamicResources", Resource.DEVICE_TAINT_RULE),
}

#: Plugins of volumes, claims and groups, whose registrations their own tests specify.
ELSEWHERE = {
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "GangScheduling",
    "Coscheduling",
    "GroupReservation",
    "TopologyPlacementGenerator",
    "PodGroupPodsCount",
}


RESIZES = FeatureGates.of({"InPlacePodVerticalScalingSchedulerPreemption": True})


def lab_of(name: str) -> Lab:
    """A framework that has the plugin, be it alpha."""
    return Lab(gates=RESIZES) if name == "DeferredPodScheduling" else Lab()


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
    assert by_resource(lab_of(name).plugin(name).events_to_register()) == REGISTERED[name]


def test_with_deferred_resizes_room_that_is_taken_up_matters_too() -> None:
    found = by_resource(Lab(gates=RESIZES).plugin("NodeResourcesFit").events_to_register())
    plain = REGISTERED["NodeResourcesFit"]
    assert found == {
        **plain,
        ASSIGNED: plain[ASSIGNED] | Action.UPDATE_POD_SCALE_UP,
        TARGET: plain[TARGET] | Action.UPDATE_POD_SCALE_UP,
    }


@pytest.mark.parametrize("name", sorted(SILENT))
def test_a_plugin_that_rejects_no_pod_registers_for_nothing(name: str) -> None:
    lab = Lab()
    assert name in lab.framework.plugins.instances
    assert name not in lab.framework.plugins.registrations()


@pytest.mark.parametrize("name", REGISTERED)
def test_hints_are_given_wherever_looking_at_the_objects_pays(name: str) -> None:
    for each in lab_of(name).plugin(name).events_to_register():
        given = [each.hint is not None, each.signature_hint is not None]
        wanted = (name, each.event.resource) not in WITHOUT_HINT
        assert sum(given) == wanted, each.event


# --- what the queue makes of it ---------------------------------------------------------------


def _matching(plugin: str, event: ClusterEvent) -> list[Registration]:
    """What a plugin has registered that an event matches."""
    registered = Lab().framework.plugins.registrations()[plugin]
    assert registered is not None
    return [each for each in registered if event.matches(each.event)]


@pytest.mark.parametrize(
    ("plugin", "event", "heard"),
    [
        ("NodeResourcesFit", ClusterEvent(ASSIGNED, Action.DELETE), True),
        ("NodeResourcesFit", ClusterEvent(ASSIGNED, Action.UPDATE), False),
        ("NodeResourcesFit", ClusterEvent(NODE, Action.UPDATE_NODE_CONDITION), False),
        ("NodeAffinity", ClusterEvent(NODE, Action.UPDATE_NODE_LABEL), True),
        ("NodeAffinity", ClusterEvent(ASSIGNED, Action.DELETE), False),
        ("TaintToleration", ClusterEvent(NODE, Action.UPDATE_NODE_TAINT), True),
        (
            "TaintToleration",
            ClusterEvent(TARGET, Action.UPDATE_POD_TOLERATION),
            True,
        ),
        (
            "TaintToleration",
            ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION),
            False,
        ),
        ("SchedulingGates", ClusterEvent(NODE, Action.ADD), False),
        ("NodeDeclaredFeatures", ClusterEvent(TARGET, Action.UPDATE), True),
        (
            "NodeDeclaredFeatures",
            ClusterEvent(TARGET, Action.UPDATE_POD_LABEL),
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
def test_a_taint_that_goes_is_news_only_to_those_that_look_at_taints(plugin: str) -> None:
    assert _matching(plugin, ClusterEvent(NODE, Action.UPDATE_NODE_TAINT)) == []
