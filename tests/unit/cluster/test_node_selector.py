"""Node selectors over columns say what node selectors on objects say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api import labels, names
from kubesched.api.core import NodeSelector, NodeSelectorTerm
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_selector import SelectorMatch
from kubesched.cluster.node_table import FIRST_CAPACITY, NodeTable
from kubesched.cluster.vocabulary import STALE_VALUES
from tests.support.objects import named, node, requirement, term


def _matching(table: NodeTable, match: SelectorMatch) -> list[str]:
    result = match(NodeRows.all_of(table))
    return sorted(name for name in table.names() if result[table.row_of(name)])


def _table(**node_labels: dict[str, str]) -> NodeTable:
    table = NodeTable()
    for name, each in node_labels.items():
        table.put_node(node(name, labels=each))
    return table


def _selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


def test_all_labels_and_any_term() -> None:
    table = _table(
        a={"disk": "ssd", "gen": "3"}, b={"disk": "hdd", "gen": "5"}, c={"disk": "ssd"}, d={}
    )
    newer = term(requirement("gen", "Gt", "2"))
    assert _matching(table, SelectorMatch(None, None)) == ["a", "b", "c", "d"]
    assert _matching(table, SelectorMatch({"disk": "ssd"}, None)) == ["a", "c"]
    assert _matching(table, SelectorMatch({"disk": "ssd"}, _selector(newer))) == ["a"]
    either = _selector(newer, term(requirement("disk", "DoesNotExist")))
    assert _matching(table, SelectorMatch(None, either)) == ["a", "b", "d"]


def test_a_selector_without_terms_and_an_empty_term_match_nothing() -> None:
    table = _table(a={})
    assert _matching(table, SelectorMatch(None, _selector())) == []
    assert _matching(table, SelectorMatch(None, _selector(term()))) == []


def test_a_malformed_term_matches_nothing_and_leaves_the_others_alone() -> None:
    table = _table(a={"disk": "ssd"})
    malformed = term(requirement("disk", "In"))
    two_names = named("a", "b")
    good = term(requirement("disk", "Exists"))
    assert _matching(table, SelectorMatch(None, _selector(malformed))) == []
    assert _matching(table, SelectorMatch(None, _selector(two_names))) == []
    assert _matching(table, SelectorMatch(None, _selector(malformed, good))) == ["a"]


def test_names_in_and_not_in() -> None:
    table = _table(a={}, b={})
    assert _matching(table, SelectorMatch(None, _selector(named("a")))) == ["a"]
    assert _matching(table, SelectorMatch(None, _selector(named("a", operator="NotIn")))) == ["b"]
    assert _matching(table, SelectorMatch(None, _selector(named("gone")))) == []
    assert _matching(table, SelectorMatch(None, _selector(named("gone", operator="NotIn")))) == [
        "a",
        "b",
    ]


def test_a_compiled_selector_follows_a_column_that_started_again() -> None:
    table = _table(a={"build": "0"})
    match = SelectorMatch({"build": "final"}, None)
    assert _matching(table, match) == []
    for number in range(STALE_VALUES * FIRST_CAPACITY + 1):
        table.put_node(node("a", labels={"build": str(number)}))
    table.put_node(node("b", labels={"build": "final"}))
    assert _matching(table, match) == ["b"]


_KEYS = st.sampled_from(["x", "y"])
_VALUES = st.sampled_from(["", "a", "b", "3", "7"])
_REQUIREMENTS = st.one_of(
    st.builds(
        lambda key, operator, values: requirement(key, operator, *values),
        _KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.lists(_VALUES, min_size=1, max_size=3),
    ),
    st.builds(requirement, _KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(requirement, _KEYS, st.sampled_from(["Gt", "Lt"]), st.sampled_from(["3", "5", "x"])),
)
_TERMS = st.builds(
    lambda expressions, fields: term(*expressions, fields=fields),
    st.lists(_REQUIREMENTS, max_size=2),
    st.lists(
        st.builds(
            requirement,
            st.just(names.FIELD_NODE_NAME),
            st.sampled_from(["In", "NotIn"]),
            st.sampled_from(["n0", "n1", "gone"]),
        ),
        max_size=1,
    ),
)


@given(
    node_labels=st.lists(st.dictionaries(_KEYS, _VALUES), min_size=1, max_size=5),
    match_labels=st.none() | st.dictionaries(_KEYS, _VALUES, max_size=2),
    terms=st.none() | st.lists(_TERMS, max_size=3),
)
def test_columns_say_what_objects_say(
    node_labels: list[dict[str, str]],
    match_labels: dict[str, str] | None,
    terms: list[NodeSelectorTerm] | None,
) -> None:
    table = NodeTable()
    for number, each in enumerate(node_labels):
        table.put_node(node(f"n{number}", labels=each))
    selector = None if terms is None else _selector(*terms)
    match = SelectorMatch(match_labels, selector)

    def matches(name: str, each: dict[str, str]) -> bool:
        own = labels.from_match_labels(match_labels).matches(each)
        compiled = None if selector is None else labels.node_selector_terms(selector)
        fields = {names.FIELD_NODE_NAME: name}
        return own and (compiled is None or any(one.matches(each, fields) for one in compiled))

    want = [matches(f"n{number}", each) for number, each in enumerate(node_labels)]
    assert match(NodeRows.all_of(table)).tolist() == want
    backwards = np.arange(table.size, dtype=np.intp)[::-1]
    assert match(NodeRows(table, backwards)).tolist() == want[::-1]
