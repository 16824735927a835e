"""PodTopologySpread, when pods and nodes change: do counts or domains of hard constraints?"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubesched.api.core import Node, Pod, Toleration, TopologySpreadConstraint
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from kubesched.api.workloads import PlainSelectorSpec, Service
from kubesched.config.args import LIST_DEFAULTING, PodTopologySpreadArgs
from kubesched.queue.events import Action
from kubesched.queue.hints import Change
from tests.support.objects import node, pod, spread_over
from tests.support.scheduling import Lab

from .hinting import added, changed_itself, deleted, helps, registration, updated

PLUGIN = "PodTopologySpread"
POD_LABEL, TOLERATION = Action.UPDATE_POD_LABEL, Action.UPDATE_POD_TOLERATION
NODE_LABEL, TAINT = Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_TAINT

OVER_ZONES = spread_over("zone", app="web")
OVER_HOSTS = spread_over("host", tier="1")
WEB = {"app": "web"}


def spread(*constraints: TopologySpreadConstraint, **labels: str) -> Pod:
    """A pod that waits, of the web kind unless said otherwise."""
    return pod("p", labels=labels or WEB, spread=constraints)


def there(name: str = "o", **labels: str) -> Pod:
    """Another pod, on a node."""
    return pod(name, node="n", labels=labels)


def honouring(constraint: TopologySpreadConstraint, policy: str | None) -> TopologySpreadConstraint:
    """The constraint with a policy for taints."""
    return replace(constraint, node_taints_policy=policy)


# --- pods that come and go --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "want"),
    [
        pytest.param(there(app="web"), True, id="of the kind"),
        pytest.param(there(app="db"), False, id="of another kind"),
        pytest.param(there(), False, id="without labels"),
        pytest.param(pod("o", labels=WEB), False, id="on no node"),
        pytest.param(pod("o", nominated="n", labels=WEB), True, id="nominated"),
        pytest.param(
            pod("o", nominated="n", labels={"app": "db"}), False, id="of another kind, nominated"
        ),
        pytest.param(pod("o", namespace="b", node="n", labels=WEB), False, id="elsewhere"),
    ],
)
def test_pods_that_come_and_go(other: Pod, want: bool) -> None:
    waiting = spread(OVER_ZONES)
    assert helps(Lab(), PLUGIN, waiting, added(other)) is want
    assert helps(Lab(), PLUGIN, waiting, deleted(other)) is want


@pytest.mark.parametrize(
    ("constraints", "want"),
    [
        pytest.param((spread_over("zone", soft=True, app="web"),), False, id="a soft one"),
        pytest.param((OVER_HOSTS, OVER_ZONES), True, id="one of two"),
        pytest.param((spread_over("zone"),), True, id="about all pods"),
        pytest.param((replace(OVER_ZONES, label_selector=None),), False, id="about no pods"),
    ],
)
def test_constraints(constraints: tuple[TopologySpreadConstraint, ...], want: bool) -> None:
    assert helps(Lab(), PLUGIN, spread(*constraints), added(there(app="web"))) is want


@pytest.mark.parametrize(("version", "want"), [("1", True), ("2", False)])
def test_labels_that_make_a_pod_of_the_same_kind(version: str, want: bool) -> None:
    constraint = replace(OVER_ZONES, match_label_keys=("version", "absent"))
    waiting = spread(constraint, app="web", version="1")
    other = there(app="web", version=version)
    assert helps(Lab(), PLUGIN, waiting, added(other)) is want


# --- pods that change -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(there(), there(app="web"), True, id="of the kind now"),
        pytest.param(there(app="web"), there(), True, id="not of the kind any more"),
        pytest.param(
            there(app="web", v="1"), there(app="web", v="2"), False, id="still of the kind"
        ),
        pytest.param(there(app="db"), there(app="mq"), False, id="never of the kind"),
        pytest.param(
            there(app="web"), there(app="web", tier="1"), True, id="of another kind that matters"
        ),
        pytest.param(
            there(app="web", tier="1"), there(app="web", tier="2"), True, id="of that no more"
        ),
        pytest.param(
            there(app="web", tier="2"), there(app="web", tier="3"), False, id="never of that"
        ),
        pytest.param(pod("o", labels={"app": "db"}), pod("o", labels=WEB), False, id="on no node"),
        pytest.param(
            pod("o", labels={"app": "db"}), there(app="web"), False, id="on no node before"
        ),
        pytest.param(
            pod("o", namespace="b", node="n"),
            pod("o", namespace="b", node="n", labels=WEB),
            False,
            id="elsewhere",
        ),
    ],
)
def test_pods_that_change_labels(old: Pod, new: Pod, want: bool) -> None:
    waiting = spread(OVER_ZONES, OVER_HOSTS)
    assert helps(Lab(), PLUGIN, waiting, updated(POD_LABEL, old, new)) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(pod("p"), pod("p", labels=WEB), True, id="of the kind now"),
        pytest.param(
            pod("p", labels=WEB),
            pod("p", labels={**WEB, "v": "2"}),
            False,
            id="still of the kind",
        ),
    ],
)
def test_its_own_labels_change(old: Pod, new: Pod, want: bool) -> None:
    waiting = spread(OVER_ZONES, OVER_HOSTS)
    assert helps(Lab(), PLUGIN, waiting, changed_itself(POD_LABEL, old, new)) is want


@pytest.mark.parametrize(
    ("policy", "want"),
    [
        pytest.param("Honor", True, id="taints matter"),
        pytest.param("Ignore", False, id="taints do not matter"),
        pytest.param(None, False, id="nor by default"),
    ],
)
def test_its_own_tolerations_change(policy: str | None, want: bool) -> None:
    waiting = spread(honouring(OVER_ZONES, policy), OVER_HOSTS)
    old, new = (
        pod("p", labels=WEB, tolerations=tolerations)
        for tolerations in ((), (Toleration(operator="Exists"),))
    )
    assert helps(Lab(), PLUGIN, waiting, changed_itself(TOLERATION, old, new)) is want


def test_a_label_of_its_own_is_no_toleration() -> None:
    waiting = spread(honouring(OVER_ZONES, "Honor"))
    change = changed_itself(POD_LABEL, pod("p", labels=WEB), pod("p", labels={**WEB, "v": "2"}))
    assert not helps(Lab(), PLUGIN, waiting, change)


# --- nodes ------------------------------------------------------------------------------------

A = node("n", labels={"zone": "a", "host": "1"})
A_HALF = node("n", labels={"zone": "a"})
OUTSIDE = node("n", labels={"other": "label"})


def tainted(labels: dict[str, str], *taints: str) -> Node:
    """A node with taints."""
    return node("n", labels=labels, taints=taints)


@pytest.mark.parametrize(
    ("subject", "one", "two"),
    [
        pytest.param(A, True, True, id="in all domains"),
        pytest.param(A_HALF, True, False, id="in one domain"),
        pytest.param(OUTSIDE, False, False, id="in no domain"),
        pytest.param(node("n"), False, False, id="without labels"),
    ],
)
def test_nodes_that_come_and_go(subject: Node, one: bool, two: bool) -> None:
    for change in (added(subject), deleted(subject)):
        assert helps(Lab(), PLUGIN, spread(OVER_ZONES), change) is one
        assert helps(Lab(), PLUGIN, spread(OVER_ZONES, OVER_HOSTS), change) is two


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(A, node("n", labels={"zone": "b", "host": "1"}), True, id="one domain"),
        pytest.param(A, node("n", labels={"zone": "b", "host": "2"}), True, id="both domains"),
        pytest.param(A, A_HALF, True, id="out of one domain"),
        pytest.param(A_HALF, A, True, id="into one domain"),
        pytest.param(
            A_HALF, node("n", labels={"zone": "b"}), False, id="one domain, but not in the other"
        ),
        pytest.param(A, A, False, id="nothing"),
        pytest.param(
            A, node("n", labels={"zone": "a", "host": "1", "k": "v"}), False, id="another label"
        ),
        pytest.param(OUTSIDE, node("n"), False, id="another label, in no domain"),
    ],
)
def test_nodes_that_change_labels(old: Node, new: Node, want: bool) -> None:
    waiting = spread(OVER_ZONES, OVER_HOSTS)
    assert helps(Lab(), PLUGIN, waiting, updated(NODE_LABEL, old, new)) is want


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({"zone": "a", "host": "1"}, True, id="in all domains"),
        pytest.param({"host": "1"}, False, id="in one domain"),
    ],
)
def test_nodes_that_change_taints(labels: dict[str, str], want: bool) -> None:
    """Whatever the policy for taints is, as in kube-scheduler."""
    change = updated(TAINT, tainted(labels, "a:NoSchedule"), tainted(labels, "b:NoSchedule"))
    assert helps(Lab(), PLUGIN, spread(OVER_ZONES, OVER_HOSTS), change) is want


# --- defaults ---------------------------------------------------------------------------------


def lab_with_defaults(*constraints: TopologySpreadConstraint) -> Lab:
    """A profile with default constraints, and a service that says who is of the web kind."""
    args = PodTopologySpreadArgs(
        defaulting_type=LIST_DEFAULTING,
        default_constraints=tuple(replace(each, label_selector=None) for each in constraints),
    )
    lab = Lab(args={PLUGIN: args})
    lab.cluster.workloads.services.put(
        Service(
            metadata=ObjectMeta(name="web", namespace="default"),
            spec=PlainSelectorSpec(selector=WEB),
        )
    )
    return lab


PLAIN_WEB, PLAIN_DB = pod("p", labels=WEB), pod("p", labels={"app": "db"})


@pytest.mark.parametrize(
    ("waiting", "change", "want"),
    [
        pytest.param(PLAIN_WEB, added(there(app="web")), True, id="a pod of its service"),
        pytest.param(PLAIN_WEB, added(there(app="db")), False, id="another pod"),
        pytest.param(PLAIN_DB, added(there(app="db")), False, id="a pod without a service"),
        pytest.param(PLAIN_WEB, added(A), True, id="a node in the domains"),
        pytest.param(PLAIN_WEB, added(OUTSIDE), False, id="a node outside"),
        pytest.param(PLAIN_DB, added(OUTSIDE), True, id="any node: nothing is asked of it"),
        pytest.param(
            spread(OVER_HOSTS), added(A_HALF), False, id="a pod's own constraints come first"
        ),
        pytest.param(
            spread(spread_over("host", soft=True, tier="1")),
            added(there(app="web")),
            False,
            id="even if they are soft",
        ),
    ],
)
def test_hard_defaults(waiting: Pod, change: Change[Any], want: bool) -> None:
    assert helps(lab_with_defaults(spread_over("zone")), PLUGIN, waiting, change) is want


def test_hard_defaults_follow_the_services() -> None:
    lab = lab_with_defaults(spread_over("zone"))
    change = added(there(app="db"))
    assert not helps(lab, PLUGIN, PLAIN_DB, change)
    service = Service(
        metadata=ObjectMeta(name="db", namespace="default"),
        spec=PlainSelectorSpec(selector={"app": "db"}),
    )
    lab.cluster.workloads.services.put(service)
    assert helps(lab, PLUGIN, PLAIN_DB, change)


@pytest.mark.parametrize(
    "lab", [Lab(), lab_with_defaults(spread_over("zone", soft=True))], ids=["system", "list"]
)
def test_soft_defaults_do_not_count(lab: Lab) -> None:
    assert not helps(lab, PLUGIN, PLAIN_WEB, added(there(app="web")))
    assert helps(lab, PLUGIN, PLAIN_WEB, added(OUTSIDE))
    assert helps(lab, PLUGIN, PLAIN_WEB, updated(TAINT, OUTSIDE, tainted({}, "a:NoSchedule")))
    assert not helps(lab, PLUGIN, PLAIN_WEB, updated(NODE_LABEL, A, OUTSIDE))


def test_nodes_are_asked_about_once_for_a_signature_unless_defaults_tell_its_pods_apart() -> None:
    event = added(A).event
    assert registration(Lab(), PLUGIN, event).signature_hint is not None
    assert registration(lab_with_defaults(spread_over("zone")), PLUGIN, event).hint is not None


# --- what cannot be read ----------------------------------------------------------------------

MALFORMED = replace(
    OVER_ZONES,
    label_selector=LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="app", operator="Like"),)
    ),
)


@pytest.mark.parametrize("keys", [(), ("version",)])
@pytest.mark.parametrize(
    ("change", "want"),
    [
        (added(there()), True),
        (deleted(there()), True),
        (added(OUTSIDE), True),
        (updated(NODE_LABEL, OUTSIDE, OUTSIDE), True),
        (added(pod("o")), False),
    ],
    ids=["pod", "pod gone", "node", "node labelled", "pod that cannot matter"],
)
def test_a_pod_with_a_malformed_constraint_is_tried_rather_than_forgotten(
    change: Change[Any], want: bool, keys: tuple[str, ...]
) -> None:
    waiting = spread(replace(MALFORMED, match_label_keys=keys))
    assert helps(Lab(), PLUGIN, waiting, change) is want
