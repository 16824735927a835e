"""Which requirements of a node selector or affinity nodes do not meet, and what they have instead.

    requirement ── rows that do not meet it ── by the value that they have ──> Detail

A node must meet all of ``nodeSelector`` and one of the terms; a node that is rejected fails in
each of the terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from kubesched.api import labels, names
from kubesched.api.core import NodeSelector
from kubesched.api.labels import NodeTerm, Requirement
from kubesched.cluster.arrays import IndexArray
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.node_selector import LabelMatch, TermMatch, match_name
from kubesched.framework.detail import Detail

#: Longer lists of values are cut in texts.
_SHOWN_VALUES: Final = 4


def mismatches(
    match_labels: Mapping[str, str] | None,
    selector: NodeSelector | None,
    nodes: NodeRows,
    reason: str,
) -> list[Detail]:
    """Return what rejected nodes lack, what most of them lack first."""
    found: list[Detail] = []
    for requirement in labels.from_match_labels(match_labels).requirements:
        found += _of_label(requirement, nodes, reason, "node selector")
    if selector is not None:
        found += _of_terms(labels.node_selector_terms(selector), nodes, reason)
    return sorted(found, key=lambda each: -len(each.rows))


def _of_terms(terms: Sequence[NodeTerm], nodes: NodeRows, reason: str) -> Iterator[Detail]:
    matching = nodes.none()
    for term in terms:
        matching |= TermMatch(term)(nodes)
    rejected = NodeRows(nodes.table, nodes.row_numbers()[~matching])
    if len(rejected) and not terms:
        text = "the node affinity has no terms"
        yield Detail(text, {}, reason, _rows(rejected.row_numbers()))
    for number, term in enumerate(terms, start=1):
        named = "node affinity" if len(terms) == 1 else f"node affinity term {number}"
        yield from _of_term(term, rejected, reason, named)


def _of_term(term: NodeTerm, nodes: NodeRows, reason: str, named: str) -> Iterator[Detail]:
    if not len(nodes):
        return
    if term.errors or not (term.labels or term.fields):
        why = f"malformed: {term.errors[0]}" if term.errors else "empty, and matches no node"
        yield Detail(f"{named} is {why}", {}, reason, _rows(nodes.row_numbers()))
        return
    for requirement in term.labels:
        yield from _of_label(requirement, nodes, reason, named)
    for requirement in term.fields:
        rows = nodes.row_numbers()[~match_name(requirement, nodes)]
        if len(rows):
            text = f"{named} {_shown(requirement)}: another node is named"
            yield Detail(text, _values(requirement), reason, _rows(rows))


def _of_label(
    requirement: Requirement, nodes: NodeRows, reason: str, named: str
) -> Iterator[Detail]:
    failing = nodes.row_numbers()[~LabelMatch(requirement)(nodes)]
    column = nodes.table.label_column(requirement.key)
    ids = column.ids[failing]
    for number in np.unique(ids).tolist():
        value = column.vocabulary.values[number]
        has = "the node has no such label" if value is None else f"the node has {value}"
        yield Detail(
            f"{named} {_shown(requirement)}: {has}",
            {**_values(requirement), "has": value},
            reason,
            _rows(failing[ids == number]),
        )


def _shown(requirement: Requirement) -> str:
    values: Sequence[str] = requirement.values
    if len(values) <= _SHOWN_VALUES:
        return str(requirement)
    first = ",".join(values[:_SHOWN_VALUES])
    more = len(values) - _SHOWN_VALUES
    return f"{requirement.key} {requirement.operator.lower()} ({first} and {more} more)"


def _values(requirement: Requirement) -> dict[str, object]:
    key = "field" if requirement.key == names.FIELD_NODE_NAME else "key"
    return {
        key: requirement.key,
        "operator": requirement.operator,
        "values": list(requirement.values),
    }


def _rows(rows: IndexArray) -> tuple[int, ...]:
    return tuple(rows.tolist())
