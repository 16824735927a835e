"""InterPodAffinity, when pods and nodes change: is there somebody to be near to, or one less to
be away from?
"""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.core import Namespace, Node, Pod, PodAffinityTerm
from kubesched.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from kubesched.queue.events import Action
from kubesched.queue.hints import Change
from tests.support.objects import must, node, pod, pod_term, should
from tests.support.scheduling import Lab

from .hinting import added, changed_itself, deleted, helps, updated

PLUGIN = "InterPodAffinity"
POD_LABEL, NODE_LABEL = Action.UPDATE_POD_LABEL, Action.UPDATE_NODE_LABEL

WEB, DB = pod_term("zone", app="web"), pod_term("zone", app="db")
NEAR_WEB = pod("p", near=must(WEB))
AWAY_FROM_WEB = pod("p", away_from=must(WEB))


def there(name: str = "o", **labels: str) -> Pod:
    """Another pod, on a node."""
    return pod(name, node="n", labels=labels)


# --- pods that come ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "came", "want"),
    [
        pytest.param(NEAR_WEB, there(app="web"), True, id="to be near to"),
        pytest.param(NEAR_WEB, there(app="db"), False, id="another kind"),
        pytest.param(NEAR_WEB, pod("o", labels={"app": "web"}), False, id="on no node yet"),
        pytest.param(
            NEAR_WEB, pod("o", nominated="n", labels={"app": "web"}), True, id="soon on a node"
        ),
        pytest.param(
            NEAR_WEB,
            pod("o", namespace="b", node="n", labels={"app": "web"}),
            False,
            id="elsewhere",
        ),
        pytest.param(AWAY_FROM_WEB, there(app="db"), False, id="to be away from others"),
        pytest.param(pod("p"), there(app="web"), False, id="to be near to nobody"),
        pytest.param(
            pod("p", near=should((1, WEB))),
            there(app="web"),
            False,
            id="a preference does not count",
        ),
    ],
)
def test_pods_that_come(waiting: Pod, came: Pod, want: bool) -> None:
    assert helps(Lab(), PLUGIN, waiting, added(came)) is want


@pytest.mark.parametrize(
    ("labels", "want"),
    [({"app": "web"}, False), ({"tier": "1"}, False), ({"app": "web", "tier": "1"}, True)],
)
def test_one_pod_must_be_what_all_terms_are_about(labels: dict[str, str], want: bool) -> None:
    waiting = pod("p", near=must(WEB, pod_term("host", tier="1")))
    assert helps(Lab(), PLUGIN, waiting, added(there(**labels))) is want


# --- pods that change their labels ------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "old", "new", "want"),
    [
        pytest.param(NEAR_WEB, there(app="db"), there(app="web"), True, id="to be near to now"),
        pytest.param(NEAR_WEB, there(), there(app="web"), True, id="labelled for the first time"),
        pytest.param(
            NEAR_WEB, there(app="web"), there(app="web", v="2"), False, id="as near as before"
        ),
        pytest.param(NEAR_WEB, there(app="web"), there(app="db"), False, id="not any more"),
        pytest.param(NEAR_WEB, there(app="db"), there(app="mq"), False, id="never"),
        pytest.param(
            NEAR_WEB,
            pod("o", labels={"app": "db"}),
            pod("o", labels={"app": "web"}),
            False,
            id="on no node",
        ),
        pytest.param(
            AWAY_FROM_WEB, there(app="web"), there(app="db"), True, id="no need to be away now"
        ),
        pytest.param(AWAY_FROM_WEB, there(app="db"), there(app="web"), False, id="a need arose"),
        pytest.param(
            AWAY_FROM_WEB, there(app="web"), there(app="web", v="2"), False, id="still away from it"
        ),
    ],
)
def test_pods_that_change_labels(waiting: Pod, old: Pod, new: Pod, want: bool) -> None:
    assert helps(Lab(), PLUGIN, waiting, updated(POD_LABEL, old, new)) is want


def test_its_own_labels_change() -> None:
    old, new = pod("p", labels={"app": "db"}), pod("p", labels={"app": "web"})
    assert helps(Lab(), PLUGIN, new, changed_itself(POD_LABEL, old, new))


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        ({"app": "web"}, {"app": "web", "tier": "1"}, True),
        ({"app": "web"}, {"tier": "1"}, False),
        ({"app": "web", "tier": "1"}, {"app": "web"}, False),
    ],
)
def test_near_to_several(old: dict[str, str], new: dict[str, str], want: bool) -> None:
    waiting = pod("p", near=must(WEB, pod_term("host", tier="1")))
    change = updated(POD_LABEL, there(**old), there(**new))
    assert helps(Lab(), PLUGIN, waiting, change) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        ({"app": "web", "tier": "1"}, {"tier": "1"}, False),
        ({"app": "web", "tier": "1"}, {}, True),
        ({"app": "web"}, {}, True),
        ({"app": "web"}, {"tier": "1"}, False),
    ],
)
def test_away_from_several(old: dict[str, str], new: dict[str, str], want: bool) -> None:
    """One term suffices to keep a pod away, so none may be left."""
    waiting = pod("p", away_from=must(WEB, pod_term("host", tier="1")))
    change = updated(POD_LABEL, there(**old), there(**new))
    assert helps(Lab(), PLUGIN, waiting, change) is want


# --- pods that go -----------------------------------------------------------------------------

WEB_POD = pod("p", labels={"app": "web"})


@pytest.mark.parametrize(
    ("waiting", "gone", "want"),
    [
        pytest.param(AWAY_FROM_WEB, there(app="web"), True, id="to be away from"),
        pytest.param(AWAY_FROM_WEB, there(app="db"), False, id="another kind"),
        pytest.param(AWAY_FROM_WEB, pod("o", labels={"app": "web"}), False, id="from no node"),
        pytest.param(
            AWAY_FROM_WEB, pod("o", nominated="n", labels={"app": "web"}), True, id="nominated"
        ),
        pytest.param(
            AWAY_FROM_WEB,
            pod("o", nominated="n", labels={"app": "db"}),
            False,
            id="another kind, nominated",
        ),
        pytest.param(NEAR_WEB, there(app="web"), False, id="to be near to"),
        pytest.param(
            pod("p", away_from=must(DB, WEB)),
            there(app="web"),
            True,
            id="to be away from by one of two terms",
        ),
        pytest.param(
            WEB_POD, pod("o", node="n", away_from=must(WEB)), True, id="it kept such pods away"
        ),
        pytest.param(
            WEB_POD, pod("o", node="n", away_from=must(DB)), False, id="it kept others away"
        ),
        pytest.param(
            WEB_POD, pod("o", away_from=must(WEB)), False, id="it kept them away from nowhere"
        ),
        pytest.param(
            WEB_POD, pod("o", node="n", near=must(WEB)), False, id="it was near such pods"
        ),
        pytest.param(
            WEB_POD,
            pod("o", node="n", away_from=should((1, WEB))),
            False,
            id="it would rather have had them away",
        ),
        pytest.param(
            WEB_POD,
            pod("o", namespace="b", node="n", away_from=must(WEB)),
            False,
            id="it kept pods of its own namespace away",
        ),
        pytest.param(
            pod("p", labels={"app": "db"}, away_from=must(WEB)),
            pod("o", node="n", labels={"app": "db"}, away_from=must(WEB)),
            False,
            id="neither minded the other",
        ),
        pytest.param(
            WEB_POD,
            pod("o", node="n", away_from=must(WEB, DB)),
            True,
            id="one of its two terms was about such pods",
        ),
    ],
)
def test_pods_that_go(waiting: Pod, gone: Pod, want: bool) -> None:
    assert helps(Lab(), PLUGIN, waiting, deleted(gone)) is want


# --- namespaces -------------------------------------------------------------------------------

ALL = LabelSelector()
TEAM_RED = LabelSelector(match_labels={"team": "red"})
NOT_RED = LabelSelector(
    match_expressions=(LabelSelectorRequirement(key="team", operator="NotIn", values=("red",)),)
)


def web_in(*namespaces: str, selected: LabelSelector | None = None) -> PodAffinityTerm:
    """A term about web pods of some namespaces, which may be selected by their labels."""
    return PodAffinityTerm(
        topology_key="zone",
        label_selector=LabelSelector(match_labels={"app": "web"}),
        namespaces=namespaces,
        namespace_selector=selected,
    )


def lab_with_namespaces() -> Lab:
    """A cluster with a namespace of the red team's and one of the blue team's."""
    lab = Lab()
    for name in ("red", "blue"):
        meta = ObjectMeta(name=name, labels={"team": name})
        lab.cluster.namespaces.put(Namespace(metadata=meta))
    return lab


NAMESPACES = [
    pytest.param(web_in("red"), "red", True, id="listed"),
    pytest.param(web_in("red"), "default", False, id="not listed, though the pod's own"),
    pytest.param(web_in(selected=TEAM_RED), "red", True, id="selected"),
    pytest.param(web_in(selected=TEAM_RED), "blue", False, id="not selected"),
    pytest.param(web_in(selected=TEAM_RED), "unknown", False, id="of a namespace nobody saw"),
    pytest.param(web_in("blue", selected=TEAM_RED), "blue", True, id="not selected but listed"),
    pytest.param(web_in(selected=ALL), "blue", True, id="all"),
    pytest.param(web_in(selected=ALL), "unknown", True, id="all, one that nobody saw included"),
    pytest.param(web_in(selected=NOT_RED), "blue", True, id="all but some"),
    pytest.param(web_in(selected=NOT_RED), "red", False, id="one of those"),
    pytest.param(
        web_in(selected=NOT_RED), "unknown", False, id="all but some, of a namespace nobody saw"
    ),
]


@pytest.mark.parametrize(("about", "namespace", "want"), NAMESPACES)
def test_namespaces_of_own_terms(about: PodAffinityTerm, namespace: str, want: bool) -> None:
    lab = lab_with_namespaces()
    other = pod("o", namespace=namespace, node="n", labels={"app": "web"})
    assert helps(lab, PLUGIN, pod("p", near=must(about)), added(other)) is want
    assert helps(lab, PLUGIN, pod("p", away_from=must(about)), deleted(other)) is want


@pytest.mark.parametrize(("about", "namespace", "want"), NAMESPACES)
def test_namespaces_of_the_terms_of_others(
    about: PodAffinityTerm, namespace: str, want: bool
) -> None:
    waiting = pod("p", namespace=namespace, labels={"app": "web"})
    gone = pod("o", node="n", away_from=must(about))
    assert helps(lab_with_namespaces(), PLUGIN, waiting, deleted(gone)) is want


def test_namespaces_are_looked_up_when_something_changes() -> None:
    lab = lab_with_namespaces()
    waiting = pod("p", near=must(web_in(selected=TEAM_RED)))

    def helped_by(name: str) -> bool:
        return helps(
            lab,
            PLUGIN,
            waiting,
            added(pod(name, namespace="blue", node="n", labels={"app": "web"})),
        )

    assert not helped_by("first")
    repainted = ObjectMeta(name="blue", labels={"team": "red"})
    lab.cluster.namespaces.put(Namespace(metadata=repainted))
    assert helped_by("second")


# --- nodes ------------------------------------------------------------------------------------

PLAIN, IN_A, IN_B = node("n"), node("n", labels={"zone": "a"}), node("n", labels={"zone": "b"})
IN_A_TOO = node("n", labels={"zone": "a", "other": "label"})


@pytest.mark.parametrize(
    ("waiting", "change", "want"),
    [
        pytest.param(NEAR_WEB, added(IN_A), True, id="near, in a domain"),
        pytest.param(NEAR_WEB, added(PLAIN), False, id="near, in no domain"),
        pytest.param(
            pod("p", near=must(pod_term("host", app="web"), WEB)),
            added(IN_A),
            True,
            id="near, in a domain of one of two terms",
        ),
        pytest.param(AWAY_FROM_WEB, added(IN_A), True, id="away, in a domain"),
        pytest.param(AWAY_FROM_WEB, added(PLAIN), True, id="away, in no domain"),
        pytest.param(
            WEB_POD, added(IN_A), False, id="kept away by others, which kube-scheduler does not ask"
        ),
        pytest.param(pod("p", near=should((1, WEB))), added(IN_A), False, id="a preference"),
    ],
)
def test_nodes_that_come(waiting: Pod, change: Change[Any], want: bool) -> None:
    assert helps(Lab(), PLUGIN, waiting, change) is want


@pytest.mark.parametrize(
    ("old", "new", "near", "away"),
    [
        pytest.param(IN_A, IN_B, True, True, id="to another domain"),
        pytest.param(PLAIN, IN_A, True, False, id="into a domain"),
        pytest.param(IN_A, PLAIN, False, True, id="out of a domain"),
        pytest.param(IN_A, IN_A_TOO, False, False, id="within a domain"),
        pytest.param(
            PLAIN, node("n", labels={"other": "label"}), False, False, id="outside of all domains"
        ),
        pytest.param(
            PLAIN, node("n", labels={"zone": ""}), True, False, id="into the domain without a name"
        ),
    ],
)
def test_nodes_that_move(old: Node, new: Node, near: bool, away: bool) -> None:
    change = updated(NODE_LABEL, old, new)
    assert helps(Lab(), PLUGIN, NEAR_WEB, change) is near
    assert helps(Lab(), PLUGIN, AWAY_FROM_WEB, change) is away
    assert not helps(Lab(), PLUGIN, WEB_POD, change)


# --- what cannot be read ----------------------------------------------------------------------

MALFORMED = must(
    PodAffinityTerm(
        topology_key="zone",
        label_selector=LabelSelector(
            match_expressions=(LabelSelectorRequirement(key="app", operator="Like"),)
        ),
    )
)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        (added(there()), True),
        (deleted(there()), True),
        (updated(POD_LABEL, there(), there(app="web")), True),
        (added(node()), True),
        (updated(NODE_LABEL, PLAIN, PLAIN), True),
        (added(pod("o")), False),
    ],
    ids=["pod", "pod gone", "pod labelled", "node", "node labelled", "pod that cannot matter"],
)
def test_a_pod_with_malformed_terms_is_tried_rather_than_forgotten(
    change: Change[Any], want: bool
) -> None:
    assert helps(Lab(), PLUGIN, pod("p", near=MALFORMED), change) is want


def test_so_is_one_that_malformed_terms_of_another_may_have_been_about() -> None:
    gone = pod("o", node="n", away_from=MALFORMED)
    assert helps(Lab(), PLUGIN, pod("p"), deleted(gone))


# --- many pods, one change --------------------------------------------------------------------


def test_pods_with_the_same_terms_and_changes_are_told_apart() -> None:
    lab = Lab()
    web, db = added(there(app="web")), added(there(app="db"))
    near_db = pod("q", near=must(DB))
    asked = [
        helps(lab, PLUGIN, waiting, change)
        for change in (web, db, web)
        for waiting in (NEAR_WEB, near_db, pod("r", namespace="b", near=must(WEB)))
    ]
    assert asked == [True, False, False, False, True, False, True, False, False]
    gone = deleted(pod("o", node="n", away_from=must(WEB)))
    asked = [
        helps(lab, PLUGIN, pod(name, labels={"app": app}), gone)
        for name, app in (("a", "web"), ("b", "db"), ("c", "web"))
    ]
    assert asked == [True, False, True]
