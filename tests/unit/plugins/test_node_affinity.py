"""NodeAffinity: selectors, required terms, named nodes, preferences, and the profile's own."""

from __future__ import annotations

import pytest

from kubesched.api.core import NodeAffinity, Pod
from kubesched.config.args import NodeAffinityArgs
from kubesched.framework.attempt_error import AttemptError
from kubesched.framework.plugin import PreFilterResult
from kubesched.framework.status import SKIP, SUCCESS, unresolvable
from tests.support.objects import named, node, pod, prefers, requirement, requires, term
from tests.support.scheduling import Lab

NO_MATCH = unresolvable("node(s) didn't match Pod's node affinity/selector")
ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")

SSD = term(requirement("disk", "In", "ssd"))
NEW = term(requirement("gen", "Gt", "5"))
FAST_NEW = node("fast-new", labels={"disk": "ssd", "gen": "7"})
FAST_OLD = node("fast-old", labels={"disk": "ssd", "gen": "3"})
SLOW_NEW = node("slow-new", labels={"disk": "hdd", "gen": "7"})
BARE = node("bare")
NODES = (FAST_NEW, FAST_OLD, SLOW_NEW, BARE)


def _lab(added: NodeAffinity | None = None) -> Lab:
    return Lab(*NODES, args={"NodeAffinity": NodeAffinityArgs(added_affinity=added)})


def _pre_filter(asking: Pod, added: NodeAffinity | None = None) -> PreFilterResult:
    lab = _lab(added)
    result = lab.plugin("NodeAffinity").pre_filter(lab.pending(asking).signature)
    assert isinstance(result, PreFilterResult)
    return result


# --- PreFilter --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asking", "want"),
    [
        pytest.param(pod(), PreFilterResult(SKIP), id="asks nothing"),
        pytest.param(pod(node_affinity=prefers((1, SSD))), PreFilterResult(SKIP), id="prefers"),
        pytest.param(pod(node_selector={}), PreFilterResult(), id="empty selector is a selector"),
        pytest.param(pod(node_selector={"disk": "ssd"}), PreFilterResult(), id="selector"),
        pytest.param(pod(node_affinity=requires(SSD)), PreFilterResult(), id="required"),
        pytest.param(pod(node_affinity=requires()), PreFilterResult(), id="no terms"),
        pytest.param(
            pod(node_affinity=requires(named("a"))),
            PreFilterResult(node_names=frozenset({"a"})),
            id="names a node",
        ),
        pytest.param(
            pod(node_affinity=requires(named("a"), named("b"))),
            PreFilterResult(node_names=frozenset({"a", "b"})),
            id="every term names one: any of them",
        ),
        pytest.param(
            pod(node_affinity=requires(named("a"), SSD)),
            PreFilterResult(),
            id="a term that names none may match any node",
        ),
        pytest.param(
            pod(node_affinity=requires(named("a", operator="NotIn"))),
            PreFilterResult(),
            id="not that one, so any other",
        ),
        pytest.param(
            pod(
                node_affinity=requires(
                    term(
                        fields=[
                            requirement("metadata.name", "In", "a"),
                            requirement("metadata.name", "In", "b"),
                        ]
                    )
                )
            ),
            PreFilterResult(unresolvable("pod affinity terms conflict")),
            id="one term names two nodes at once",
        ),
        pytest.param(
            pod(
                node_affinity=requires(
                    term(
                        fields=[
                            requirement("metadata.name", "In", "a"),
                            requirement("metadata.name", "In", "b"),
                        ]
                    ),
                    named("c"),
                )
            ),
            PreFilterResult(node_names=frozenset({"c"})),
            id="the other term is still possible",
        ),
    ],
)
def test_pre_filter(asking: Pod, want: PreFilterResult) -> None:
    assert _pre_filter(asking) == want


def test_an_enforced_affinity_is_never_skipped() -> None:
    assert _pre_filter(pod(), added=requires(SSD)).status == SUCCESS
    assert _pre_filter(pod(), added=prefers((1, SSD))).status == SKIP


# --- Filter -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asking", "fits"),
    [
        pytest.param(pod(node_selector={}), ["fast-new", "fast-old", "slow-new", "bare"], id="any"),
        pytest.param(pod(node_selector={"disk": "ssd"}), ["fast-new", "fast-old"], id="selector"),
        pytest.param(pod(node_affinity=requires(NEW)), ["fast-new", "slow-new"], id="Gt"),
        pytest.param(
            pod(node_affinity=requires(NEW, SSD)),
            ["fast-new", "fast-old", "slow-new"],
            id="any term",
        ),
        pytest.param(
            pod(node_selector={"disk": "ssd"}, node_affinity=requires(NEW)),
            ["fast-new"],
            id="selector and terms",
        ),
        pytest.param(pod(node_affinity=requires()), [], id="no terms match nothing"),
        pytest.param(pod(node_affinity=requires(term())), [], id="an empty term matches nothing"),
        pytest.param(
            pod(node_affinity=requires(term(requirement("gen", "Gt", "many")))),
            [],
            id="a malformed term matches nothing",
        ),
        pytest.param(
            pod(node_affinity=requires(term(requirement("disk", "NotIn", "ssd")))),
            ["slow-new", "bare"],
            id="NotIn matches nodes without the label",
        ),
        pytest.param(pod(node_affinity=requires(named("bare"))), ["bare"], id="by name"),
    ],
)
def test_filter(asking: Pod, fits: list[str]) -> None:
    lab = _lab()
    assert lab.feasible(asking) == fits
    rejected = lab.rejections("NodeAffinity", asking)
    assert rejected == {
        each.metadata.name: NO_MATCH for each in NODES if each.metadata.name not in fits
    }


def test_the_enforced_affinity_is_named_first() -> None:
    lab = _lab(added=requires(NEW))
    assert lab.rejections("NodeAffinity", pod(node_selector={"disk": "ssd"})) == {
        "fast-old": ENFORCED,
        "slow-new": NO_MATCH,
        "bare": ENFORCED,
    }


# --- scores -----------------------------------------------------------------------------------


def test_matching_preferences_add_up() -> None:
    lab = _lab()
    asking = pod(node_affinity=prefers((30, SSD), (12, NEW)))
    assert lab.scores("NodeAffinity", asking, raw=True) == {
        "fast-new": 42,
        "fast-old": 30,
        "slow-new": 12,
        "bare": 0,
    }
    # 100 * 30 / 42, 100 * 12 / 42
    assert lab.scores("NodeAffinity", asking) == {
        "fast-new": 100,
        "fast-old": 71,
        "slow-new": 28,
        "bare": 0,
    }


def test_the_enforced_preferences_add_to_the_pod_s() -> None:
    lab = _lab(added=prefers((5, NEW)))
    asking = pod(node_affinity=prefers((30, SSD)))
    assert lab.scores("NodeAffinity", asking, raw=True) == {
        "fast-new": 35,
        "fast-old": 30,
        "slow-new": 5,
        "bare": 0,
    }
    assert lab.scores("NodeAffinity", pod(), raw=True)["slow-new"] == 5


def test_nothing_preferred_is_skipped_but_an_empty_list_is_not() -> None:
    lab = _lab()
    assert "NodeAffinity" not in lab.plugin_scores(pod())
    assert "NodeAffinity" not in lab.plugin_scores(pod(node_affinity=requires(SSD)))
    assert lab.scores("NodeAffinity", pod(node_affinity=prefers())) == dict.fromkeys(
        ("fast-new", "fast-old", "slow-new", "bare"), 0
    )


def test_terms_without_weight_or_content_do_not_count() -> None:
    lab = _lab()
    asking = pod(node_affinity=prefers((0, SSD), (9, term()), (4, NEW)))
    assert lab.scores("NodeAffinity", asking, raw=True)["fast-new"] == 4


def test_a_malformed_preference_is_an_error() -> None:
    lab = _lab()
    bad = pod(node_affinity=prefers((3, SSD), (1, term(requirement("gen", "Gt", "many")))))
    with pytest.raises(AttemptError) as raised:
        lab.totals(bad)
    text = str(raised.value)
    assert text.startswith('running PreScore plugin "NodeAffinity": [1].matchExpressions[0]')
    assert '"many"' in text


def test_a_malformed_preference_does_not_count_if_its_weight_is_zero() -> None:
    lab = _lab()
    asking = pod(node_affinity=prefers((0, term(requirement("gen", "Gt", "many")))))
    assert set(lab.scores("NodeAffinity", asking).values()) == {0}
