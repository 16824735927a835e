"""NodeAffinity, when nodes come or change labels: does it match now what did not before?"""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.core import Node, Pod
from kubesched.config.args import NodeAffinityArgs
from kubesched.queue.events import Action
from kubesched.queue.hints import Change
from tests.support.objects import named, node, pod, requirement, requires, term
from tests.support.scheduling import Lab

from .hinting import added, helps, updated

PLUGIN = "NodeAffinity"
LABEL = Action.UPDATE_NODE_LABEL

SSD = requires(term(requirement("disk", "In", "ssd")))
WAITING = pod(node_affinity=SSD)
PLAIN, FAST = node("n"), node("n", labels={"disk": "ssd"})
RACK = requires(term(requirement("rack", "Exists")))


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(added(FAST), True, id="a node that matches came"),
        pytest.param(added(PLAIN), False, id="a node that does not match came"),
        pytest.param(updated(LABEL, PLAIN, FAST), True, id="it matches now"),
        pytest.param(updated(LABEL, FAST, PLAIN), False, id="it does not match any more"),
        pytest.param(
            updated(LABEL, PLAIN, node("n", labels={"k": "v"})), False, id="it never matched"
        ),
        pytest.param(
            updated(LABEL, FAST, node("n", labels={"disk": "ssd", "k": "v"})),
            False,
            id="it matches as before",
        ),
        pytest.param(
            updated(LABEL, FAST, node("n", cpu="64", labels={"disk": "ssd"})),
            False,
            id="another change of a node that matches",
        ),
    ],
)
def test_nodes(change: Change[Any], want: bool) -> None:
    assert helps(Lab(), PLUGIN, WAITING, change) is want


@pytest.mark.parametrize(
    ("waiting", "came", "want"),
    [
        pytest.param(pod(node_selector={"disk": "ssd"}), FAST, True, id="selector"),
        pytest.param(pod(node_selector={"disk": "ssd"}), PLAIN, False, id="selector, no label"),
        pytest.param(
            pod(node_selector={"zone": "a"}, node_affinity=SSD), FAST, False, id="only the affinity"
        ),
        pytest.param(
            pod(node_selector={"zone": "a"}, node_affinity=SSD),
            node("n", labels={"zone": "a"}),
            False,
            id="only the selector",
        ),
        pytest.param(pod(node_affinity=requires(named("n"))), PLAIN, True, id="its name"),
        pytest.param(pod(node_affinity=requires(named("m"))), PLAIN, False, id="another name"),
        pytest.param(
            pod(node_affinity=requires(named("m"), term(requirement("disk", "In", "ssd")))),
            FAST,
            True,
            id="one of two terms",
        ),
        pytest.param(pod(node_affinity=requires()), FAST, False, id="no term matches nothing"),
        pytest.param(pod(node_affinity=requires(term())), FAST, False, id="nor does an empty one"),
        pytest.param(pod(), PLAIN, True, id="nothing asked"),
    ],
)
def test_what_a_pod_asks_of_a_node(waiting: Pod, came: Node, want: bool) -> None:
    assert helps(Lab(), PLUGIN, waiting, added(came)) is want


# --- what the profile adds --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "change", "want"),
    [
        pytest.param(
            WAITING, added(node(labels={"rack": "1", "disk": "ssd"})), True, id="both match"
        ),
        pytest.param(WAITING, added(FAST), False, id="only the pod's own"),
        pytest.param(WAITING, added(node(labels={"rack": "1"})), False, id="only what is added"),
        pytest.param(pod(), added(node(labels={"rack": "1"})), True, id="a pod that asks nothing"),
        pytest.param(
            WAITING,
            updated(LABEL, node(labels={"rack": "1"}), node(labels={"rack": "1", "disk": "ssd"})),
            True,
            id="the pod's own match now",
        ),
        pytest.param(
            WAITING,
            updated(LABEL, FAST, node(labels={"rack": "1", "disk": "ssd"})),
            False,
            id="what is added matches now, which kube-scheduler does not look at",
        ),
    ],
)
def test_what_the_profile_adds_must_match_as_well(
    waiting: Pod, change: Change[Any], want: bool
) -> None:
    lab = Lab(args={PLUGIN: NodeAffinityArgs(added_affinity=RACK)})
    assert helps(lab, PLUGIN, waiting, change) is want


# --- what is malformed ------------------------------------------------------------------------

MALFORMED = term(requirement("disk", "Like", "ssd"))


@pytest.mark.parametrize(
    ("waiting", "change", "want"),
    [
        pytest.param(pod(node_affinity=requires(MALFORMED)), added(PLAIN), True, id="nobody knows"),
        pytest.param(
            pod(node_affinity=requires(MALFORMED)),
            updated(LABEL, PLAIN, FAST),
            True,
            id="neither before nor after",
        ),
        pytest.param(
            pod(node_affinity=requires(MALFORMED, term(requirement("disk", "In", "ssd")))),
            updated(LABEL, FAST, PLAIN),
            True,
            id="not any more, now that the other term does not match",
        ),
        pytest.param(
            pod(node_selector={"zone": "a"}, node_affinity=requires(MALFORMED)),
            added(PLAIN),
            False,
            id="the selector does not match anyway",
        ),
        pytest.param(
            pod(node_affinity=requires(MALFORMED, term(requirement("disk", "In", "ssd")))),
            updated(LABEL, FAST, node("n", labels={"disk": "ssd", "k": "v"})),
            False,
            id="another term matches as before",
        ),
    ],
)
def test_a_malformed_term_is_no_reason_to_forget_a_pod(
    waiting: Pod, change: Change[Any], want: bool
) -> None:
    assert helps(Lab(), PLUGIN, waiting, change) is want
