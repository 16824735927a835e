"""Node selectors evaluated over columns.

A requirement on a label is a function of the label's value, so it is evaluated once per distinct
value and then gathered. A requirement on ``metadata.name`` is a comparison of row numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kubesched.api import labels, names
from kubesched.api.core import NodeSelector
from kubesched.api.labels import NodeTerm, Requirement
from kubesched.cluster.arrays import BoolArray
from kubesched.cluster.node_rows import NodeRows
from kubesched.cluster.vocabulary import Lookup


class LabelMatch:
    """A requirement on one label."""

    def __init__(self, requirement: Requirement) -> None:
        self._requirement = requirement
        self._lookup: Lookup[str | None, np.bool_] | None = None

    def __call__(self, nodes: NodeRows) -> BoolArray:
        """Return which of the rows satisfy it."""
        column = nodes.table.label_column(self._requirement.key)
        lookup = self._lookup
        if lookup is None or lookup.column is not column:
            lookup = self._lookup = Lookup(column, self._requirement.matches_value, np.bool_)
        return lookup(nodes.rows)


def match_name(requirement: Requirement, nodes: NodeRows) -> BoolArray:
    """Return which of the rows satisfy a field requirement; nodes have one field, their name."""
    if requirement.key != names.FIELD_NODE_NAME:
        return np.full(len(nodes), requirement.matches_value(""))
    row = nodes.table.row_of(requirement.values[0])
    named: BoolArray = nodes.row_numbers() == (-1 if row is None else row)
    return named if requirement.operator == labels.IN else ~named


class TermMatch:
    """A term of a node selector: a conjunction of requirements."""

    def __init__(self, term: NodeTerm) -> None:
        self._labels = [LabelMatch(requirement) for requirement in term.labels]
        self._fields = term.fields
        self._malformed = bool(term.errors)

    def __call__(self, nodes: NodeRows) -> BoolArray:
        """Return which of the rows satisfy all requirements; none if the term is malformed."""
        result = np.full(len(nodes), not self._malformed)
        for label in self._labels:
            result &= label(nodes)
        for field in self._fields:
            result &= match_name(field, nodes)
        return result


class SelectorMatch:
    """A ``nodeSelector`` and the terms of node affinity, at least one of which must match."""

    def __init__(
        self, match_labels: Mapping[str, str] | None, selector: NodeSelector | None
    ) -> None:
        self._labels = [
            LabelMatch(requirement)
            for requirement in labels.from_match_labels(match_labels).requirements
        ]
        self._terms: list[TermMatch] | None = None
        if selector is not None:
            self._terms = [TermMatch(term) for term in labels.node_selector_terms(selector)]

    def __call__(self, nodes: NodeRows) -> BoolArray:
        """Return which of the rows match."""
        result = np.ones(len(nodes), dtype=np.bool_)
        for label in self._labels:
            result &= label(nodes)
        if self._terms is not None:
            any_term = nodes.none()
            for term in self._terms:
                any_term |= term(nodes)
            result &= any_term
        return result
