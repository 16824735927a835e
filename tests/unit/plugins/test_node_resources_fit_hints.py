"""NodeResourcesFit, when pods go or shrink, nodes come or grow: is there more of what is asked?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubesched.api.core import Node, Pod, ResourceList
from kubesched.config.args import NodeResourcesFitArgs
from kubesched.config.features import FeatureGates
from kubesched.queue.events import Action
from kubesched.queue.hints import Change
from tests.support.group_objects import member
from tests.support.objects import container, node, pod, spread_over
from tests.support.scheduling import Lab

from .hinting import added, changed_itself, deleted, helps, registration, updated

PLUGIN = "NodeResourcesFit"
SCALE_DOWN, ALLOCATABLE = Action.UPDATE_POD_SCALE_DOWN, Action.UPDATE_NODE_ALLOCATABLE
GPU, TPU = "example.com/gpu", "example.com/tpu"


def offering(**resources: str) -> Node:
    """A node with nothing but these, and room for pods unless said otherwise."""
    allocatable: ResourceList = {
        {"gpu": GPU, "tpu": TPU, "storage": "ephemeral-storage"}.get(name, name): amount
        for name, amount in resources.items()
    }
    return node("n", cpu="0", memory="0", resources=allocatable)


# --- pods that go -----------------------------------------------------------------------------


GONE = pod("o", node="n", cpu="1")


def room_for(waiting: Pod, *there: Pod, gone: Pod = GONE) -> bool:
    """Tell whether a pod that leaves a node of four cores helps one that waits."""
    return helps(Lab(node("n"), node("m"), *there), PLUGIN, waiting, deleted(gone))


def test_a_pod_that_goes_helps_whoever_fits_on_its_node_now() -> None:
    taken = pod("there", node="n", cpu="2")
    assert room_for(pod("p", cpu="2"), taken)
    assert not room_for(pod("p", cpu="3"), taken)


@pytest.mark.parametrize(
    ("gone", "want"),
    [
        pytest.param(pod("o", node="n", memory="1Gi"), True, id="whatever it had"),
        pytest.param(pod("o", nominated="n", cpu="1"), True, id="nominated to the node"),
        pytest.param(pod("o", cpu="1"), False, id="that had no place"),
        pytest.param(pod("o", node="gone", cpu="1"), False, id="whose node is not there"),
    ],
)
def test_pods_that_go(gone: Pod, want: bool) -> None:
    assert room_for(pod("p", cpu="1"), gone=gone) is want


def test_room_for_one_more_pod_counts_too() -> None:
    full = Lab(node("n", pods=1), pod("there", node="n"))
    assert not helps(full, PLUGIN, pod("p"), deleted(GONE))
    assert helps(Lab(node("n", pods=1)), PLUGIN, pod("p"), deleted(GONE))


def test_a_resource_that_no_node_has_is_no_help() -> None:
    assert not room_for(pod("p", requests={GPU: "1"}))


def test_what_the_profile_ignores_does_not_matter() -> None:
    args = {PLUGIN: NodeResourcesFitArgs(ignored_resources=(GPU,))}
    lab = Lab(node("n"), args=args)
    assert helps(lab, PLUGIN, pod("p", cpu="1", requests={GPU: "1"}), deleted(GONE))


def test_a_pod_that_could_evict_the_rest_is_helped() -> None:
    """It was not more important than the pod that is gone, but it is than what remains."""
    lower = pod("lower", node="n", cpu="3", priority=1)
    assert room_for(pod("p", cpu="4", priority=5), lower)
    assert not room_for(pod("p", cpu="4", priority=1), lower)
    polite = pod("p", cpu="4", priority=5)
    polite = replace(polite, spec=replace(polite.spec, preemption_policy="Never"))
    assert not room_for(polite, lower)


def nominated(lab: Lab, each: Pod, node_name: str) -> None:
    lab.cluster.nominator.nominate(lab.pending(each), node_name)


def test_a_nominated_pod_waits_for_its_victims_and_looks_for_no_others() -> None:
    lower = pod("lower", node="n", cpu="3", priority=1)
    lab = Lab(node("n"), node("m"), lower)
    large, small = pod("large", cpu="4", priority=5), pod("small", cpu="1", priority=5)
    for each in (large, small):
        nominated(lab, each, "m")
    assert not helps(lab, PLUGIN, large, deleted(GONE))
    assert helps(lab, PLUGIN, small, deleted(GONE)), "it fits as things are"


@pytest.mark.parametrize(("priority", "want"), [(4, True), (5, False), (6, False)])
def test_room_reserved_by_nominated_pods_is_no_room(priority: int, want: bool) -> None:
    """As in the scheduling cycle: pods of the same or a lower priority leave it free."""
    lab = Lab(node("n"))
    waiting = pod("p", cpu="2", priority=5)
    nominated(lab, pod("preemptor", cpu="3", priority=priority), "n")
    assert helps(lab, PLUGIN, waiting, deleted(GONE)) is want


@given(
    sizes=st.lists(st.integers(0, 4), min_size=2, max_size=6),
    places=st.lists(st.sampled_from(["", "n", "m"]), min_size=6, max_size=6),
    priorities=st.lists(st.integers(0, 2), min_size=6, max_size=6),
    there=st.integers(0, 4),
)
def test_a_screen_lets_through_all_that_are_like_a_pod_that_is_helped(
    sizes: list[int], places: list[str], priorities: list[int], there: int
) -> None:
    """Whichever of those that are alike it is asked about, if not of those nominated there."""
    lower = pod("lower", node="n", cpu=str(there), priority=1)
    lab, change = Lab(node("n"), node("m"), lower), deleted(GONE)
    waiting = [
        lab.pending(pod(f"p{number}", cpu=str(cpu), priority=priority))
        for number, (cpu, priority) in enumerate(zip(sizes, priorities, strict=False))
    ]
    for each, place in zip(waiting, places, strict=False):
        if place:
            lab.cluster.nominator.nominate(each, place)
    found = registration(lab, PLUGIN, change.event)
    apart = set(found.apart(change))
    assert apart == {each.uid for each, on in zip(waiting, places, strict=False) if on == "n"}
    assert found.hint is not None
    assert found.screen is not None
    for helped in waiting:
        if helped.uid not in apart and found.hint(helped, change):
            alike = [each for each in waiting if each.alike == helped.alike]
            assert all(found.screen(each, change) for each in alike if each.uid not in apart)


def test_members_of_a_group_do_not_reserve_room_against_each_other() -> None:
    lab = Lab(node("n"))
    first, second = member("a", cpu="3", priority=5), member("b", cpu="2", priority=5)
    nominated(lab, first, "n")
    assert helps(lab, PLUGIN, second, deleted(GONE)), "the first may go elsewhere"
    assert not helps(lab, PLUGIN, second, deleted(pod("o", cpu="1"))), "it had no place"


def test_what_a_pod_reserves_itself_is_room_for_it() -> None:
    lab = Lab(node("n"))
    waiting = pod("p", cpu="4", priority=5)
    nominated(lab, waiting, "n")
    assert helps(lab, PLUGIN, waiting, deleted(GONE))


def test_victims_are_not_looked_for_where_nominated_pods_reserve_the_room() -> None:
    lower = pod("lower", node="n", cpu="2", priority=1)
    lab = Lab(node("n"), lower)
    waiting = pod("p", cpu="4", priority=5)
    assert helps(lab, PLUGIN, waiting, deleted(GONE))
    nominated(lab, pod("preemptor", cpu="1", priority=5), "n")
    assert not helps(lab, PLUGIN, waiting, deleted(GONE))


@pytest.mark.parametrize(("priority", "want"), [(1, True), (5, False)])
def test_a_pod_that_is_compared_with_others_may_preempt_on_other_nodes_now(
    priority: int, want: bool
) -> None:
    """A pod that leaves one node may let a spread constraint pass on another, once room is made.

    Only where there are pods that it could preempt.
    """
    there = pod("there", node="m", cpu="4", priority=priority)
    lab = Lab(node("n", cpu="0"), node("m"), there)
    spread = pod("p", cpu="4", priority=5, spread=[spread_over("zone", app="x")])
    assert helps(lab, PLUGIN, spread, deleted(GONE)) is want
    assert not helps(lab, PLUGIN, pod("p", cpu="4", priority=5), deleted(GONE))


def test_answers_are_about_the_cluster_as_it_is() -> None:
    """A change is asked about again when a pod that was in flight comes back."""
    lab = Lab(node("n"), blocking := pod("there", node="n", cpu="4"))
    change, waiting = deleted(GONE), pod("p", cpu="2")
    assert not helps(lab, PLUGIN, waiting, change)
    lab.cluster.remove_pod(blocking.metadata.uid)
    assert helps(lab, PLUGIN, waiting, change)


# --- pods that shrink -------------------------------------------------------------------------


def shrinking(before: ResourceList, now: ResourceList, *, on: str = "n") -> Change[Any]:
    """Another pod asks for less."""
    return updated(SCALE_DOWN, pod("o", node=on, requests=before), pod("o", node=on, requests=now))


@pytest.mark.parametrize(
    ("requests", "change", "want"),
    [
        pytest.param({"cpu": "1"}, shrinking({"cpu": "2"}, {"cpu": "1"}), True, id="cpu"),
        pytest.param(
            {"memory": "1"}, shrinking({"memory": "2"}, {"memory": "1"}), True, id="memory"
        ),
        pytest.param(
            {"ephemeral-storage": "1"},
            shrinking({"ephemeral-storage": "2"}, {}),
            True,
            id="storage, none left",
        ),
        pytest.param({GPU: "1"}, shrinking({GPU: "2"}, {GPU: "1"}), True, id="a device"),
        pytest.param(
            {"cpu": "1"}, shrinking({"memory": "2"}, {"memory": "1"}), False, id="something else"
        ),
        pytest.param(
            {"cpu": "0", "memory": "1"},
            shrinking({"cpu": "2"}, {"cpu": "1"}),
            False,
            id="what is requested is none of it",
        ),
        pytest.param({}, shrinking({"cpu": "2"}, {"cpu": "1"}), False, id="nothing requested"),
        pytest.param(
            {"cpu": "1"},
            shrinking({"cpu": "1", "memory": "2"}, {"cpu": "2", "memory": "1"}),
            False,
            id="what is requested grew",
        ),
        pytest.param(
            {"cpu": "1"},
            shrinking({"cpu": "1001m"}, {"cpu": "1000500u"}),
            False,
            id="by less than is counted",
        ),
        pytest.param(
            {"cpu": "1"}, shrinking({"cpu": "2"}, {"cpu": "1"}, on=""), False, id="on no node"
        ),
    ],
)
def test_another_pod_shrinks(requests: ResourceList, change: Change[Any], want: bool) -> None:
    assert helps(Lab(), PLUGIN, pod("p", requests=requests), change) is want


def test_a_pod_that_is_only_nominated_takes_nothing_yet() -> None:
    change = updated(SCALE_DOWN, pod("o", nominated="n", cpu="2"), pod("o", nominated="n", cpu="1"))
    assert not helps(Lab(), PLUGIN, pod("p", cpu="1"), change)


def test_the_pod_itself_shrinks() -> None:
    change = changed_itself(SCALE_DOWN, pod("p", cpu="2"), pod("p", memory="1"))
    assert helps(Lab(), PLUGIN, pod("p", memory="1"), change)


def test_what_counts_is_what_the_kubelet_has_given_back() -> None:
    waiting = pod("p", cpu="1")
    asked = pod("o", node="n", cpu="1", resized_to={"cpu": "2"})
    assert not helps(
        Lab(),
        PLUGIN,
        waiting,
        updated(SCALE_DOWN, pod("o", node="n", cpu="2", resized_to={"cpu": "2"}), asked),
    )
    given = pod("o", node="n", cpu="1", resized_to={"cpu": "1"})
    assert helps(Lab(), PLUGIN, waiting, updated(SCALE_DOWN, asked, given))


@pytest.mark.parametrize(
    ("before", "now", "want"),
    [
        pytest.param({"cpu": "2"}, {"cpu": "1"}, True, id="what is requested"),
        pytest.param({"memory": "2"}, {"memory": "1"}, False, id="something else"),
    ],
)
def test_pods_that_request_as_a_whole(before: ResourceList, now: ResourceList, want: bool) -> None:
    change = updated(
        SCALE_DOWN, pod("o", node="n", pod_level=before), pod("o", node="n", pod_level=now)
    )
    assert helps(Lab(), PLUGIN, pod("p", pod_level={"cpu": "1"}), change) is want


def test_requests_of_a_pod_as_a_whole_stand_for_those_of_its_containers_where_that_is_on() -> None:
    gates = dict.fromkeys(
        (
            "PodLevelResources",
            "PodLevelResourceManagers",
            "InPlacePodLevelResourcesVerticalScaling",
            "PodLevelResourcesFixDefaulting",
            "PodLevelResourcesFixKubeletQOSClass",
        ),
        False,
    )
    whole: ResourceList = {"cpu": "4"}
    change = updated(
        SCALE_DOWN,
        pod("o", node="n", cpu="2", pod_level=whole),
        pod("o", node="n", cpu="1", pod_level=whole),
    )
    waiting = pod("p", cpu="1")
    assert not helps(Lab(), PLUGIN, waiting, change)
    assert helps(Lab(gates=FeatureGates.of(gates)), PLUGIN, waiting, change)


def test_init_containers_hide_what_containers_give_back() -> None:
    setup = container("setup", cpu="3")
    old = pod("o", node="n", cpu="2", init_containers=[setup])
    new = pod("o", node="n", cpu="1", init_containers=[setup])
    assert not helps(Lab(), PLUGIN, pod("p", cpu="1"), updated(SCALE_DOWN, old, new))


# --- nodes that come --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requests", "came", "want"),
    [
        pytest.param({"memory": "2"}, offering(memory="1"), False, id="too small"),
        pytest.param({"memory": "2"}, offering(memory="2"), True, id="just large enough"),
        pytest.param({GPU: "1"}, offering(tpu="1"), False, id="another device"),
        pytest.param(
            {"memory": "2", GPU: "1"}, offering(memory="4", gpu="2"), True, id="large enough"
        ),
        pytest.param(
            {"memory": "2", GPU: "1"}, offering(memory="4"), False, id="one of two is lacking"
        ),
        pytest.param({"ephemeral-storage": "2"}, offering(storage="1"), False, id="storage"),
        pytest.param({"hugepages-2Mi": "4Mi"}, offering(memory="8Mi"), False, id="huge pages"),
        pytest.param({GPU: "0"}, offering(memory="1"), True, id="none of a device"),
        pytest.param({}, offering(), True, id="nothing requested"),
        pytest.param({}, offering(pods="0"), False, id="no room for any pod"),
        pytest.param({"cpu": "1"}, offering(cpu="4", pods="0"), False, id="nor for this one"),
    ],
)
def test_nodes_that_come(requests: ResourceList, came: Node, want: bool) -> None:
    assert helps(Lab(), PLUGIN, pod("p", requests=requests), added(came)) is want


@pytest.mark.parametrize(
    ("whole", "came", "want"),
    [
        pytest.param({"cpu": "2"}, offering(cpu="1"), False, id="cpu, too small"),
        pytest.param({"cpu": "2"}, offering(cpu="2"), True, id="cpu, large enough"),
        pytest.param(
            {"hugepages-2Mi": "4Mi"},
            node("n", resources={"hugepages-2Mi": "2Mi"}),
            False,
            id="huge pages, too small",
        ),
        pytest.param(
            {"hugepages-2Mi": "2Mi"},
            node("n", resources={"hugepages-2Mi": "2Mi"}),
            True,
            id="huge pages, large enough",
        ),
    ],
)
def test_nodes_that_come_for_a_pod_that_requests_as_a_whole(
    whole: ResourceList, came: Node, want: bool
) -> None:
    assert helps(Lab(), PLUGIN, pod("p", pod_level=whole), added(came)) is want


def test_a_node_is_taken_to_be_empty() -> None:
    full = pod("there", node="n", cpu="4")
    lab = Lab(node("n", cpu="4"), full)
    assert helps(lab, PLUGIN, pod("p", cpu="4"), added(node("n", cpu="4")))


def test_resources_that_the_profile_ignores_count_here_nevertheless() -> None:
    """As in kube-scheduler: the filter ignores them, the hint does not."""
    lab = Lab(node("n"), args={PLUGIN: NodeResourcesFitArgs(ignored_resources=(GPU,))})
    waiting = pod("p", requests={GPU: "1"})
    assert lab.feasible(waiting) == ["n"]
    assert not helps(lab, PLUGIN, waiting, added(node("n")))


# --- nodes that change ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requests", "before", "now", "want"),
    [
        pytest.param(
            {"memory": "2", GPU: "1"},
            offering(memory="2", gpu="1"),
            offering(memory="2", gpu="2"),
            True,
            id="more of something requested",
        ),
        pytest.param(
            {"memory": "2", GPU: "1"},
            offering(memory="1", gpu="2"),
            offering(memory="4", gpu="2"),
            True,
            id="too small before",
        ),
        pytest.param(
            {"memory": "2", GPU: "1"},
            offering(memory="4", gpu="2"),
            offering(memory="1", gpu="4"),
            False,
            id="too small now",
        ),
        pytest.param(
            {"memory": "2", GPU: "1"},
            offering(memory="2", gpu="2"),
            offering(memory="2", gpu="1", tpu="2"),
            False,
            id="less, and more of something else",
        ),
        pytest.param(
            {"cpu": "1", "memory": "1"},
            offering(cpu="1", memory="2", storage="3", gpu="4"),
            offering(cpu="1", memory="2", storage="5", gpu="6"),
            False,
            id="more of what is not requested",
        ),
        pytest.param(
            {"cpu": "1", "memory": "1", "ephemeral-storage": "1"},
            offering(cpu="1", memory="1", storage="1"),
            offering(cpu="1", memory="1", storage="2"),
            True,
            id="more storage",
        ),
        pytest.param({"cpu": "1"}, offering(cpu="1"), offering(cpu="1"), False, id="the same"),
        pytest.param(
            {"cpu": "1", GPU: "0"},
            offering(cpu="1", gpu="1"),
            offering(cpu="1", gpu="2"),
            False,
            id="more of something of which none is requested",
        ),
        pytest.param(
            {GPU: "1"}, offering(memory="1"), offering(memory="1", gpu="1"), True, id="a new device"
        ),
        pytest.param(
            {}, offering(cpu="1"), offering(cpu="2", gpu="1"), False, id="nothing requested"
        ),
        pytest.param(
            {}, offering(pods="1"), offering(pods="2"), True, id="nothing requested, more pods"
        ),
        pytest.param(
            {"cpu": "1"},
            offering(cpu="1", pods="1"),
            offering(cpu="1", pods="2"),
            True,
            id="room for more pods",
        ),
        pytest.param(
            {"cpu": "2"},
            offering(cpu="1", pods="1"),
            offering(cpu="1", pods="2"),
            False,
            id="room for more pods, but not for this one",
        ),
        pytest.param({}, offering(pods="2"), offering(pods="1"), False, id="room for fewer pods"),
    ],
)
def test_nodes_that_change(requests: ResourceList, before: Node, now: Node, want: bool) -> None:
    waiting = pod("p", requests=requests)
    assert helps(Lab(), PLUGIN, waiting, updated(ALLOCATABLE, before, now)) is want


# --- what cannot be read ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        added(offering(cpu="a lot")),
        updated(ALLOCATABLE, offering(cpu="a lot"), offering(cpu="1")),
        updated(ALLOCATABLE, offering(cpu="1"), offering(cpu="a lot")),
        shrinking({"cpu": "a lot"}, {"cpu": "1"}),
        shrinking({"cpu": "1"}, {"cpu": "less"}),
    ],
    ids=["new node", "node before", "node now", "pod before", "pod now"],
)
def test_a_pod_is_tried_rather_than_forgotten(change: Change[Any]) -> None:
    assert helps(Lab(), PLUGIN, pod("p", cpu="8"), change)


# --- many pods, one change --------------------------------------------------------------------


def test_changes_are_told_apart() -> None:
    """What was worked out for one change is not taken for the next."""
    lab = Lab()
    waiting = pod("p", cpu="1")
    cpu, memory = (shrinking({name: "2"}, {name: "1"}) for name in ("cpu", "memory"))
    asked = [helps(lab, PLUGIN, waiting, change) for change in (cpu, memory, cpu, cpu, memory)]
    assert asked == [True, False, True, True, False]
    small, large = added(offering(cpu="500m")), added(offering(cpu="2"))
    asked = [helps(lab, PLUGIN, waiting, change) for change in (small, large, small)]
    assert asked == [False, True, False]
